"""One copier at a time for one folder."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path

from imageedit_server.prefetch.failures import of_target


def lock_of(target: Path) -> Path:
    """The file beside the folder that is locked; it stays, for a lock on a file that is gone holds nobody back."""
    return target.with_name(f".{target.name}.lock")


@contextlib.contextmanager
def locked(target: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Hold the folder's lock, waiting for whoever has it; the kernel takes it from a process that dies.

    Raises:
        CannotCopy: the lock's file cannot be written, or the file system knows no locks.
    """
    path = lock_of(target)
    try:
        file = path.open("a")
    except OSError as error:
        raise of_target(error, path) from error
    with file:
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say(f"another copier is at work on {target}; waiting for it")
                fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            raise of_target(error, path) from error
        yield


@contextlib.contextmanager
def locked_if_free(target: Path) -> Iterator[bool]:
    """Hold the folder's lock if nobody else does; whether it is held."""
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(lock_of(target).open("a"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = True
        except OSError:
            held = False
        yield held
