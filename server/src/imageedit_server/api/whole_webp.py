"""Is a WebP whole? Its decoder sees most of what is missing, but takes the word of the header for the rest.

There are no checksums in it: a byte that was altered inside the pixels can be any other picture.
"""

from __future__ import annotations

import struct

PIXELS = (b"VP8 ", b"VP8L")


def check(data: bytes) -> None:
    """Raise if a part is missing; what comes after the end does not matter.

    Raises:
        ValueError: a part is missing.
    """
    end = 8 + int.from_bytes(data[4:8], "little")
    if end > len(data):
        raise ValueError("its end is missing")
    at, kinds = 12, list[bytes]()
    while at + 8 <= end:
        kind, length = struct.unpack_from("<4sI", data, at)
        if at + 8 + length > end:
            raise ValueError("its end is missing")
        kinds.append(kind)
        at += 8 + length + length % 2
    if not any(kind in kinds for kind in (*PIXELS, b"ANMF")):
        raise ValueError("it has no pixels")
