"""Copies of earlier revisions that nothing needs any more: they would fill the disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from imageedit_server.prefetch.failures import of_target
from imageedit_server.prefetch.local_copy import incoming_of
from imageedit_server.prefetch.locking import locked_if_free


# | a folder beside the target                 | what happens                         |
# | begins with the prefix, and is not kept    | is removed, with what was on the way |
# | the same, while a copier is at work on it  | stays                                |
# | is the target, or kept                     | stays                                |
# | anything else                              | stays                                |
def remove_others(target: Path, *, prefix: str, keep: Collection[str], say: Callable[[str], None]) -> None:
    """Remove the copies beside `target` whose names begin with `prefix`, but for the target and those to `keep`.

    Raises:
        CannotCopy: one of them cannot be removed.
    """
    try:
        names = {_name(entry) for entry in target.parent.iterdir()} if target.parent.is_dir() else set()
        for name in sorted(names):
            if name.startswith(prefix) and name != target.name and name not in keep:
                _remove(target.with_name(name), say)
    except OSError as error:
        raise of_target(error, error.filename or target.parent) from error


def _name(entry: Path) -> str:
    """The copy that an entry belongs to."""
    return entry.name.removeprefix(".").removesuffix(".incoming").removesuffix(".gone").removesuffix(".lock")


def _remove(copy: Path, say: Callable[[str], None]) -> None:
    with locked_if_free(copy) as held:
        if not held:
            return
        gone = copy.with_name(f".{copy.name}.gone")
        if copy.exists():
            say(f"removes {copy}, which no revision needs any more")
            copy.rename(gone)  # first out of sight: half a checkpoint must never be found
        for folder in (gone, incoming_of(copy)):
            if folder.exists():
                shutil.rmtree(folder)
