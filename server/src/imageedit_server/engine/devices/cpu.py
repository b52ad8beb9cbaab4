"""The processor, for development and tests: everything in float32."""

import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

_CPU_MAX = Path("/sys/fs/cgroup/cpu.max")


class CpuDevice:
    """All cores that this container may use."""

    def open(self) -> None:
        """Set the number of threads."""
        import torch

        torch.set_num_threads(thread_count())

    def weights_dtype(self) -> Any:
        """float32: half precision is many times slower on processors."""
        import torch

        return torch.float32

    def place(self, pipeline: Any) -> None:
        """Weights are loaded where they stay."""

    def exact(self) -> AbstractContextManager[None]:
        """Nothing to switch off."""
        return nullcontext()

    def synchronize(self) -> None:
        """Nothing runs behind our back."""

    def release_memory(self) -> None:
        """The allocator gives memory back by itself."""


def thread_count() -> int:
    """OMP_NUM_THREADS, else the cores of this process, but no more than the container's quota pays for."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    if told.isdigit() and int(told) > 0:
        return int(told)
    cores = len(os.sched_getaffinity(0))
    return max(1, min(cores, _quota_cores() or cores))


def _quota_cores() -> int | None:
    try:
        quota_us, period_us = _CPU_MAX.read_text().split()
    except (OSError, ValueError):
        return None
    return None if quota_us == "max" else int(quota_us) // int(period_us)
