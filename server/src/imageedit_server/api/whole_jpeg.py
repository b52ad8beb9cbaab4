"""Is a JPEG whole? There are no checksums in it, and its decoder paints what is missing grey. Blocking.

Found for sure: parts that are cut off, restarts that are missing, and scans that end before their last block.
A byte that was altered inside a scan can be any other picture; only that it often ends too early shows it.
"""

from __future__ import annotations

import hashlib
import io
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from PIL import Image

START, END, SCAN, RESTART_EVERY = 0xD8, 0xD9, 0xDA, 0xDD
STANDALONE = (0x01, START, *range(0xD0, 0xD8))
FRAMES = tuple(value for value in range(0xC0, 0xD0) if value not in (0xC4, 0xC8, 0xCC))
PROGRESSIVE = 0xC2
HUFFMAN_FRAMES = (0xC0, 0xC1, PROGRESSIVE)
# In the data of a scan FF 00 is a byte and FF D0 to D7 a restart; any other pair ends it.
SCAN_END = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
RESTART = re.compile(rb"\xff([\xd0-\xd7])")
# A progressive picture has about ten. Each one walks over all blocks, so that a small file could take hours.
MAX_SCANS = 100
# Blocks of many kinds, with no FF among them.
MORE = bytes((97 * index + 31) % 255 for index in range(64))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """What the header says: how blocks are coded, the size, and each component's samples across and down."""

    kind: int
    width_px: int
    height_px: int
    sampling: dict[int, tuple[int, int]]

    def units(self, components: bytes) -> int:
        """Units of a scan: blocks of its one component, or groups of blocks of all its components."""
        across = max(across for across, _ in self.sampling.values())
        down = max(down for _, down in self.sampling.values())
        if len(components) == 1:
            own_across, own_down = self.sampling[components[0]]
            return _up(_up(self.width_px * own_across, across), 8) * _up(_up(self.height_px * own_down, down), 8)
        return _up(self.width_px, 8 * across) * _up(self.height_px, 8 * down)


def check(data: bytes) -> None:
    """Raise if a part is missing; what comes after the end of the first picture does not matter.

    Raises:
        ValueError, KeyError, struct.error: a part is missing, or contradicts another.
    """
    frame, every, ends = None, 0, list[int]()
    for marker, body, at in _parts(data):
        if marker in FRAMES:
            frame = _frame(marker, body)
        elif marker == RESTART_EVERY:
            (every,) = struct.unpack_from(">H", body)
        elif marker == SCAN and frame is not None:
            ends.append(_scan_end(data, at))
            if len(ends) > MAX_SCANS:
                raise ValueError(f"it has more than {MAX_SCANS} scans")
            wanted = 0 if every == 0 else _up(frame.units(body[1 : 1 + 2 * body[0] : 2]), every) - 1
            _check_restarts(data[at : ends[-1]], wanted)
    if frame is None or not ends:
        raise ValueError("it has no pixels")
    if frame.kind in HUFFMAN_FRAMES and not _ignores_more(data, ends, progressive=frame.kind == PROGRESSIVE):
        raise ValueError("blocks are missing")


def _parts(data: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Each part up to the end: its marker, its body, and where that ends. Some cameras leave zeros between parts."""
    at = 2
    while True:
        at = data.find(b"\xff", at)
        if not 0 <= at < len(data) - 1:
            raise ValueError("its end is missing")
        marker, at = data[at + 1], at + 1
        if marker in (0x00, 0xFF):
            continue
        if marker == END:
            return
        if marker in STANDALONE:
            continue
        end = at + 1 + int.from_bytes(data[at + 1 : at + 3], "big")
        if end > len(data):
            raise ValueError("its end is missing")
        yield marker, data[at + 3 : end], end
        at = _scan_end(data, end) if marker == SCAN else end


def _frame(kind: int, body: bytes) -> _Frame:
    height_px, width_px, count = struct.unpack_from(">HHB", body, 1)
    found = [struct.unpack_from("BB", body, 6 + 3 * index) for index in range(count)]
    sampling = {number: (both >> 4, both & 15) for number, both in found}
    if not all(across and down for across, down in sampling.values()):
        raise ValueError("a component of it has no samples")
    return _Frame(kind=kind, width_px=width_px, height_px=height_px, sampling=sampling)


def _scan_end(data: bytes, at: int) -> int:
    found = SCAN_END.search(data, at)
    if found is None:
        raise ValueError("its end is missing")
    return found.start()


def _check_restarts(scan: bytes, wanted: int) -> None:
    numbers = [restart[0] for restart in RESTART.findall(scan)]
    if len(numbers) < wanted or any(number != 0xD0 + index % 8 for index, number in enumerate(numbers)):
        raise ValueError("parts are missing or in another order")


def _ignores_more(data: bytes, scan_ends: list[int], *, progressive: bool) -> bool:
    """Whether further blocks at the end of each scan change nothing, as it must be if none is missing."""
    starts = [0, *scan_ends]
    parts = [data[start:end].rstrip(b"\xff") for start, end in zip(starts, scan_ends, strict=False)]
    # A block is one pixel at an eighth of the size. The later scans of a progressive file add nothing to that pixel, so
    # it is looked at by half of its size.
    share = 2 if progressive else 8
    return _digest(data, share) == _digest(MORE.join([*parts, data[scan_ends[-1] :]]), share)


def _digest(data: bytes, share: int) -> bytes:
    with Image.open(io.BytesIO(data), formats=("JPEG",)) as opened:
        opened.draft(None, (max(1, opened.width // share), max(1, opened.height // share)))
        return hashlib.sha256(opened.tobytes()).digest()


def _up(value: int, step: int) -> int:
    return -(-value // step)
