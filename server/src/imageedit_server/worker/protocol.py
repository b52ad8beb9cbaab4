"""The messages between the API process and the worker process.

Every type is frozen, picklable and free of torch, so that both sides can import it.
"""

from dataclasses import dataclass

from imageedit_server.worker.failures import WorkerFailure
from imageedit_server.worker.shapes import Shape, Size


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """What the worker needs to know to load and warm a model.

    `model_dir` is a folder, or `demo` for the checkpoint inside the package. `steps` is used for the warm-up.
    `max_references` counts all pictures of an edit, and with `warm_cfg` edits with a negative prompt are served too:
    each multiplies what is warmed, until `warmup_budget_s` is spent. `manifest_digest` is the one digest that is taken.
    `log_level` and `pod` are for its log, JSON lines like the server's.
    `stub_edit_s` selects the stub engine: it loads nothing and holds the slot that long for each edit.
    """

    model_dir: str
    device: str
    sizes: tuple[Size, ...]
    steps: int
    max_references: int = 1
    warm_cfg: bool = False
    warmup_budget_s: float | None = None
    manifest_digest: str = ""
    stub_edit_s: float | None = None
    stub_load_s: float = 0.0
    log_level: str = "info"
    pod: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditJob:
    """One edit. `picture`, and each of the further pictures in `references`, is raw RGB of exactly `size`.

    Without `picture` one is made from text alone. `mask` is for a model that takes one: raw grey of exactly `size`,
    not 0 where to edit; empty for everywhere.
    Classifier-free guidance runs the model twice a step: only with a `negative_prompt` and `true_cfg_scale` above 1.
    `guidance_scale` is for models that were distilled to take it.
    """

    job_id: str
    picture: bytes
    size: Size
    prompt: str
    steps: int
    seed: int
    references: tuple[bytes, ...] = ()
    mask: bytes = b""
    negative_prompt: str | None = None
    true_cfg_scale: float = 1.0
    guidance_scale: float | None = None

    @property
    def cfg(self) -> bool:
        """Whether each step runs the model twice."""
        return self.negative_prompt is not None and self.true_cfg_scale > 1.0

    @property
    def shape(self) -> Shape:
        """What must have been warmed for it."""
        pictures = (1 if self.picture else 0) + len(self.references)
        return Shape(size=self.size, references=pictures, cfg=self.cfg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """Seconds on the device: encoding text and pictures, denoising, decoding the result."""

    prepare_s: float = 0.0
    denoise_s: float = 0.0
    finish_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EditResult:
    """The answer to an `EditJob`. `picture` is raw RGB of the job's size; `seconds` is the time on the device.

    `steps` were run; `retried_in_fp32` says that the first decoding was no picture and the second one, exact, was.
    `text_tokens` of prompt and negative prompt were read.
    """

    job_id: str
    picture: bytes
    seconds: float
    steps: int
    retried_in_fp32: bool = False
    text_tokens: int = 0
    stages: Stages = Stages()


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelJob:
    """End this job at its next step. One that has ended already is none to end."""

    job_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What the loaded model takes, within the settings.

    `max_references` counts all pictures of an edit: 1 is only the picture itself. `edit`: takes pictures at all;
    `generate`: pictures from text alone; `mask`: the model itself takes one, and with `mask_required` it makes no sense
    without; `guidance`: it was distilled to take a guidance scale; `negative_prompt`: with classifier-free guidance.
    `max_prompt_tokens` of each of its texts are taken.
    """

    max_references: int = 1
    max_prompt_tokens: int = 1024
    edit: bool = True
    generate: bool = False
    mask: bool = False
    mask_required: bool = False
    guidance: bool = False
    negative_prompt: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """The model is in memory. `digest` covers the checkpoint's files, `pipeline` is the class that runs it."""

    digest: str
    pipeline: str
    capabilities: Capabilities = Capabilities()


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmed:
    """A shape that was run: seconds of one edit with the settings' steps, and the longest wait for a sign of life."""

    shape: Shape
    edit_s: float
    silence_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmReport:
    """What was run. `edit_s_by_size` gives the seconds of one plain edit with the settings' steps; of one picture from
    text where the model edits none.

    `served` names every shape that was run; others would make a user wait for kernels, and are refused.
    """

    warmup_s: float
    edit_s_by_size: dict[str, float]
    check_ok: bool
    check_message: str
    served: tuple[Warmed, ...] = ()

    def warmed(self, shape: Shape) -> Warmed | None:
        """Look a shape up."""
        return next((warmed for warmed in self.served if warmed.shape == shape), None)


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


ToWorker = EditJob | CancelJob
"""What the worker gets after its settings."""

FromWorker = Loading | LoadReport | WarmReport | StepDone | EditResult | JobFailed | WorkerFailure
"""What the worker sends. A bare `WorkerFailure` is its last word: it cannot serve."""
