"""What can be said about a checkpoint without torch: is it there, is it whole, which class, which bytes."""

import contextlib
import hashlib
import json
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from imageedit_server.engine.kinds import KINDS
from imageedit_server.worker.failures import Reason, WorkerError, WorkerFailure

DEMO = "demo"
MANIFEST_NAME = "imageedit-manifest.json"
_CHUNK_BYTES = 8 * 1024 * 1024
_READERS = 4  # hashing releases the interpreter lock; more readers than this only fight over the volume
_LFS_POINTER = b"version https://git-lfs"


def resolve_model_dir(model_dir: str) -> Path:
    """Return the folder that the setting names; `demo` is the checkpoint inside the package."""
    if model_dir == DEMO:
        return Path(__file__).parent.parent / "demo_checkpoint"
    return Path(model_dir)


def check_checkpoint(folder: Path) -> str:
    """Check that a checkpoint is whole and can be served; return the pipeline class that it names.

    Raises:
        WorkerError: ModelMissing or ModelInvalid, with the file that is at fault.
    """
    with refusals_of_files(folder):
        index = _read_model_index(folder)
        pipeline_class = _pipeline_class(index)
        for name in _components(index):
            _check_component(folder, name)
        return pipeline_class


@contextlib.contextmanager
def refusals_of_files(folder: Path) -> Iterator[None]:
    """Say of the model what the file system says of one of its files: a new worker would hear the same.

    Raises:
        WorkerError: ModelInvalid, with the file and the reason.
    """
    try:
        yield
    except OSError as error:
        message = f"{error.filename or folder} cannot be read: {error.strerror or error}; let the server's user read it"
        raise _unusable("ModelInvalid", f"{message}, or correct the model's path") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHash:
    """One file: its path inside the checkpoint, its size in bytes, and the hash of its bytes."""

    path: str
    size: int
    sha256: str


def digest(folder: Path) -> str:
    """Digest every file: `sha256:` over the lines `<path> <size> <sha256>\\n`, sorted by path.

    Hidden files and `lost+found` do not count: volumes and download tools leave them there. Nor does the manifest.
    """
    with refusals_of_files(folder):
        return digest_of(hash_files(folder))


def digest_of(files: Sequence[FileHash]) -> str:
    """Digest hashes that are there already."""
    in_order = sorted(files, key=lambda file: file.path)
    lines = (f"{file.path} {file.size} {file.sha256}\n" for file in in_order)
    return "sha256:" + hashlib.sha256("".join(lines).encode()).hexdigest()


def hash_files(folder: Path) -> list[FileHash]:
    """Read and hash every file, sorted by path."""
    paths = sorted(_files(folder), key=lambda path: path.relative_to(folder).as_posix())
    with ThreadPoolExecutor(_READERS) as readers:
        hashes = list(readers.map(_sha256, paths))
    return [
        FileHash(path=path.relative_to(folder).as_posix(), size=size_bytes, sha256=hexdigest)
        for path, (size_bytes, hexdigest) in zip(paths, hashes, strict=True)
    ]


def file_sizes(folder: Path) -> dict[str, int]:
    """Sizes in bytes by path, without reading."""
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in _files(folder)}


def listing(names: Sequence[str]) -> str:
    """Up to three names, and how many there are beyond."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def tensor_elements(part: Path) -> dict[str, int]:
    """Number of elements of each tensor that the weights of one part hold."""
    return {
        name: math.prod(tensor["shape"])
        for path in sorted(part.glob("*.safetensors"))
        for name, tensor in _read_header(path)[1].items()
    }


def _read_model_index(folder: Path) -> Mapping[str, Any]:
    path = folder / "model_index.json"
    if not folder.is_dir():
        raise _unusable("ModelMissing", f"there is no folder {folder}; mount the model there or correct its path")
    if not path.is_file():
        raise _unusable(
            "ModelMissing",
            f"{folder} holds no model_index.json; point the model's path at the folder of a diffusers checkpoint",
        )
    index = _read_json(path)
    if not isinstance(index, dict):
        raise _unusable("ModelInvalid", f"{path} is not a JSON object; copy the checkpoint again")
    return index


def _pipeline_class(index: Mapping[str, Any]) -> str:
    name = index.get("_class_name")
    if name in KINDS:
        return str(name)
    supported = ", ".join(KINDS)
    if name == "QwenImageEditPipeline":
        raise _unusable(
            "ModelInvalid",
            "the checkpoint's class QwenImageEditPipeline enlarges every picture to one megapixel, so its sizes cannot "
            f"be held; use Qwen-Image-Edit-2509 or later (supported: {supported})",
        )
    raise _unusable("ModelInvalid", f"the checkpoint's class {name} is not served here (supported: {supported})")


def _components(index: Mapping[str, Any]) -> Iterator[str]:
    """Names of the parts: entries `name: [library, class]` whose class is not null."""
    for name, value in index.items():
        if isinstance(value, list) and len(value) == 2 and value[1] is not None:
            yield name


def _check_component(folder: Path, name: str) -> None:
    part = folder / name
    if not part.is_dir():
        raise _unusable(
            "ModelInvalid", f"model_index.json names {name}, but {part} is missing; copy the whole checkpoint"
        )
    if not any(part.glob("*.json")):
        raise _unusable("ModelInvalid", f"{part} holds no configuration; copy the whole checkpoint")
    if not (part / "config.json").is_file():
        return  # tokenizer, processor, scheduler: no weights
    for index in sorted(part.glob("*.safetensors.index.json")):
        _check_shards_exist(part, index)
    weights = sorted(part.glob("*.safetensors"))
    if not weights:
        raise _unusable("ModelInvalid", f"{part} holds no .safetensors weights; copy the whole checkpoint")
    for path in weights:
        _check_safetensors(path)


def _check_shards_exist(part: Path, index: Path) -> None:
    content = _read_json(index)
    shards = content.get("weight_map", {}) if isinstance(content, dict) else {}
    missing = sorted({str(shard) for shard in shards.values() if not (part / str(shard)).is_file()})
    if missing:
        raise _unusable("ModelInvalid", f"{part} lacks {listing(missing)}; copy the whole checkpoint")


def _check_safetensors(path: Path) -> None:
    """The header says where the last tensor ends, and that must be the end of the file."""
    header_end, tensors = _read_header(path)
    ends = [tensor["data_offsets"][1] for tensor in tensors.values()]
    expected_bytes = header_end + max(ends, default=0)
    actual_bytes = path.stat().st_size
    if actual_bytes != expected_bytes:
        raise _truncated(path, actual_bytes, str(expected_bytes))


def _read_header(path: Path) -> tuple[int, Mapping[str, Mapping[str, Any]]]:
    """Return where the header of a safetensors file ends, and its tensors."""
    actual_bytes = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(8)
        if head and _LFS_POINTER.startswith(head):
            raise _unusable("ModelInvalid", f"{path} is a Git LFS pointer; fetch the real file (git lfs pull)")
        if len(head) < 8:
            raise _truncated(path, actual_bytes, "at least 8")
        (header_bytes,) = struct.unpack("<Q", head)
        if header_bytes > actual_bytes - 8:
            raise _truncated(path, actual_bytes, f"at least {header_bytes + 8}")
        try:
            header = json.loads(file.read(header_bytes))
            tensors = {
                name: {"data_offsets": tuple(tensor["data_offsets"]), "shape": tuple(tensor["shape"])}
                for name, tensor in header.items()
                if name != "__metadata__"
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _unusable("ModelInvalid", f"{path} has no safetensors header; copy the file again") from error
    return 8 + header_bytes, tensors


def _files(folder: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.name.startswith(".") or entry.name in ("lost+found", MANIFEST_NAME):
            continue
        if entry.is_dir():
            yield from _files(entry)
        elif entry.is_file():
            yield entry


def _sha256(path: Path) -> tuple[int, str]:
    total = hashlib.sha256()
    size_bytes = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            total.update(chunk)
            size_bytes += len(chunk)
    return size_bytes, total.hexdigest()


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (ValueError, OSError) as error:
        raise _unusable("ModelInvalid", f"{path} cannot be read as JSON ({error}); copy it again") from error


def _truncated(path: Path, actual_bytes: int, expected: str) -> WorkerError:
    return _unusable(
        "ModelInvalid",
        f"{path} is truncated or damaged: {actual_bytes} bytes instead of {expected}; copy the file again",
    )


def _unusable(reason: Reason, message: str) -> WorkerError:
    return WorkerError(WorkerFailure(reason=reason, message=message, sticky=True))
