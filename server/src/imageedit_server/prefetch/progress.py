"""What the log says while gigabytes are copied."""

from __future__ import annotations

from collections.abc import Callable

EVERY_S = 10.0


class Progress:
    """Counts bytes, and says now and then how far they are; `clock` is monotonic, in seconds."""

    def __init__(self, total_bytes: int, *, say: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._total_bytes = total_bytes
        self._say = say
        self._clock = clock
        self._begun_s = self._said_s = clock()
        self._done_bytes = 0

    def add(self, path: str, done_bytes: int) -> None:
        """So many bytes more of a file are copied; a negative number takes back what has to be copied again."""
        self._done_bytes += done_bytes
        now_s = self._clock()
        if now_s - self._said_s >= EVERY_S:
            self._said_s = now_s
            self._say(f"{self._so_far(now_s)}: {path}")

    def _so_far(self, now_s: float) -> str:
        rate = self._done_bytes / (now_s - self._begun_s)
        left = f", about {(self._total_bytes - self._done_bytes) / rate:.0f} s left" if rate > 0 else ""
        return f"{amount(self._done_bytes)} of {amount(self._total_bytes)}, {amount(rate)}/s{left}"


def amount(size_bytes: float) -> str:
    """`55.1 GB`, `12.3 MB` or `812 bytes`."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return f"{size_bytes:.0f} bytes"
