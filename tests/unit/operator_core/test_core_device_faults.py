"""What keeps a card from being opened, read from words that were seen; row by row."""

from __future__ import annotations

import pytest

from imageedit_operator.core.device_faults import DEVICE_REASONS, refine
from imageedit_operator.core.pods import ADVICE, trouble
from imageedit_server.engine.devices import npu
from unit.operator_core.builders import known, starting_pod


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Driver Version: 23.0.0 is invalid or not supported yet", "DriverTooOld"),
        ("libascend_hal.so: driver version 22 does not match", "DriverTooOld"),
        (npu._NO_DRIVER, "DriverMissing"),
        ("OSError: libascend_hal.so: cannot open shared object file", "DriverMissing"),
        ("error running prestart hook #0: exit status 1: ascend-docker-hook", "DriverMissing"),
        ('failed to stat "/usr/local/Ascend/driver": no such file or directory', "DriverMissing"),
        (npu._NO_CARD, "CardNotVisible"),
        ("dcmi module initialize failed. ret is -8020", "CardBusy"),
        ("NPU is busy, check again", "CardBusy"),
        ("the card does not work; check its health with npu-smi on the node (507033)", "DeviceUnavailable"),
        ("", "DeviceUnavailable"),
    ],
)
def test_words_about_a_card_become_a_reason_by_the_table(words: str, expected: str) -> None:
    assert refine("DeviceUnavailable", words) == expected


def test_each_of_these_reasons_says_what_to_do() -> None:
    assert set(DEVICE_REASONS) <= set(ADVICE)


def test_the_servers_last_words_name_the_driver() -> None:
    pod = starting_pod(
        last_exit_code=67, last_exit_message=f"DeviceUnavailable: {npu._NO_DRIVER}", report=known(warm=False)
    )
    found = trouble(pod)
    assert found is not None
    assert found.reason == "DriverMissing"
    assert found.message.endswith(ADVICE["DriverMissing"])


def test_a_runtime_whose_hook_fails_names_the_driver() -> None:
    words = "failed to create containerd task: ascend-docker-hook: exit status 1"
    pod = starting_pod(started=False, container_id="", waiting_reason="RunContainerError", waiting_message=words)
    found = trouble(pod)
    assert found is not None
    assert found.reason == "DriverMissing"


def test_a_fault_that_is_no_device_s_keeps_its_reason_whatever_its_words() -> None:
    pod = starting_pod(report=known(warm=False, error_reason="ModelMissing", error_message="/usr/local/dcmi is empty"))
    found = trouble(pod)
    assert found is not None
    assert found.reason == "ModelMissing"
