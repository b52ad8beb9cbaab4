"""One file from the source to its place, hashed on the way; it has its name only when every byte is right."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from imageedit_server.engine.checkpoint import FileHash
from imageedit_server.prefetch.failures import CannotCopy, Failure, of_source, of_target

CHUNK_BYTES = 8 * 1024 * 1024


def part_of(path: Path) -> Path:
    """Where the bytes of a file are gathered; hidden, so that no digest counts it."""
    return path.with_name(f".{path.name}.part")


def is_right(path: Path, wanted: FileHash) -> bool:
    """Whether the file is there with the size and the hash that are wanted."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size != wanted.size:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == wanted.sha256
    except OSError:
        return False  # what cannot be read is written anew, and that says what is wrong


# | the part that is there        | hash of all bytes | what follows                                |
# | none, or longer than the file | right             | the part gets the file's name               |
# | some bytes                    | right             | the same; only the other bytes were copied  |
# | some bytes                    | wrong             | all bytes are copied anew                   |
# | none                          | wrong             | ModelInvalid: the source is not what it was |
def copy_file(source: Path, target: Path, wanted: FileHash, on_bytes: Callable[[int], None]) -> None:
    """Copy `source` to `target`, going on where an earlier try broke off.

    `on_bytes` hears of every chunk, and of bytes of an earlier try that are thrown away, as a negative number.

    Raises:
        CannotCopy: the bytes are not those of the manifest, or cannot be read or written.
    """
    part = part_of(target)
    resumed_bytes = _length(part, most=wanted.size)
    if _gather(source, part, wanted, resumed_bytes, on_bytes) != wanted.sha256:
        if not resumed_bytes:
            raise _altered(source, part)
        on_bytes(-wanted.size)
        if _gather(source, part, wanted, 0, on_bytes) != wanted.sha256:
            raise _altered(source, part)
    try:
        os.replace(part, target)
    except OSError as error:
        raise of_target(error, target) from error


def _length(part: Path, *, most: int) -> int:
    """Bytes of an earlier try that may be gone on with."""
    try:
        length = part.stat().st_size
    except OSError:
        return 0
    return length if length <= most else 0


def _gather(source: Path, part: Path, wanted: FileHash, resumed_bytes: int, on_bytes: Callable[[int], None]) -> str:
    """Write all bytes to disk and return their hash."""
    try:
        reading = source.open("rb")
    except OSError as error:
        raise of_source(error, source) from error
    with reading:
        try:
            with part.open("r+b" if resumed_bytes else "wb") as writing:
                total = hashlib.sha256()
                while writing.tell() < resumed_bytes:
                    total.update(writing.read(min(CHUNK_BYTES, resumed_bytes - writing.tell())))
                reading.seek(resumed_bytes)
                left_bytes = wanted.size - resumed_bytes
                while left_bytes and (chunk := _read(reading, source, min(CHUNK_BYTES, left_bytes))):
                    writing.write(chunk)
                    total.update(chunk)
                    left_bytes -= len(chunk)
                    on_bytes(len(chunk))
                writing.flush()
                os.fsync(writing.fileno())
        except OSError as error:
            raise of_target(error, part) from error
    return total.hexdigest()


def _read(reading: BinaryIO, source: Path, most: int) -> bytes:
    try:
        return reading.read(most)
    except OSError as error:
        raise of_source(error, source) from error


def _altered(source: Path, part: Path) -> CannotCopy:
    part.unlink(missing_ok=True)
    words = f"{source} is not the file of the manifest; copy it there again, or write the manifest anew"
    return CannotCopy(Failure.MODEL_INVALID, words)
