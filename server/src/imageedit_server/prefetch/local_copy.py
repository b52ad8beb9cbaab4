"""A whole checkpoint: what is wanted, what is there already, the rest copied, the folder shown when it is complete."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from imageedit_server.engine.checkpoint import (
    MANIFEST_NAME,
    FileHash,
    check_checkpoint,
    digest_of,
    file_sizes,
    hash_files,
)
from imageedit_server.engine.manifest import differences_in_size, read_listing, write_listing
from imageedit_server.prefetch.copying import copy_file, is_right, part_of
from imageedit_server.prefetch.failures import PASSING, CannotCopy, Failure, of_target
from imageedit_server.prefetch.locking import locked
from imageedit_server.prefetch.progress import Progress, amount
from imageedit_server.prefetch.room import check_room
from imageedit_server.worker.failures import WorkerError


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to copy where."""

    source: Path
    target: Path
    expected_digest: str = ""
    """Digest that the source must have; empty: any."""
    reserve_percent: int = 0
    """Part of the target's disk that must stay free."""


def incoming_of(target: Path) -> Path:
    """Where a copy grows until it is whole; hidden, and on the same disk."""
    return target.with_name(f".{target.name}.incoming")


# | the target         | its manifest     | what happens                                                 |
# | is not there       |                  | the copy grows beside it and gets its name at the end        |
# | is a folder        | the source's     | every file is hashed; one that differs is replaced as a whole|
# | is a folder        | another, or none | TargetUnusable: somebody else's files are never touched      |
# | is something else  |                  | TargetUnusable                                               |
def copy_checkpoint(order: Order, *, say: Callable[[str], None], clock: Callable[[], float]) -> str:
    """Make the copy, or what is missing of it, and return the checkpoint's digest.

    Raises:
        CannotCopy: why not, with the file; what was copied stays for the next try.
    """
    listed = wanted_files(order, say)
    try:
        order.target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise of_target(error, order.target.parent) from error
    with locked(order.target, say):
        if order.target.exists() or order.target.is_symlink():
            _check_ours(order.target, listed)
            _fill(order, order.target, listed, say, clock)
        else:
            incoming = incoming_of(order.target)
            _fill(order, incoming, listed, say, clock)
            _show(incoming, order.target)
    return digest_of(listed)


def wanted_files(order: Order, say: Callable[[str], None]) -> list[FileHash]:
    """The source's files as its manifest has them, or as they are; what is wrong with them is said before a byte moves.

    Raises:
        CannotCopy: ModelMissing or ModelInvalid.
    """
    try:
        check_checkpoint(order.source)
        listed = read_listing(order.source)
        if listed is None:
            say(f"{order.source} has no manifest, so all of it is read twice; `imageedit-server manifest` writes one")
            listed = hash_files(order.source)
        odd = str(differences_in_size(listed, file_sizes(order.source)))
    except WorkerError as error:
        passes = isinstance(error.__cause__, OSError) and error.__cause__.errno in PASSING
        failure = Failure.COPY_FAILED if passes else Failure(error.failure.reason)
        raise CannotCopy(failure, error.failure.message) from error
    except OSError as error:
        words = f"{error.filename or order.source} cannot be read: {error.strerror or error}"
        raise CannotCopy(Failure.COPY_FAILED, f"{words}; let this user read it, and try again") from error
    outside = next((file.path for file in listed if not _stays_inside(file.path)), None)
    if outside is not None:
        odd = f"{outside} leads out of the checkpoint's folder"
    if odd:
        words = f"{order.source} does not match its manifest: {odd}; copy these files there again"
        raise CannotCopy(Failure.MODEL_INVALID, words)
    digest = digest_of(listed)
    if order.expected_digest and digest != order.expected_digest:
        words = f"{order.source} has the digest {digest}, and {order.expected_digest} is asked for"
        raise CannotCopy(Failure.MODEL_INVALID, f"{words}; correct the path, or the digest")
    return listed


def _stays_inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and all(not part.startswith(".") for part in parts)


def _check_ours(target: Path, listed: Sequence[FileHash]) -> None:
    try:
        found = read_listing(target) if target.is_dir() and not target.is_symlink() else None
    except WorkerError:
        found = None
    if found is None or digest_of(found) != digest_of(listed):
        what = "other files" if target.is_dir() else "no folder"
        words = f"{target} is there already and is {what}; move it away, or name another folder"
        raise CannotCopy(Failure.TARGET_UNUSABLE, words)


def _fill(
    order: Order, folder: Path, listed: Sequence[FileHash], say: Callable[[str], None], clock: Callable[[], float]
) -> None:
    """Bring every file of the list into the folder, and remove what an earlier try for other files left there."""
    try:
        folder.mkdir(exist_ok=True)
        missing = [file for file in listed if not is_right(folder / file.path, file)]
        _remove_foreign(folder, {file.path for file in listed}, {file.path for file in missing})
        needed_bytes = sum(file.size - _gathered(folder / file.path, file.size) for file in missing)
        disk = shutil.disk_usage(folder)
    except OSError as error:
        raise of_target(error, error.filename or folder) from error
    check_room(
        needed_bytes=needed_bytes,
        free_bytes=disk.free,
        disk_bytes=disk.total,
        reserve_percent=order.reserve_percent,
        where=folder.parent,
    )
    right = len(listed) - len(missing)
    say(f"{right} of {len(listed)} files are right already; {amount(needed_bytes)} are to be copied to {folder}")
    progress = Progress(needed_bytes, say=say, clock=clock)
    for file in missing:
        try:
            (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise of_target(error, error.filename or folder) from error
        copy_file(order.source / file.path, folder / file.path, file, partial(progress.add, file.path))
    try:
        write_listing(folder, listed)
        _sync(folder / MANIFEST_NAME)
    except OSError as error:
        raise of_target(error, error.filename or folder) from error


def _gathered(path: Path, most: int) -> int:
    """Bytes of a file that an earlier try left."""
    part = part_of(path)
    size_bytes = part.stat().st_size if part.is_file() else 0
    return size_bytes if size_bytes <= most else 0


def _remove_foreign(folder: Path, wanted: set[str], missing: set[str]) -> None:
    """Files of an earlier try for other files, parts of files that are whole, and folders in the place of a file."""
    keep = wanted | {MANIFEST_NAME} | {part_of(Path(path)).as_posix() for path in missing}
    for root, _, names in os.walk(folder, topdown=False):
        for name in names:
            path = Path(root, name)
            if path.relative_to(folder).as_posix() not in keep:
                path.unlink()
        if Path(root).relative_to(folder).as_posix() in wanted:
            shutil.rmtree(root)


def _show(incoming: Path, target: Path) -> None:
    """Give the whole folder its name. The files are on disk already; now their names are, too."""
    try:
        for root, _, _ in os.walk(incoming):
            _sync(Path(root))
        incoming.rename(target)
        _sync(target.parent)
    except OSError as error:
        raise of_target(error, target) from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
