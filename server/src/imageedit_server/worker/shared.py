"""Pictures on their way between the two processes: memory that both see, one area for each direction.

A pipe holds 64 KiB, so a picture of two megabytes goes through it in thirty small pieces, and the card waits for the
next picture meanwhile. Only what is large goes here; the message itself, with the places of its large parts, goes
through the pipe, which also says when they may be read.

An area has two halves, used in turn: one edit runs, and one more is in the worker's hand. A half is free again when its
next message comes, because the job after these two is sent only when the answer to the first has been read, and each
side copies what it reads at once.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
from dataclasses import dataclass
from typing import Any

from imageedit_server.worker.protocol import EngineSettings

LARGE_BYTES = 32 * 1024
RGB_BYTES = 3

Place = tuple[int, int]


class Area:
    """One direction's memory; one side only writes, the other only reads."""

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, os.fstat(descriptor).st_size)
        self._half_bytes = len(self._memory) // 2
        self._start = self._half_bytes
        self._used_bytes = 0

    def pickled(self, message: object) -> bytes:
        """The message without its large parts, which are in the area now. What does not fit stays in the message."""
        if self._used_bytes:
            self._start = self._half_bytes - self._start
        self._used_bytes = 0
        file = io.BytesIO()
        _Pickler(file, self).dump(message)
        return file.getvalue()

    def unpickled(self, body: bytes) -> Any:
        """The message that `pickled` made on the other side."""
        return _Unpickler(io.BytesIO(body), self).load()

    def put(self, data: bytes) -> Place | None:
        """Keep one large part; its place, or None when it does not fit."""
        if self._used_bytes + len(data) > self._half_bytes:
            return None
        start = self._start + self._used_bytes
        end = start + len(data)
        self._memory[start:end] = data
        self._used_bytes += len(data)
        return start, end

    def get(self, place: Place) -> bytes:
        """A copy of one large part."""
        start, end = place
        return self._memory[start:end]

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Areas:
    """Both directions, as one process has them."""

    outgoing: Area
    incoming: Area

    def close(self) -> None:
        """Give the memory back."""
        self.outgoing.close()
        self.incoming.close()


def make_descriptors(settings: EngineSettings) -> tuple[int, int]:
    """Anonymous memory for what goes to the worker and for what comes back; pages take memory once they are used."""
    area_px = max(size.area_px for size in settings.sizes)
    picture_bytes, mask_bytes = RGB_BYTES * area_px, area_px
    to_worker_bytes = settings.max_references * picture_bytes + mask_bytes
    return _made("to-worker", 2 * to_worker_bytes), _made("from-worker", 2 * picture_bytes)


def opened(*, outgoing: int, incoming: int) -> Areas:
    """See both areas; the descriptors are closed, the memory stays until both processes are through with it."""
    areas = Areas(outgoing=Area(outgoing), incoming=Area(incoming))
    os.close(outgoing)
    os.close(incoming)
    return areas


def _made(name: str, size_bytes: int) -> int:
    descriptor = os.memfd_create(f"imageedit-{name}")
    os.ftruncate(descriptor, size_bytes)
    return descriptor


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, area: Area) -> None:
        super().__init__(file, protocol=5)
        self._area = area

    def persistent_id(self, obj: object) -> Place | None:
        return self._area.put(obj) if isinstance(obj, bytes) and len(obj) >= LARGE_BYTES else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, area: Area) -> None:
        super().__init__(file)
        self._area = area

    def persistent_load(self, pid: Place) -> bytes:
        return self._area.get(pid)
