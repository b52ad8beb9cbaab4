"""A list of a checkpoint's files with their hashes, written where the checkpoint is made and checked where it is used.

What the sizes tell is said at once. The hashes are then read before the device is touched: a model that is not the
right one must not cost a card minutes. The second reading, by the loader, comes from the page cache.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from imageedit_server.engine.checkpoint import (
    MANIFEST_NAME,
    FileHash,
    digest_of,
    file_sizes,
    hash_files,
    listing,
    refusals_of_files,
)
from imageedit_server.worker.failures import WorkerError, WorkerFailure

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Paths, by what is wrong with them."""

    missing: tuple[str, ...] = ()
    of_another_size: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()

    def __str__(self) -> str:
        said = (
            ("missing", self.missing),
            ("truncated or of another size", self.of_another_size),
            ("not in the manifest", self.foreign),
            ("altered", self.altered),
        )
        return "; ".join(f"{what}: {listing(paths)}" for what, paths in said if paths)


def write_manifest(folder: Path) -> str:
    """Hash every file, write the manifest into the folder, whole or not at all, and return the checkpoint's digest."""
    return write_listing(folder, hash_files(folder))


def write_listing(folder: Path, files: Sequence[FileHash]) -> str:
    """Write a manifest of files that are hashed already."""
    digest = digest_of(files)
    content = {"version": _VERSION, "digest": digest, "files": [asdict(file) for file in files]}
    whole, part = folder / MANIFEST_NAME, folder / f".{MANIFEST_NAME}.part"
    part.write_text(json.dumps(content, indent=1) + "\n")
    os.replace(part, whole)
    return digest


def read_listing(folder: Path) -> list[FileHash] | None:
    """The files of a folder's manifest; None where it has none.

    Raises:
        WorkerError: ModelInvalid, the manifest is not one.
    """
    path = folder / MANIFEST_NAME
    return _read(path) if path.is_file() else None


def verify(folder: Path, *, expected_digest: str) -> str | None:
    """Hold a checkpoint to its manifest and to the digest that was asked for; return its digest, None if neither is.

    | manifest | digest asked for | what is checked |
    | --- | --- | --- |
    | no | no | nothing |
    | no | yes | the files' digest is the one asked for |
    | yes | no | each file is the manifest's |
    | yes | yes | the manifest's digest is the one asked for, then each file is the manifest's |

    Raises:
        WorkerError: ModelInvalid, with the files that differ or both digests.
    """
    with refusals_of_files(folder):
        listed = read_listing(folder)
        if listed is None:
            return _checked_digest(digest_of(hash_files(folder)), expected_digest, folder) if expected_digest else None
        digest = _checked_digest(digest_of(listed), expected_digest or digest_of(listed), folder / MANIFEST_NAME)
        by_size = differences_in_size(listed, file_sizes(folder))
        if str(by_size):
            raise _differs(folder, by_size)
        altered = Differences(altered=_altered(listed, hash_files(folder)))
        if str(altered):
            raise _differs(folder, altered)
        return digest


def differences_in_size(listed: Sequence[FileHash], sizes: Mapping[str, int]) -> Differences:
    """Compare names and sizes, which takes no reading.

    | in the manifest | in the folder | sizes | said |
    | --- | --- | --- | --- |
    | yes | no | | missing |
    | yes | yes | differ | truncated or of another size |
    | no | yes | | not in the manifest |
    | yes | yes | equal | nothing |
    """
    wanted = {file.path: file.size for file in listed}
    return Differences(
        missing=tuple(sorted(wanted.keys() - sizes.keys())),
        of_another_size=tuple(
            f"{path} ({sizes[path]} bytes instead of {size})"
            for path, size in sorted(wanted.items())
            if path in sizes and sizes[path] != size
        ),
        foreign=tuple(sorted(sizes.keys() - wanted.keys())),
    )


def _altered(listed: Sequence[FileHash], found: Sequence[FileHash]) -> tuple[str, ...]:
    wanted = {file.path: file.sha256 for file in listed}
    return tuple(file.path for file in found if wanted.get(file.path) != file.sha256)


def _read(path: Path) -> list[FileHash]:
    try:
        content = json.loads(path.read_bytes())
        if content["version"] != _VERSION:
            raise ValueError(f"version {content['version']} is not {_VERSION}")
        return [
            FileHash(path=str(file["path"]), size=int(file["size"]), sha256=str(file["sha256"]))
            for file in content["files"]
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{path} is no manifest ({error}); write it again with `imageedit-server manifest`"
        raise WorkerError(WorkerFailure(reason="ModelInvalid", message=message, sticky=True)) from error


def _checked_digest(digest: str, expected: str, where: Path) -> str:
    if digest == expected:
        return digest
    message = (
        f"{where} has the digest {digest}, and --manifest-digest asks for {expected}; "
        "mount the right checkpoint, or correct the setting"
    )
    raise WorkerError(WorkerFailure(reason="ModelInvalid", message=message, sticky=True))


def _differs(folder: Path, differences: Differences) -> WorkerError:
    message = (
        f"{folder} does not match its {MANIFEST_NAME}: {differences}; copy these files again, "
        "or write a new manifest if the change is meant"
    )
    return WorkerError(WorkerFailure(reason="ModelInvalid", message=message, sticky=True))
