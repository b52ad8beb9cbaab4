"""Is a PNG whole? Its decoder looks at no checksum and takes rows that are missing for black. Blocking."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from isal import isal_zlib
from isal.igzip_lib import IsalError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
# First column and row of each pass of an interlaced picture, and the steps to the next ones.
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
PLAIN = ((0, 0, 1, 1),)
# Pixels are counted in pieces, so that little memory is taken however far a few bytes unfold.
PACKED_BYTES = 64 * 1024
UNPACKED_BYTES = 1024 * 1024


def check(data: bytes) -> None:
    """Look at each checksum up to the end, and count the pixels; what comes after the end does not matter.

    Raises:
        ValueError: a part is altered or missing.
    """
    missing_bytes, inflating = 0, isal_zlib.decompressobj()
    for kind, body in _chunks(data):
        if kind == b"IHDR":
            missing_bytes = _row_bytes(bytes(body))
        elif kind == b"IDAT":
            missing_bytes -= _inflated(inflating, body, missing_bytes)
        elif kind == b"IEND":
            if missing_bytes > 0:
                raise ValueError("rows are missing")
            return
    raise ValueError("its end is missing")


def _chunks(data: bytes) -> Iterator[tuple[bytes, memoryview]]:
    whole, at = memoryview(data), len(SIGNATURE)
    while at + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        end = at + 8 + length
        if end + 4 > len(data):
            raise ValueError("its end is missing")
        if struct.unpack_from(">I", data, end) != (isal_zlib.crc32(whole[at + 4 : end]),):
            raise ValueError(f"the checksum of {kind.decode('latin-1')} is wrong")
        yield kind, whole[at + 8 : end]
        at = end + 4


def _row_bytes(header: bytes) -> int:
    """Bytes of all rows of the picture with their filters, as they were before compression."""
    width_px, height_px, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    bits = CHANNELS[colour] * depth
    total = 0
    for left, top, right, down in PASSES if interlaced else PLAIN:
        columns, rows = -(-(width_px - left) // right), -(-(height_px - top) // down)
        if columns > 0 and rows > 0:
            total += rows * (1 + (columns * bits + 7) // 8)
    return total


def _inflated(inflating: isal_zlib.Decompress, body: memoryview, wanted: int) -> int:
    """How many bytes come out of one part, counted up to what is wanted."""
    found = 0
    for start in range(0, len(body), PACKED_BYTES):
        left = bytes(body[start : start + PACKED_BYTES])
        while left and found < wanted and not inflating.eof:
            try:
                found += len(inflating.decompress(left, UNPACKED_BYTES))
            except IsalError as error:  # type: ignore[misc]  # its stub says instance where it is a class
                raise ValueError(f"its pixels cannot be unpacked: {error}") from None
            left = inflating.unconsumed_tail
    return found
