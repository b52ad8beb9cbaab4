"""The list of words as a mounted file, read again when it changes. Blocking: call it in a thread.

A list that gets broken must not open the door: the last good one stays in force, and log and metric say so.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

from imageedit_server.errors import SettingsInvalid
from imageedit_server.logs import fields
from imageedit_server.safety.denylist import Denylist, parsed

log = logging.getLogger("imageedit.safety")

MAX_FILE_BYTES = 5 * 1024 * 1024
State = tuple[int, ...]


class DenylistFile:
    """The list that is in force.

    Args:
        on_stale: called with whether the file differs from what is in force, when that changes.

    Raises:
        SettingsInvalid: the file cannot be read at the start, or is wrong.
    """

    def __init__(self, path: Path, *, on_stale: Callable[[bool], None] = lambda _: None) -> None:
        self._path = path
        self._on_stale = on_stale
        self._stale = False
        try:
            self._seen: State | None = _state(path)
            self._list = _read(path)
        except OSError as error:
            raise SettingsInvalid(f"--prompt-denylist {path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise SettingsInvalid(f"--prompt-denylist {path}: {error}") from error

    @property
    def stale(self) -> bool:
        """The file is away or broken, and an earlier list is in force."""
        return self._stale

    def refuses(self, prompt: str) -> bool:
        """Whether the list that is in force refuses a prompt."""
        self._read_again_if_changed()
        return self._list.refuses(prompt)

    def _read_again_if_changed(self) -> None:
        # The state first: a change in between is then seen at the next request.
        try:
            state: State | None = _state(self._path)
        except OSError:
            state = None
        if state == self._seen:
            return
        # Noted before it is read, so that a broken file makes one line and not one for each request.
        self._seen = state
        try:
            self._list = _read(self._path)
        except (OSError, ValueError) as error:
            why = str(error.strerror if isinstance(error, OSError) else error)
            log.error("denylist_broken", extra=fields(path=str(self._path), why=why, in_force="the last good list"))
            self._note(stale=True)
        else:
            log.info("denylist_read", extra=fields(lines=self._list.count))
            self._note(stale=False)

    def _note(self, *, stale: bool) -> None:
        self._stale = stale
        self._on_stale(stale)


def _read(path: Path) -> Denylist:
    if path.stat().st_size > MAX_FILE_BYTES:
        raise ValueError(f"it is larger than {MAX_FILE_BYTES} bytes")
    # Some editors begin a file with a mark that is no part of its first line.
    return parsed(path.read_text(encoding="utf-8-sig"))


def _state(path: Path) -> State:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size, found.st_ino
