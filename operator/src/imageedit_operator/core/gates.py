"""When the readiness gate `imageedit.dev/warm` opens and closes.

Pod conditions survive a restart of the container, so the gate's message names the
container that it was proven for, and another container closes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from imageedit_operator.core.actions import SetGate
from imageedit_operator.core.known import Known
from imageedit_operator.core.observed_pod import ObservedPod, WarmReport
from imageedit_operator.core.pods import (
    DRAINING,
    digest_words,
    gate_container,
    gate_message,
    has_container,
    has_other_files,
    is_active,
    is_draining,
)

WARM = "Warm"
RESTARTED = "ContainerRestarted"
NOT_WARM = "NotWarm"
CHECK_FAILED = "CheckFailed"
WRONG_REVISION = "WrongRevision"
DIGEST_MISMATCH = "DigestMismatch"


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    """A wanted value of the gate."""

    value: bool
    reason: str
    message: str


# The first row that fits decides. "-" leaves the condition as it is.
# | #  | container                  | report                  | gate now | gate wanted              |
# | 1  | any                        | any                     | Draining | -  (sticky)              |
# | 2  | pod over or terminating    | any                     | any      | -                        |
# | 3  | none runs                  | any                     | True     | False ContainerRestarted |
# | 4  | none runs                  | any                     | other    | -                        |
# | 5  | not the one of the message | any                     | True     | False ContainerRestarted |
# | 6  | runs                       | unknown                 | any      | -  (the probe decides)   |
# | 7  | runs                       | another revision        | any      | False WrongRevision      |
# | 8  | runs                       | draining                | any      | False Draining           |
# | 9  | runs                       | warm, check failed      | any      | False CheckFailed        |
# | 10 | runs                       | not warm                | True     | False NotWarm            |
# | 11 | runs                       | not warm                | other    | -                        |
# | 12 | runs                       | warm, of other files    | not True | False DigestMismatch     |
# | 13 | runs                       | warm, check good        | any      | True Warm                |
# A gate that has the wanted value and reason already, for this container, is left alone.
def decide(pod: ObservedPod) -> Gate | None:  # noqa: PLR0911 - one return a row
    """The gate that this pod should have, or None to leave it."""
    if is_draining(pod) or not is_active(pod):
        return None
    if not has_container(pod):
        return _closed(pod, RESTARTED, "the container stopped") if pod.gate is True else None
    if pod.gate is True and gate_container(pod.gate_message) != pod.container_id:
        return _closed(pod, RESTARTED, "started anew, not proven warm")
    if not isinstance(pod.report, Known):
        return None
    report = pod.report.value
    if report.revision_hash != pod.revision_hash:
        return _closed(pod, WRONG_REVISION, f"reports revision {report.revision_hash or 'none'}")
    if report.draining:
        return _closed(pod, DRAINING, "drains")
    if report.warm and not report.check_ok:
        return _closed(pod, CHECK_FAILED, report.check_message)
    if not report.warm:
        return _closed(pod, NOT_WARM, "no longer warm") if pod.gate is True else None
    if has_other_files(pod, report):
        return _closed(pod, DIGEST_MISMATCH, digest_words(pod, report))
    return _open(pod, report)


def changes(
    pods: Iterable[ObservedPod], *, revisions: Collection[str], leaving: Collection[str], settling: Collection[str]
) -> tuple[SetGate, ...]:
    """Gate writes for pods of known revisions.

    `leaving` are uids that this plan removes or drains. `settling` are revisions whose
    ReplicaSet has yet to remove pods, of this plan or an earlier one: one of them may have
    become warm meanwhile, and would be removed with the request that an open gate brings it.
    """
    writes = []
    for pod in pods:
        if pod.revision_hash not in revisions or pod.uid in leaving:
            continue
        wanted = decide(pod)
        if wanted is None or _is_set(pod, wanted) or (wanted.value and pod.revision_hash in settling):
            continue
        writes.append(
            SetGate(pod=pod.name, uid=pod.uid, value=wanted.value, reason=wanted.reason, message=wanted.message)
        )
    return tuple(writes)


def _is_set(pod: ObservedPod, wanted: Gate) -> bool:
    same_container = gate_container(pod.gate_message) == gate_container(wanted.message)
    return pod.gate is wanted.value and pod.gate_reason == wanted.reason and same_container


def _closed(pod: ObservedPod, reason: str, words: str) -> Gate:
    return Gate(value=False, reason=reason, message=gate_message(pod.container_id or "none", words))


def _open(pod: ObservedPod, report: WarmReport) -> Gate:
    words = f"warm in {report.warmup_s:.1f} s, digest {report.digest}"
    return Gate(value=True, reason=WARM, message=gate_message(pod.container_id, words))
