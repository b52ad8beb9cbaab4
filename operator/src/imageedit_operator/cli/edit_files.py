"""The picture that is sent, the file that is written, and the key: all checked before anything is asked."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from imageedit_operator.cli.exits import CommandFailed, Exit

FORMATS = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """Where the result goes and as what."""

    path: Path
    format: str


def output(image: Path, asked: Path | None, *, force: bool) -> Output:
    """The file to write. Raises CommandFailed: another kind of file, it exists, or its folder does not."""
    path = image.with_name(f"{image.stem}-edited.png") if asked is None else asked
    kind = FORMATS.get(path.suffix.lower())
    if kind is None:
        raise CommandFailed(Exit.USAGE, f"{path} must end in .png, .jpg, .jpeg or .webp: that is the result's format.")
    if path.exists() and not force:
        raise CommandFailed(Exit.USAGE, f"{path} exists. Give --force to write over it, or another -o.")
    if not path.absolute().parent.is_dir():
        raise CommandFailed(Exit.USAGE, f"{path} is in a folder that does not exist.")
    return Output(path=path, format=kind)


def picture(path: Path) -> bytes:
    """The bytes of the picture. Raises CommandFailed."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CommandFailed(Exit.USAGE, f"{path} cannot be read: {error.strerror}.") from error


def key(path: Path) -> str:
    """The first line of the file that is no comment. Raises CommandFailed."""
    try:
        lines = [line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(Exit.USAGE, f"{path} cannot be read.") from error
    found = next((line for line in lines if line), "")
    if not found:
        raise CommandFailed(Exit.USAGE, f"{path} holds no key; write one into its first line.")
    return found


def save(path: Path, data: bytes) -> None:
    """The whole file or none of it. Raises CommandFailed."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.absolute().parent, prefix=f".{path.name}.", delete=False) as part:
            part.write(data)
        os.chmod(part.name, 0o666 & ~_umask())
        os.replace(part.name, path)
    except OSError as error:
        raise CommandFailed(Exit.FAILED, f"{path} cannot be written: {error.strerror}.") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
