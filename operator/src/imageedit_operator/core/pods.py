"""What one pod is, read from one look: active, draining, serving, in trouble."""

from __future__ import annotations

from dataclasses import dataclass

from imageedit_operator.core.device_faults import refine
from imageedit_operator.core.known import Known
from imageedit_operator.core.observed_pod import ObservedPod, WarmReport
from imageedit_operator.core.stored import cut
from imageedit_operator.core.unplaced import volume_words

SERVER_CONTAINER = "server"
"""Name of the container that the operator makes; others are of spec.template."""

DRAINING = "Draining"
"""Gate reason of a pod that drains. It is the drain's only memory, and it is sticky."""

LONGEST_WORDS = 4096
"""Of a pod or its kubelet, as many as a container may leave behind at its end."""

IMAGE_PULL = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"}
)
CANNOT_START = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "ContainerCannotRun"}
)
EXIT_REASONS = frozenset(
    {"SettingsInvalid", "ModelMissing", "ModelInvalid", "DeviceUnavailable", "WarmupFailed", "WorkerLost"}
)

ADVICE = {
    "ImagePull": "check spec.server.image and the node's access to its registry",
    "ContainerCannotStart": "correct what is named, in spec.server, spec.accelerator or spec.template",
    "VolumeNotReady": "the claim must be bound and its volume reachable, the folder must be on the pod's node",
    "CrashLoop": "read the pod's log with kubectl logs --previous",
    "OutOfMemory": "raise the memory limit in spec.server.resources; loading takes about the size of the checkpoint",
    "SettingsInvalid": "correct the named setting in spec.server",
    "ModelMissing": "check spec.model.source: the checkpoint must lie there",
    "ModelInvalid": "copy the checkpoint again; files are missing, cut short or of another kind",
    "DeviceUnavailable": "check the card and its driver on the pod's node",
    "DriverMissing": "install the Ascend driver on the pod's node, or check accelerator.injection and driverRoot",
    "DriverTooOld": "update the driver of the pod's node and reboot it, or take a server image of an older CANN",
    "CardNotVisible": "check accelerator.resourceName, injection and runtimeClassName, and the node's device plugin",
    "CardBusy": "find what else holds the card on the pod's node, with npu-smi info, and end it",
    "WarmupFailed": "read the pod's log; try fewer or smaller spec.server.sizes",
    "WorkerLost": "read the pod's log; the card or its memory may be at fault",
    "CheckFailed": "the model answers, but not with a picture; check the checkpoint and the device",
    "DigestMismatch": "put the old files back, or give the new ones a spec.model.revision of their own",
    "WarmupTimeout": "read the pod's log and events, or raise spec.rollout.progressDeadline",
    "WrongRevision": "the pod runs another revision than its label says; delete the pod",
}

CLAIM_ADVICE = "kubectl get pvc must show the claim, and as Bound: make it, or correct its name in the spec"
"""Of claims that keep a pod from any node."""

REFUSALS = frozenset({"CheckFailed", "WrongRevision", "DigestMismatch"})
"""Gate reasons of a pod that is up and must not serve."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """Why something will not become ready by waiting: a reason and the pod's own words."""

    reason: str
    message: str


def is_active(pod: ObservedPod) -> bool:
    """Counted by its ReplicaSet: neither leaving nor over."""
    return not pod.terminating and not is_over(pod)


def is_over(pod: ObservedPod) -> bool:
    """Will never run again; its ReplicaSet has replaced it already."""
    return pod.phase in ("Failed", "Succeeded")


def has_container(pod: ObservedPod) -> bool:
    """Whether the server container runs now."""
    return pod.started and bool(pod.container_id)


def is_draining(pod: ObservedPod) -> bool:
    """Chosen to leave; it never serves again."""
    return pod.gate is False and pod.gate_reason == DRAINING


def is_serving(pod: ObservedPod) -> bool:
    """Gets requests from the Service."""
    return is_active(pod) and pod.gate is True and pod.ready


def is_live(pod: ObservedPod) -> bool:
    """Active and not chosen to leave: capacity, now or soon."""
    return is_active(pod) and not is_draining(pod)


def holds_card(pod: ObservedPod) -> bool:
    """A scheduled pod holds its card until it is gone, terminating or not; the card of a lost node is none."""
    return bool(pod.node) and not is_over(pod) and not pod.lost


def gate_message(container_id: str, words: str) -> str:
    """The one form of a gate's message; `gate_container` reads it back."""
    return f"container {container_id}: {words}"


def gate_container(message: str) -> str:
    """The container id that a gate's message was written for, or an empty text."""
    head, found, _ = message.partition(": ")
    return head.removeprefix("container ") if found and head.startswith("container ") else ""


# | what is seen                                   | reason                                  |
# | pod over, terminating or draining              | none                                    |
# | its card is sick                               | none: the card is at fault, not the pod |
# | waiting: image cannot be pulled                | ImagePull                               |
# | waiting: container cannot be created           | ContainerCannotStart, or the device's   |
# | waiting: CrashLoopBackOff                      | as exited with an error                 |
# | report of another revision                     | WrongRevision                           |
# | report: warm, check failed                     | CheckFailed                             |
# | report: not warm, error                        | the error's reason, or the device's     |
# | report: warm, of other files than before       | DigestMismatch                          |
# | report: warm                                   | none                                    |
# | gate open, not asked now                       | none                                    |
# | does not answer now, its gate was refused      | the gate's reason                       |
# | exited before, not warm since: OOMKilled       | OutOfMemory                             |
# | exited with an error before, not warm since    | the exit message's reason, or CrashLoop |
# | longer on its node than the deadline, and its  | VolumeNotReady                          |
# | volumes cannot be mounted                      |                                         |
# | longer without a place than the deadline, for  | VolumeNotReady                          |
# | want of a volume                               |                                         |
# | longer on its node than the deadline           | WarmupTimeout                           |
def trouble(pod: ObservedPod) -> Trouble | None:  # noqa: PLR0911 - one return a row
    """What keeps this pod from serving that waiting alone does not cure."""
    if not is_live(pod) or pod.sick_card:
        return None
    if pod.waiting_reason in IMAGE_PULL:
        return _named(pod, "ImagePull", pod.waiting_message or pod.waiting_reason)
    if pod.waiting_reason in CANNOT_START:
        words = pod.waiting_message or pod.waiting_reason
        return _named(pod, refine("ContainerCannotStart", words), words)
    if pod.waiting_reason == "CrashLoopBackOff":
        return _exited(pod)
    if isinstance(pod.report, Known) and has_container(pod):
        reported = _of_report(pod, pod.report.value)
        if reported is not None or pod.report.value.warm:
            return reported
    if pod.gate is True and has_container(pod):
        return None
    if pod.gate is False and pod.gate_reason in REFUSALS and _proven_for_this_container(pod):
        return _named(pod, pod.gate_reason, pod.gate_message.partition(": ")[2])
    if pod.last_exit_code:
        return _exited(pod)
    if pod.overdue_s and volume_message(pod):
        return Trouble(reason="VolumeNotReady", message=volume_message(pod))
    if pod.overdue_s:
        return _named(pod, "WarmupTimeout", f"is not warm within {pod.overdue_s:.0f} s on its node")
    return None


# | the pod                                | what is said                               |
# | has a node, which gives it no volume   | the node's words, and what a volume needs  |
# | has none, for its claims have no volume| the scheduler's, and what a claim needs    |
# | else                                   | nothing                                    |
def volume_message(pod: ObservedPod) -> str:
    """What keeps the pod from its volumes, and what to do; empty when nothing is known to."""
    if pod.mount_words:
        return _named(pod, "VolumeNotReady", f"node {pod.node} says: {pod.mount_words}").message
    words = volume_words(pod)
    return f"pod {pod.name}: the scheduler says: {words}; {CLAIM_ADVICE}" if words else ""


def _of_report(pod: ObservedPod, report: WarmReport) -> Trouble | None:
    if report.revision_hash != pod.revision_hash:
        return _named(pod, "WrongRevision", f"it reports revision {report.revision_hash or 'none'}")
    if report.warm and not report.check_ok:
        return _named(pod, "CheckFailed", report.check_message)
    if report.warm:
        return _named(pod, "DigestMismatch", digest_words(pod, report)) if has_other_files(pod, report) else None
    if report.error_reason:
        known = report.error_reason in EXIT_REASONS
        reason = report.error_reason if known else "WarmupFailed"
        return _named(pod, _of_device(reason, report.error_message), report.error_message)
    return None


def has_other_files(pod: ObservedPod, report: WarmReport) -> bool:
    """Loaded other bytes than its revision was first warmed with; an open gate is not closed for it."""
    known = pod.expected_digest and report.digest
    return pod.gate is not True and bool(known) and report.digest != pod.expected_digest


def digest_words(pod: ObservedPod, report: WarmReport) -> str:
    """What differs, in words."""
    return f"loaded files of digest {report.digest}, but the revision has {pod.expected_digest}"


def _proven_for_this_container(pod: ObservedPod) -> bool:
    return has_container(pod) and gate_container(pod.gate_message) == pod.container_id


def _exited(pod: ObservedPod) -> Trouble:
    if pod.last_exit_reason == "OOMKilled":
        # Whatever the process still said: it is told by what it misses, and that is memory.
        return _named(pod, "OutOfMemory", "the kernel ended it for lack of host memory (OOMKilled)")
    reason, _, words = pod.last_exit_message.strip().partition(": ")
    if reason in EXIT_REASONS:
        return _named(pod, _of_device(reason, words), words)
    words = pod.last_exit_message.strip() or f"its process exits with code {pod.last_exit_code}"
    return _named(pod, "CrashLoop", words)


def _of_device(reason: str, words: str) -> str:
    return refine(reason, words) if reason == "DeviceUnavailable" else reason


def _named(pod: ObservedPod, reason: str, words: str) -> Trouble:
    advice = ADVICE.get(reason, ADVICE["CrashLoop"])
    said = cut(words.strip().rstrip("."), LONGEST_WORDS)
    return Trouble(reason=reason, message=f"pod {pod.name}: {said}; {advice}")
