"""From whatever a model or a driver raises to one `WorkerFailure`."""

import re
from typing import NamedTuple

from imageedit_server.worker.failures import Reason, WorkerError, WorkerFailure

_MESSAGE_LIMIT_CHARS = 300


class _Row(NamedTuple):
    phrases: tuple[str, ...]
    codes: tuple[str, ...]
    reason: Reason
    sticky: bool
    hint: str


# | class | phrases or codes | reason | sticky |
# | --- | --- | --- | --- |
# | hardware | UCE, HBM ECC, SUSPECT MEM, HCCS LINK, FORCE STOP | DeviceFault | yes |
# | out of memory | "out of memory"; 200000 207001 207018 | OutOfMemory | no (the second in a row is: see the loop) |
# | sticky device | 50701x 50703x 50704x 507899 507901, as listed | DeviceFault | yes |
# | timeout | 107019 107020 507014 507034 507046 | DeviceFault | yes |
# | lost context | 107001 107002 107003 | DeviceFault | yes |
# | missing kernel | "Cannot find bin of op", E40021; 100024 148049 500001 500002 | EditFailed | no |
# | refused input | EZ1001; 161001 161002 561103 | EditFailed | no |
# | anything else | | EditFailed | no |
_TABLE = (
    _Row(
        ("UCE ERROR", "HBM MULTI BIT ECC ERROR", "SUSPECT MEM ERROR", "HCCS LINK ERROR", "FORCE STOP"),
        (),
        "DeviceFault",
        True,
        "the card reports a hardware error; check it with npu-smi and take the node out of service if it returns",
    ),
    _Row(
        ("out of memory", "OutOfMemoryError", "MemoryError"),
        ("200000", "207001", "207018"),
        "OutOfMemory",
        False,
        "the device has too little free memory for this edit; use smaller sizes or a card with more memory",
    ),
    _Row(
        (),
        (
            *("507010", "507011", "507013", "507015", "507017", "507018", "507033", "507035"),
            *("507042", "507043", "507044", "507045", "507048", "507899", "507901"),
        ),
        "DeviceFault",
        True,
        "the device no longer works in this process; a new worker is started",
    ),
    _Row(
        (),
        ("107019", "107020", "507014", "507034", "507046"),
        "DeviceFault",
        True,
        "the device did not answer in time; a new worker is started",
    ),
    _Row(
        (),
        ("107001", "107002", "107003"),
        "DeviceFault",
        True,
        "the device context is gone; a new worker is started",
    ),
    _Row(
        ("Cannot find bin of op", "E40021"),
        ("100024", "148049", "500001", "500002"),
        "EditFailed",
        False,
        "an operator has no kernel: install the CANN kernels of this card and source set_env.sh in the image",
    ),
    _Row(
        ("EZ1001",),
        ("161001", "161002", "561103"),
        "EditFailed",
        False,
        "the device refused an operator's input",
    ),
)

# Numbers alone mean nothing ("200000 tokens"): they count as codes only in what a driver wrote.
_DRIVER_MARKS = re.compile(r"error code|ERR\d{5}|\bNPU\b|\bACL\b|\bacl\w+|\brt[A-Z]\w+|\bE[ZEHI]\d{4}|\bE\d{5}", re.I)
_CODE = re.compile(r"(?<!\d)\d{6}(?!\d)")


def classify(error: BaseException) -> WorkerFailure:
    """Find the row of the table above that an error belongs to; the first one that fits counts."""
    if isinstance(error, WorkerError):
        return error.failure
    text = " ".join([*(kind.__name__ for kind in type(error).__mro__), str(error)])
    codes = set(_CODE.findall(text)) if _DRIVER_MARKS.search(text) else set()
    said = describe(error)
    for row in _TABLE:
        if any(phrase.lower() in text.lower() for phrase in row.phrases) or codes.intersection(row.codes):
            return WorkerFailure(reason=row.reason, message=f"{row.hint} ({said})", sticky=row.sticky)
    return WorkerFailure(reason="EditFailed", message=f"the edit failed: {said}", sticky=False)


def describe(error: BaseException) -> str:
    """Name an error and give the first line of what it says."""
    lines = str(error).strip().splitlines()
    said = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return said[:_MESSAGE_LIMIT_CHARS]
