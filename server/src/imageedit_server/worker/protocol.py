"""The messages between the API process and the worker process.

Every type is frozen, picklable and free of torch, so that both sides can import it.
"""

import re
from dataclasses import dataclass
from typing import Literal, Self

Reason = Literal[
    "ModelMissing",
    "ModelInvalid",
    "DeviceUnavailable",
    "WarmupFailed",
    "DeviceFault",
    "OutOfMemory",
    "WorkerLost",
    "EditFailed",
]

_SIZE = re.compile(r"([1-9]\d{0,4})x([1-9]\d{0,4})")


@dataclass(frozen=True, slots=True, order=True)
class Size:
    """Width and height of a picture."""

    width_px: int
    height_px: int

    def __str__(self) -> str:
        return f"{self.width_px}x{self.height_px}"

    @property
    def area_px(self) -> int:
        """Number of pixels."""
        return self.width_px * self.height_px

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `768x576`.

        Raises:
            ValueError: the text is not `<width>x<height>` in pixels.
        """
        match = _SIZE.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is not a size; write width and height in pixels, such as 768x576")
        return cls(int(match[1]), int(match[2]))


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """What the worker needs to know to load and warm a model.

    `model_dir` is a folder, or `demo` for the checkpoint inside the package. `steps` is used for the warm-up.
    `stub_edit_s` selects the stub engine: it loads nothing and holds the slot that long for each edit.
    """

    model_dir: str
    device: str
    sizes: tuple[Size, ...]
    steps: int
    stub_edit_s: float | None = None
    stub_load_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EditJob:
    """One edit. `picture` is raw RGB of exactly `size`."""

    job_id: str
    picture: bytes
    size: Size
    prompt: str
    steps: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EditResult:
    """The answer to an `EditJob`. `picture` is raw RGB of the job's size; `seconds` is the time on the device."""

    job_id: str
    picture: bytes
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """The model is in memory. `digest` covers the checkpoint's files, `pipeline` is the class that runs it."""

    digest: str
    pipeline: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmReport:
    """Every size was run once. `edit_s_by_size` gives the seconds of one edit with the settings' steps."""

    warmup_s: float
    edit_s_by_size: dict[str, float]
    check_ok: bool
    check_message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFailure:
    """Why an edit or a whole worker failed. A sticky failure needs a new process."""

    reason: Reason
    message: str
    sticky: bool


class WorkerError(Exception):
    """Carries a `WorkerFailure` to the caller."""

    def __init__(self, failure: WorkerFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """The worker's interpreter runs and begins to load the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDone:
    """`step` of `steps` denoising steps of a job are done."""

    job_id: str
    step: int
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFailed:
    """A job ended without a picture; the worker goes on unless the failure is sticky."""

    job_id: str
    failure: WorkerFailure


FromWorker = Loading | LoadReport | WarmReport | StepDone | EditResult | JobFailed | WorkerFailure
"""What the worker sends. A bare `WorkerFailure` is its last word: it cannot serve."""
