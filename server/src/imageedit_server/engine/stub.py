"""An engine for tests about time and load: it holds the slot as long as it is told and inverts the picture."""

import time
from pathlib import Path

from imageedit_server.engine.base import OnStep
from imageedit_server.engine.checkpoint import check_checkpoint, digest
from imageedit_server.worker.protocol import EditJob, EditResult, LoadReport

_INVERT = bytes(255 - value for value in range(256))


class StubEngine:
    """Takes `load_s` to load and `edit_s` for an edit with `steps` steps, fewer steps in proportion."""

    def __init__(self, *, model_dir: Path, edit_s: float, load_s: float, steps: int) -> None:
        self._model_dir = model_dir
        self._step_s = edit_s / steps
        self._load_s = load_s

    def load(self) -> LoadReport:
        """Check the folder as the real engine does, wait, and load nothing."""
        check_checkpoint(self._model_dir)
        time.sleep(self._load_s)
        return LoadReport(digest=digest(self._model_dir), pipeline="stub")

    def edit(self, job: EditJob, on_step: OnStep) -> EditResult:
        """Hold the slot, step by step, then return the input inverted."""
        started_s = time.monotonic()
        for step in range(1, job.steps + 1):
            time.sleep(max(0.0, started_s + step * self._step_s - time.monotonic()))
            on_step(step, job.steps)
        return EditResult(
            job_id=job.job_id, picture=job.picture.translate(_INVERT), seconds=time.monotonic() - started_s
        )

    def release_memory(self) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is held."""
