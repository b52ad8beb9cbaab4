"""An engine for tests about time and load: it holds the slot as long as it is told and inverts the picture."""

import os
import signal
import time
from pathlib import Path

from imageedit_server.engine.base import OnStep
from imageedit_server.engine.checkpoint import check_checkpoint, digest
from imageedit_server.engine.kinds import KINDS
from imageedit_server.engine.manifest import verify
from imageedit_server.worker.failures import WorkerError, WorkerFailure
from imageedit_server.worker.protocol import Capabilities, EditJob, EditResult, LoadReport
from imageedit_server.worker.shapes import Size

FAULTS: dict[str, Exception] = {
    "fault: error": ValueError("told to fail"),
    "fault: out of memory": MemoryError("NPU out of memory. Tried to allocate 2.00 GiB"),
    "fault: sticky": RuntimeError("aclrtSynchronizeStream failed, error code is 507035"),
    "fault: bad output": WorkerError(WorkerFailure(reason="BadOutput", message="told to fail", sticky=False)),
}
FAULT_CRASH, FAULT_HANG = "fault: crash", "fault: hang"
_FOR_EVER_S = 86_400.0
_INVERT = bytes(255 - value for value in range(256))


class StubEngine:
    """Takes `load_s` to load and `edit_s` for an edit with `steps` steps, fewer steps in proportion.

    It takes what the checkpoint's class takes, and a guidance scale. Each step of classifier-free guidance takes twice
    as long. A job without a picture gives a ramp. A prompt of `FAULTS` ends its edit after the first step in the way
    that it names.
    """

    def __init__(
        self,
        *,
        model_dir: Path,
        edit_s: float,
        load_s: float,
        steps: int,
        max_references: int = 1,
        negative_prompt: bool = False,
        expected_digest: str = "",
    ) -> None:
        self._model_dir = model_dir
        self._step_s = edit_s / steps
        self._load_s = load_s
        self._expected_digest = expected_digest
        self._max_references = max_references
        self._negative_prompt = negative_prompt

    def load(self) -> LoadReport:
        """Check the folder as the real engine does, wait, and load nothing."""
        kind = KINDS[check_checkpoint(self._model_dir)]
        verified = verify(self._model_dir, expected_digest=self._expected_digest)
        time.sleep(self._load_s)
        # A guidance scale is more than the demo takes, so that every field can be tried.
        can = kind.capabilities(
            max_references=self._max_references,
            max_prompt_tokens=Capabilities().max_prompt_tokens,
            guidance=True,
            negative_prompt=self._negative_prompt,
        )
        return LoadReport(digest=verified or digest(self._model_dir), pipeline="stub", capabilities=can)

    def edit(self, job: EditJob, on_step: OnStep) -> EditResult:
        """Hold the slot, step by step, then return the input inverted."""
        started_s = time.monotonic()
        step_s = self._step_s * (2 if job.cfg else 1)
        for step in range(1, job.steps + 1):
            time.sleep(max(0.0, started_s + step * step_s - time.monotonic()))
            on_step(step, job.steps)
            _fail_as_told(job.prompt)
        picture = job.picture.translate(_INVERT) or _ramp(job.size)
        return EditResult(
            job_id=job.job_id,
            picture=picture,
            seconds=time.monotonic() - started_s,
            steps=job.steps,
            text_tokens=len(job.prompt.split()),
        )

    def release_memory(self) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is held."""


def _fail_as_told(prompt: str) -> None:
    if prompt in FAULTS:
        # The same object each time: it would keep the frames, and so the pictures, of every earlier one.
        raise FAULTS[prompt].with_traceback(None)
    if prompt == FAULT_CRASH:
        os.kill(os.getpid(), signal.SIGKILL)
    if prompt == FAULT_HANG:
        time.sleep(_FOR_EVER_S)


def _ramp(size: Size) -> bytes:
    """Dark to bright over and over: a picture of one colour would fail the warm-up's check."""
    count = 3 * size.area_px
    return (bytes(range(256)) * (count // 256 + 1))[:count]
