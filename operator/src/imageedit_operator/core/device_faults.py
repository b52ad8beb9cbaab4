"""What is wrong with a card that cannot be opened, read from the words of the server, the runtime or the kubelet."""

from __future__ import annotations

import re

# | the words have                                                              | reason         |
# | `Driver Version` and that it is not supported, invalid, too old, no match   | DriverTooOld   |
# | a library or folder of the driver, or the Ascend runtime's hook             | DriverMissing  |
# | that no card is visible                                                     | CardNotVisible |
# | that the card is used already                                               | CardBusy       |
# | none of these                                                               | as it was      |
# The first row that fits decides.
_ROWS = {
    "DriverTooOld": r"driver version.{0,200}(not supported|invalid|too old|does not match)",
    "DriverMissing": (
        r"driver's libraries|libascend_hal|libdrvdsmi|libdcmi|ascend-docker|"
        r"/usr/local/Ascend/driver|/usr/local/dcmi"
    ),
    "CardNotVisible": r"no card is visible|no davinci",
    "CardBusy": r"-8020\b|device is used|NPU is busy",
}
DEVICE_REASONS = tuple(_ROWS)
_PATTERNS = {reason: re.compile(row, re.IGNORECASE | re.DOTALL) for reason, row in _ROWS.items()}


def refine(reason: str, words: str) -> str:
    """The reason that says what to do, in place of one that says only that the card cannot be opened."""
    return next((found for found, pattern in _PATTERNS.items() if pattern.search(words)), reason)
