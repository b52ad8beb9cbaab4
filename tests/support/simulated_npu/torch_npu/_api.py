"""The module `torch.npu`: what a program asks a card for."""

import contextlib
import types
from collections.abc import Iterator
from typing import Any

import torch

from ._state import CARD

NAME = "Ascend910B-simulated"


@contextlib.contextmanager
def _device(device: Any) -> Iterator[None]:
    _set_device(device)
    yield


def _set_device(device: Any) -> None:
    index = device if isinstance(device, int) else torch.device(device).index
    if index not in (None, 0):
        raise RuntimeError(f"Invalid device ID: {index}, there is 1 device. error code is 107001")


def _synchronize(device: Any = None) -> None:
    del device
    CARD.synchronize()


def _empty_cache() -> None:
    """As on a card, this fails once the context is lost."""
    if CARD.dead is not None:
        raise CARD.dead


def _reset_peak(device: Any = None) -> None:
    del device
    CARD.peak_bytes = CARD.allocated_bytes


def module() -> types.ModuleType:
    """Make the module."""
    made = types.ModuleType("torch.npu")
    members: dict[str, Any] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": lambda: None,
        "_lazy_init": lambda: None,
        "_is_in_bad_fork": lambda: False,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "device": _device,
        "set_device": _set_device,
        "synchronize": _synchronize,
        "empty_cache": _empty_cache,
        "mem_get_info": lambda device=None: (CARD.capacity_bytes - CARD.allocated_bytes, CARD.capacity_bytes),
        "memory_allocated": lambda device=None: CARD.allocated_bytes,
        "max_memory_allocated": lambda device=None: CARD.peak_bytes,
        "reset_peak_memory_stats": _reset_peak,
        "get_device_name": lambda device=None: NAME,
        "manual_seed": lambda seed: None,
        "manual_seed_all": lambda seed: None,
        "get_amp_supported_dtype": lambda: [torch.float16, torch.bfloat16],
        "is_bf16_supported": lambda: True,
        "set_compile_mode": lambda *, jit_compile: None,
        "conv": types.SimpleNamespace(allow_hf32=True),
        "matmul": types.SimpleNamespace(allow_hf32=False),
        "config": types.SimpleNamespace(allow_internal_format=False),
        "OutOfMemoryError": torch.OutOfMemoryError,
    }
    for name, member in members.items():
        setattr(made, name, member)
    return made
