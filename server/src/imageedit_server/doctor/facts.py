"""What was found on this machine; `rules` judges it. Frozen, and free of anything but the standard library."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A device node, and whether this user may open it."""

    path: str
    usable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder that something writes to; `use` says what."""

    path: str
    use: str
    writable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a process of its own could do with the device; `error` says why it could not go on.

    `memory_free_bytes` and `memory_total_bytes` are those of the device, 0 where it has none of its own.
    """

    device_name: str = ""
    memory_free_bytes: int = 0
    memory_total_bytes: int = 0
    matmul_s: float | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFolder:
    """A checkpoint; `error` says what is wrong with it, `manifest` whether it has one.

    `bundled`: the one inside the package, which needs none.
    """

    path: str
    pipeline: str = ""
    weights_bytes: int = 0
    manifest: bool = False
    bundled: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything together. Versions are empty where nothing was found."""

    device: str
    python: tuple[int, int, int]
    packages: Mapping[str, str] = field(default_factory=dict)
    cann: str = ""
    driver: str = ""
    driver_libraries: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    cards: tuple[Node, ...] = ()
    managers: tuple[Node, ...] = ()
    folders: tuple[Folder, ...] = ()
    host_memory_bytes: int = 0
    trial: Trial = Trial()
    model: ModelFolder | None = None
