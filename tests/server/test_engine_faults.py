"""The table of device faults, row by row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_server.engine.faults import classify
from imageedit_server.worker.failures import Reason, WorkerError, WorkerFailure

ACL = "[ERROR] 2026-08-01-10:00:00 (PID:7, Device:0, RankID:-1) ERR00100 PTA call acl api failed. error code is {}"


class OutOfMemoryError(RuntimeError):
    """Named as torch names its own."""


@pytest.mark.parametrize(
    ("error", "reason", "sticky"),
    [
        (RuntimeError("HBM MULTI BIT ECC ERROR on device 0"), "DeviceFault", True),
        (RuntimeError("UCE ERROR"), "DeviceFault", True),
        (RuntimeError("FORCE STOP"), "DeviceFault", True),
        (OutOfMemoryError("NPU out of memory. Tried to allocate 2.00 GiB"), "OutOfMemory", False),
        (OutOfMemoryError(""), "OutOfMemory", False),
        (MemoryError(), "OutOfMemory", False),
        (RuntimeError(ACL.format(207001)), "OutOfMemory", False),
        (RuntimeError(ACL.format(507035)), "DeviceFault", True),
        (RuntimeError(ACL.format(507011)), "DeviceFault", True),
        (RuntimeError(ACL.format(507901)), "DeviceFault", True),
        (RuntimeError(ACL.format(107020)), "DeviceFault", True),
        (RuntimeError(ACL.format(507046)), "DeviceFault", True),
        (RuntimeError(ACL.format(107002)), "DeviceFault", True),
        (RuntimeError("Cannot find bin of op Cast"), "EditFailed", False),
        (RuntimeError("E40021: Failed to compile Op"), "EditFailed", False),
        (RuntimeError("EZ1001: call aclnnConvolution failed, error code is 161002"), "EditFailed", False),
        (ValueError("height must be divisible by 16"), "EditFailed", False),
        (ZeroDivisionError(), "EditFailed", False),
    ],
)
def test_each_class_of_error_has_its_reason(error: Exception, reason: Reason, sticky: bool) -> None:
    failure = classify(error)
    assert (failure.reason, failure.sticky) == (reason, sticky)
    assert failure.message


@pytest.mark.parametrize("code", ["507035", "207001", "107002", "200000"])
def test_a_number_is_a_code_only_in_what_a_driver_wrote(code: str) -> None:
    assert classify(ValueError(f"sequence of {code} tokens is too long")).reason == "EditFailed"


def test_a_code_inside_a_longer_number_does_not_count() -> None:
    assert classify(RuntimeError(ACL.format("15070351"))).reason == "EditFailed"


def test_a_failure_that_is_already_classified_stays_as_it_is() -> None:
    failure = WorkerFailure(reason="ModelInvalid", message="x", sticky=True)
    assert classify(WorkerError(failure)) is failure


def test_the_message_says_what_the_model_said_but_not_its_whole_trace() -> None:
    message = classify(ValueError("bad shape\n  at frame 1\n  at frame 2")).message
    assert "bad shape" in message
    assert "frame" not in message


@given(st.text())
def test_any_error_gets_a_failure_with_a_bounded_message(text: str) -> None:
    failure = classify(RuntimeError(text))
    assert 0 < len(failure.message) < 600
