"""What one pod's state is called."""

from __future__ import annotations

from typing import Any

import pytest

from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import ADVICE, CLAIM_ADVICE, trouble, volume_message
from unit.operator_core.builders import OLD, SILENT, draining_pod, known, pending_pod, serving_pod, starting_pod

NO_CLAIM = '0/1 nodes are available: persistentvolumeclaim "models" not found. preemption: none'

GONE: dict[str, Any] = {"started": False, "container_id": "", "report": SILENT}

KILLED: dict[str, Any] = {"last_exit_code": 137, "last_exit_reason": "OOMKilled"}

REFUSED: dict[str, Any] = {
    "report": SILENT,
    "gate": False,
    "gate_reason": "CheckFailed",
    "gate_message": "container c-1: the picture is flat",
}
ROWS: list[tuple[ObservedPod, str | None]] = [
    (starting_pod(phase="Failed", waiting_reason="CrashLoopBackOff"), None),
    (starting_pod(terminating=True, waiting_reason="CrashLoopBackOff"), None),
    (draining_pod(waiting_reason="CrashLoopBackOff"), None),
    (starting_pod(sick_card="c0", waiting_reason="CrashLoopBackOff"), None),
    (starting_pod(**GONE, waiting_reason="ImagePullBackOff"), "ImagePull"),
    (starting_pod(**GONE, waiting_reason="ErrImagePull"), "ImagePull"),
    (starting_pod(**GONE, waiting_reason="CreateContainerConfigError"), "ContainerCannotStart"),
    (starting_pod(**GONE, waiting_reason="CrashLoopBackOff", last_exit_code=1), "CrashLoop"),
    (
        starting_pod(
            **GONE, waiting_reason="CrashLoopBackOff", last_exit_code=65, last_exit_message="ModelMissing: no files"
        ),
        "ModelMissing",
    ),
    (starting_pod(report=known(revision_hash=OLD)), "WrongRevision"),
    (starting_pod(report=known(check_ok=False)), "CheckFailed"),
    (
        starting_pod(report=known(warm=False, error_reason="WarmupFailed", error_message="768x768: memory")),
        "WarmupFailed",
    ),
    (starting_pod(report=known(warm=False, error_reason="Other", error_message="?")), "WarmupFailed"),
    (starting_pod(report=known(), last_exit_code=69), None),
    (serving_pod(report=SILENT, last_exit_code=69), None),
    (starting_pod(last_exit_code=137), "CrashLoop"),
    (starting_pod(**GONE, last_exit_code=67, last_exit_message="DeviceUnavailable: busy"), "DeviceUnavailable"),
    (starting_pod(**GONE, waiting_reason="CrashLoopBackOff", **KILLED), "OutOfMemory"),
    (starting_pod(**KILLED), "OutOfMemory"),
    (starting_pod(**KILLED, last_exit_message="WorkerLost: killed by signal 9"), "OutOfMemory"),
    (starting_pod(report=known(), **KILLED), None),
    (starting_pod(last_exit_code=0), None),
    (starting_pod(report=known(), expected_digest="sha256:cd"), "DigestMismatch"),
    (starting_pod(report=known(), expected_digest="sha256:ab"), None),
    (serving_pod(expected_digest="sha256:cd"), None),
    (starting_pod(**REFUSED), "CheckFailed"),
    (starting_pod(**{**REFUSED, "container_id": "c-2"}), None),
    (starting_pod(overdue_s=600.0), "WarmupTimeout"),
    (starting_pod(**GONE, overdue_s=600.0, mount_words="no folder"), "VolumeNotReady"),
    (starting_pod(**GONE, mount_words="no folder"), None),
    (pending_pod(unschedulable_message=NO_CLAIM, overdue_s=600.0), "VolumeNotReady"),
    (pending_pod(unschedulable_message=NO_CLAIM), None),
    (pending_pod(), None),
    (starting_pod(overdue_s=600.0, report=known()), None),
    (starting_pod(**GONE, overdue_s=600.0), "WarmupTimeout"),
    (starting_pod(overdue_s=600.0, last_exit_code=137), "CrashLoop"),
    (starting_pod(), None),
    (serving_pod(), None),
]


@pytest.mark.parametrize(("pod", "reason"), ROWS)
def test_trouble_follows_the_table(pod: ObservedPod, reason: str | None) -> None:
    found = trouble(pod)
    assert (None if found is None else found.reason) == reason


def test_the_message_has_the_pods_own_words_and_what_to_do() -> None:
    pod = starting_pod(**GONE, last_exit_code=65, last_exit_message="ModelMissing: no checkpoint under /models/q\n")
    found = trouble(pod)
    assert found is not None
    assert found.message == (
        "pod pod-1: no checkpoint under /models/q; check spec.model.source: the checkpoint must lie there"
    )


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        (
            pending_pod(unschedulable_message=NO_CLAIM),
            f'pod pod-1: the scheduler says: persistentvolumeclaim "models" not found; {CLAIM_ADVICE}',
        ),
        (
            starting_pod(mount_words="no folder /models."),
            f"pod pod-1: node node-1 says: no folder /models; {ADVICE['VolumeNotReady']}",
        ),
        (pending_pod(), ""),
        (serving_pod(), ""),
    ],
)
def test_a_volume_that_is_not_there_is_told_with_what_to_do(pod: ObservedPod, message: str) -> None:
    assert volume_message(pod) == message


def test_an_exit_without_words_is_told_by_its_code() -> None:
    found = trouble(starting_pod(**GONE, last_exit_code=137))
    assert found is not None
    assert "exits with code 137" in found.message


def test_a_pod_without_memory_is_not_sent_to_a_log_that_says_nothing() -> None:
    found = trouble(starting_pod(**GONE, **KILLED))
    assert found is not None
    assert found.message == (
        "pod pod-1: the kernel ended it for lack of host memory (OOMKilled); "
        "raise the memory limit in spec.server.resources; loading takes about the size of the checkpoint"
    )
