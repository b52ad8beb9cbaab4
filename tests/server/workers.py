"""Builders and waits for tests that run a worker process."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from imageedit_server.worker.phase import WorkerPhase
from imageedit_server.worker.protocol import EditJob, EngineSettings
from imageedit_server.worker.shapes import Size
from imageedit_server.worker.supervisor import Worker

SMALL = Size(128, 128)
READY_OR_FAILED = (WorkerPhase.READY, WorkerPhase.FAILED)


def stub_settings(
    *,
    model_dir: str = "demo",
    sizes: tuple[Size, ...] = (SMALL,),
    steps: int = 4,
    edit_s: float = 0.02,
    load_s: float = 0.0,
    **others: Any,
) -> EngineSettings:
    return EngineSettings(
        model_dir=model_dir, device="cpu", sizes=sizes, steps=steps, stub_edit_s=edit_s, stub_load_s=load_s, **others
    )


def real_settings(
    *,
    model_dir: str = "demo",
    device: str = "cpu",
    sizes: tuple[Size, ...] = (SMALL,),
    steps: int = 16,
    **others: Any,
) -> EngineSettings:
    return EngineSettings(model_dir=model_dir, device=device, sizes=sizes, steps=steps, **others)


def edit_job(
    job_id: str = "job-1",
    *,
    picture: bytes | None = None,
    size: Size = SMALL,
    prompt: str = "make the background blue",
    steps: int = 4,
    seed: int = 1,
    **others: Any,
) -> EditJob:
    plain = bytes((10, 20, 30)) * size.area_px
    return EditJob(job_id=job_id, picture=picture or plain, size=size, prompt=prompt, steps=steps, seed=seed, **others)


class WatchedWorker(Worker):
    """A worker whose phases a test can wait for and look back at."""

    def __init__(self, settings: EngineSettings, **options: Any) -> None:
        self.phases: list[WorkerPhase] = []
        self._changed = asyncio.Event()
        super().__init__(settings, on_change=self._note, **options)

    def _note(self, phase: WorkerPhase) -> None:
        self.phases.append(phase)
        self._changed.set()

    async def until(self, *phases: WorkerPhase, timeout_s: float = 50.0) -> WorkerPhase:
        """Wait until the worker is in one of these phases."""
        async with asyncio.timeout(timeout_s):
            while self.phase not in phases:
                self._changed.clear()
                await self._changed.wait()
        return self.phase


@asynccontextmanager
async def running_worker(settings: EngineSettings, **options: Any) -> AsyncIterator[WatchedWorker]:
    """Start a worker, wait for nothing, and stop it at the end."""
    worker = WatchedWorker(settings, **options)
    await worker.start()
    try:
        yield worker
    finally:
        await worker.stop()


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie that nobody has waited for yet does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


async def until_gone(pid: int, *, timeout_s: float = 10.0) -> None:
    """Wait until a process that is not ours to wait for is gone."""
    async with asyncio.timeout(timeout_s):
        while is_alive(pid):  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(0.02)


def kill(pid: int | None, signal_number: int) -> None:
    """Send a signal to a process that must exist."""
    assert pid is not None
    os.kill(pid, signal_number)
