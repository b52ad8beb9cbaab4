"""Results as files that expire, for `response_format=url`. Blocking: call it in a thread.

The folder is the only state: files outlive a restart of the process where the folder is on a volume.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from imageedit_server.errors import SettingsInvalid
from imageedit_server.settings import Settings

MEDIA_TYPES = {"png": "image/png", "jpeg": "image/jpeg", "webp": "image/webp"}
# 24 random bytes: nobody guesses one, so that the name is the permission to read.
NAME = re.compile(r"[A-Za-z0-9_-]{32}\.(png|jpeg|webp)")
UNFINISHED = re.compile(r"\.[A-Za-z0-9_-]{32}\.(png|jpeg|webp)\.part")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLimits:
    """How long files live, how many there are, and how large they are together; the oldest makes room."""

    ttl_s: float
    max_count: int
    max_bytes: int


class ResultFiles:
    """The files in one folder. Files of other names are left alone.

    Args:
        now_s: seconds since the epoch, as the file system counts them.
    """

    def __init__(self, folder: Path, limits: FileLimits, *, now_s: Callable[[], float]) -> None:
        self._folder = folder
        self._limits = limits
        self._now_s = now_s
        # Several threads save at once, and each deletes what is too much.
        self._lock = threading.Lock()

    def save(self, data: bytes, kind: str) -> str:
        """Write one file, whole or not at all, and return its name.

        Raises:
            OSError: the folder is full or cannot be written.
        """
        name = f"{secrets.token_urlsafe(24)}.{kind}"
        unfinished = self._folder / f".{name}.part"
        try:
            unfinished.write_bytes(data)
            now_s = self._now_s()
            os.utime(unfinished, (now_s, now_s))
            with self._lock:
                self._make_room(len(data))
                unfinished.rename(self._folder / name)
        finally:
            unfinished.unlink(missing_ok=True)
        return name

    def read(self, name: str) -> bytes | None:
        """The bytes of a file, or None when there is none of that name, or no longer."""
        if not NAME.fullmatch(name):
            return None
        path = self._folder / name
        try:
            if self._expired(path.stat().st_mtime):
                return None
            return path.read_bytes()
        except FileNotFoundError:
            return None

    def check_writable(self) -> None:
        """Raise OSError if no file can be written."""
        probe = self._folder / f".{secrets.token_urlsafe(24)}.png.part"
        probe.write_bytes(b"")
        probe.unlink()

    def sweep(self) -> None:
        """Delete what has expired, and what an end in the middle of writing has left behind."""
        with self._lock:
            self._age_what_is_ahead()
            self._make_room(0)
            for entry in list(os.scandir(self._folder)):
                if UNFINISHED.fullmatch(entry.name) and self._expired(entry.stat().st_mtime):
                    Path(entry.path).unlink(missing_ok=True)

    def _age_what_is_ahead(self) -> None:
        """A clock that went back since leaves files of a time to come, which would live until then and longer."""
        now_s = self._now_s()
        for entry in list(os.scandir(self._folder)):
            if NAME.fullmatch(entry.name) and entry.stat().st_mtime > now_s:
                os.utime(entry.path, (now_s, now_s))

    def _make_room(self, new_bytes: int) -> None:
        """Delete the expired, then the oldest until one more file of that size fits."""
        files = sorted(
            (entry.stat().st_mtime, entry.stat().st_size, entry.path)
            for entry in os.scandir(self._folder)
            if NAME.fullmatch(entry.name)
        )
        count, held_bytes = len(files), sum(size for _, size, _ in files)
        one_more = 1 if new_bytes else 0
        for written_s, size, path in files:
            fits = count + one_more <= self._limits.max_count and held_bytes + new_bytes <= self._limits.max_bytes
            if fits and not self._expired(written_s):
                break
            Path(path).unlink(missing_ok=True)
            count, held_bytes = count - 1, held_bytes - size

    def _expired(self, written_s: float) -> bool:
        return self._now_s() - written_s >= self._limits.ttl_s


def result_files(settings: Settings, *, now_s: Callable[[], float]) -> ResultFiles | None:
    """The files of a server, or None when it keeps none.

    Raises:
        SettingsInvalid: the folder is not there or cannot be written.
    """
    if not settings.files_dir:
        return None
    limits = FileLimits(
        ttl_s=settings.files_ttl_s, max_count=settings.files_max_count, max_bytes=settings.files_max_bytes
    )
    files = ResultFiles(Path(settings.files_dir), limits, now_s=now_s)
    try:
        files.sweep()
        files.check_writable()
    except OSError as error:
        raise SettingsInvalid(f"--files-dir {settings.files_dir} cannot be used: {error.strerror}") from error
    return files
