"""Looking through tens of megabytes without keeping the interpreter from the event loop. Blocking: call it in a thread.

A single call into C holds the interpreter until its end. In slices, other threads have their turn every millisecond.
"""

from __future__ import annotations

from collections.abc import Iterator

# A multiple of 3 and of 4: so base64 can be made and read slice by slice.
SLICE_BYTES = 3 * 256 * 1024


def find(data: bytes, wanted: bytes, start: int) -> int:
    """`data.find(wanted, start)`."""
    for begin in range(start, len(data), SLICE_BYTES):
        found = data.find(wanted, begin, begin + SLICE_BYTES + len(wanted) - 1)
        if found >= 0:
            return found
    return -1


def slices(data: bytes) -> Iterator[bytes]:
    """The data in its order."""
    return (data[begin : begin + SLICE_BYTES] for begin in range(0, len(data), SLICE_BYTES))


def without(data: bytes, characters: bytes) -> bytes:
    """The data without these characters."""
    # Looking for one character is twenty times as fast as copying everything that is another one.
    if not any(character in data for character in characters):
        return data
    return b"".join(part.translate(None, characters) for part in slices(data))


def more_than(data: bytes, limit: int, characters: bytes) -> bool:
    """Whether more than `limit` bytes of `data` are among these characters."""
    count = 0
    for part in slices(data):
        # As in `without`: few parts of base64 have such a character at all, and looking is far faster than counting.
        count += sum(part.count(character) for character in characters if character in part)
        if count > limit:
            return True
    return False
