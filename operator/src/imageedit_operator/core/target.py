"""Which revision the pods go to: the spec's, or the last good one after the spec's has failed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from imageedit_operator.core.pods import Trouble
from imageedit_operator.core.record import Record
from imageedit_operator.core.stored import cut

PROVEN_S = 30.0
"""How long a fault of the revision itself must last before the revision is given up."""

DOUBTFUL_S = 180.0
"""The same for faults that may lie with a node, a registry or a card, and pass."""

OWN_FAULTS = frozenset(
    {
        "SettingsInvalid", "ModelMissing", "ModelInvalid", "CheckFailed", "WrongRevision", "DigestMismatch",
        "WarmupTimeout", "RuntimeClassMissing",
    }
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """Why a revision was given up."""

    revision: str
    reason: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Where the pods go."""

    revision: str
    failure: Failure | None = None
    """Of the spec's revision, which is the reason why `revision` is another one."""

    @property
    def rolls_back(self) -> bool:
        """Whether the spec's revision has failed and the last good one takes its place."""
        return self.failure is not None


# | the spec's revision                                | its Deployment of the last good one | target       |
# | is not the failed one of the status                | any                                 | the spec's   |
# | is                                                 | is gone                             | the spec's   |
# | is                                                 | exists                              | the last good|
def choose(spec: str, status: Mapping[str, Any], deployments: Collection[str]) -> Target:
    """The revision to go to; `deployments` are the revisions that have one of ours."""
    failed = stored_failure(status)
    if failed is None or failed.revision != spec:
        return Target(revision=spec)
    good = last_good(status)
    if good == spec or good not in deployments:
        return Target(revision=spec)
    return Target(revision=good, failure=failed)


# | first that fits                                              | failure        |
# | the pods go to the last good revision already                | as it stands   |
# | rollout.rollbackOnFailure is false                           | none           |
# | the revision was the last good one itself                    | none           |
# | no Deployment of a last good revision to go back to          | none           |
# | no pod in trouble                                            | none           |
# | a fault of the revision for 30 s, a doubtful one for 3 min   | the trouble's  |
# | else                                                         | none           |
def judge(
    target: Target,
    status: Mapping[str, Any],
    deployments: Collection[str],
    *,
    rollback: bool,
    trouble: Trouble | None,
    record: Record | None,
    now: float,
) -> Failure | None:
    """Whether the spec's revision is given up. The pods follow at the next look, when the status says so."""
    if target.failure is not None:
        return target.failure
    good = last_good(status)
    if not rollback or good == target.revision or good not in deployments:
        return None
    if trouble is None or record is None or record.revision != target.revision or record.trouble_since is None:
        return None
    patience_s = PROVEN_S if trouble.reason in OWN_FAULTS else DOUBTFUL_S
    if now - record.trouble_since < patience_s:
        return None
    return Failure(revision=target.revision, reason=trouble.reason, message=trouble.message)


def last_good(status: Mapping[str, Any]) -> str:
    """The revision that was complete last; empty before the first."""
    return str(status.get("lastGoodRevision", ""))


def stored_failure(status: Mapping[str, Any]) -> Failure | None:
    """The failure that the status remembers."""
    revision, why = status.get("failedRevision"), status.get("failure")
    if not revision:
        return None
    words = why if isinstance(why, Mapping) else {}
    return Failure(
        revision=str(revision), reason=str(words.get("reason", "Failed")), message=str(words.get("message", ""))
    )


def write(failure: Failure | None) -> dict[str, Any]:
    """The failure as it is stored."""
    if failure is None:
        return {}
    return {"failedRevision": failure.revision, "failure": {"reason": failure.reason, "message": cut(failure.message)}}
