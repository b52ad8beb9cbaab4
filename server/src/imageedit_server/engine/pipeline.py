"""The real engine: the diffusers pipeline that the checkpoint names, held to the candidate sizes."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from imageedit_server.engine.base import Device, OnStep
from imageedit_server.engine.calls import check_module, hold_to, pictures_of
from imageedit_server.engine.checkpoint import check_checkpoint, digest, tensor_elements
from imageedit_server.engine.decoding import picture_of
from imageedit_server.engine.faults import describe
from imageedit_server.engine.kinds import KINDS, Kind
from imageedit_server.engine.manifest import verify
from imageedit_server.engine.stopwatch import Stopwatch
from imageedit_server.worker.failures import WorkerError, WorkerFailure
from imageedit_server.worker.protocol import Capabilities, EditJob, EditResult, LoadReport

# For a job that names none: models that were distilled to take a guidance scale do not run without one.
_GUIDANCE_SCALE = 1.0
MAX_PROMPT_TOKENS = 1024
"""What the pipelines cap `max_sequence_length` at; far longer texts leave the tables of the position encoding."""


class PipelineEngine:
    """One pipeline on one device; every call comes from the same thread."""

    def __init__(
        self,
        *,
        model_dir: Path,
        device: Device,
        max_references: int = 1,
        negative_prompt: bool = False,
        expected_digest: str = "",
    ) -> None:
        self._model_dir = model_dir
        self._device = device
        self._max_references = max_references
        self._negative_prompt = negative_prompt
        self._expected_digest = expected_digest
        self._kind: Kind | None = None
        self._module: ModuleType | None = None
        self._pipeline: Any = None

    def load(self) -> LoadReport:
        """Check the files, open the device, load the weights, and digest the files meanwhile if nobody did before."""
        class_name = check_checkpoint(self._model_dir)
        kind = KINDS[class_name]
        verified = verify(self._model_dir, expected_digest=self._expected_digest)
        self._device.open()
        with ThreadPoolExecutor(1) as hashing:
            digested = hashing.submit(lambda: verified or digest(self._model_dir))
            with _reported_as_unusable_model(self._model_dir):
                self._module = _module_of(kind)
                self._pipeline = _load(getattr(self._module, class_name), kind, self._model_dir, self._device)
                self._kind = kind
                checkpoint_digest = digested.result()
        with _reported_as_unusable_device():
            self._device.place(self._pipeline)
        return LoadReport(digest=checkpoint_digest, pipeline=class_name, capabilities=self._capabilities())

    def edit(self, job: EditJob, on_step: OnStep) -> EditResult:
        """Run one edit.

        Raises:
            WorkerError: PromptTooLong; BadOutput, when the model gives no picture.
            Whatever `on_step` raises, to end it early.
            ValueError: the model's output is not a picture of the job's size.
        """
        _check_prompt_length(self._pipeline.tokenizer, job)
        stopwatch = Stopwatch()

        def report(pipeline: Any, index: int, timestep: Any, tensors: dict[str, Any]) -> dict[str, Any]:
            del pipeline, timestep
            stopwatch.step()
            on_step(index + 1, job.steps)
            return tensors

        try:
            latents = self._denoise(job, report)
            picture, retried = picture_of(self._pipeline, self._device, latents, job.size)
        except WorkerError:
            self._device.synchronize()  # an edit that was ended early left work behind, and its errors
            raise
        finally:
            self._forget_the_run()
        self._device.synchronize()
        seconds, stages = stopwatch.stop()
        return EditResult(
            job_id=job.job_id,
            picture=picture,
            seconds=seconds,
            steps=job.steps,
            retried_in_fp32=retried,
            text_tokens=_text_tokens(self._pipeline.tokenizer, job),
            stages=stages,
        )

    def release_memory(self) -> None:
        """Return what a failed edit left in the device's cache."""
        self._device.release_memory()

    def close(self) -> None:
        """Drop the pipeline."""
        self._pipeline = None
        self._device.release_memory()

    def _denoise(self, job: EditJob, report: Callable[..., dict[str, Any]]) -> Any:
        import torch

        assert self._module is not None, "load() comes first"
        assert self._kind is not None, "load() comes first"
        guided = self._capabilities().guidance
        hold_to(self._module, self._kind, job.size)
        with torch.no_grad():
            return self._pipeline(
                **pictures_of(job, self._kind, cell_px=self._pipeline.vae_scale_factor),
                prompt=job.prompt,
                negative_prompt=job.negative_prompt if job.cfg else None,
                true_cfg_scale=job.true_cfg_scale if job.cfg else 1.0,
                guidance_scale=(job.guidance_scale or _GUIDANCE_SCALE) if guided else None,
                width=job.size.width_px,
                height=job.size.height_px,
                num_inference_steps=job.steps,
                # Noise from the processor is the same on every device.
                generator=torch.Generator("cpu").manual_seed(job.seed),
                output_type="latent",
                callback_on_step_end=report,
                # Some classes would cut the text at 512 tokens in silence.
                max_sequence_length=MAX_PROMPT_TOKENS,
            ).images

    def _forget_the_run(self) -> None:
        """Leave no trace of a run in the pipeline, however it ended: the next one must not see it.

        Schedulers keep their place in a run, and the pipeline keeps its last step.
        """
        pipeline = self._pipeline
        pipeline.scheduler = type(pipeline.scheduler).from_config(pipeline.scheduler.config)
        pipeline._current_timestep = None
        pipeline._interrupt = False
        pipeline.maybe_free_model_hooks()

    def _capabilities(self) -> Capabilities:
        assert self._kind is not None, "load() comes first"
        return self._kind.capabilities(
            max_references=self._max_references,
            max_prompt_tokens=MAX_PROMPT_TOKENS,
            guidance=bool(self._pipeline.transformer.config.guidance_embeds),
            negative_prompt=self._negative_prompt,
        )


def _module_of(kind: Kind) -> ModuleType:
    """Import the pipeline's module, and only that: the whole of diffusers takes several times as long."""
    module = import_module(f"diffusers.pipelines.qwenimage.{kind.module}")
    from diffusers.utils import logging as diffusers_logging
    from transformers.utils import logging as transformers_logging

    for library_logging in (diffusers_logging, transformers_logging):
        library_logging.set_verbosity_error()
        library_logging.disable_progress_bar()
    check_module(module, kind)
    return module


def _load(pipeline_class: Any, kind: Kind, model_dir: Path, device: Device) -> Any:
    pipeline = pipeline_class.from_pretrained(
        str(model_dir), dtype=device.weights_dtype(), local_files_only=True, use_safetensors=True
    )
    _check_every_weight_was_there(pipeline, model_dir)
    pipeline.set_progress_bar_config(disable=True)
    if kind.edits:
        _encode_in_the_dtype_of_the_vae(pipeline)
    return pipeline


def _check_every_weight_was_there(pipeline: Any, model_dir: Path) -> None:
    """Refuse weights that do not fit the configuration: the libraries fill gaps with random numbers in silence.

    Names are compared where they are the same in the file and in memory; the text encoder's are renamed while it is
    loaded, so its elements are counted.
    """
    for part in ("transformer", "vae"):
        in_memory, in_file = set(getattr(pipeline, part).state_dict()), set(tensor_elements(model_dir / part))
        if in_memory != in_file:
            odd = sorted(in_memory ^ in_file)
            raise ValueError(f"{part}: {len(odd)} weights do not fit its config.json, such as {odd[0]}")
    needed = sum(parameter.numel() for parameter in pipeline.text_encoder.parameters())
    given = sum(tensor_elements(model_dir / "text_encoder").values())
    if given < needed:
        raise ValueError(f"text_encoder: its files hold {given} of the {needed} weights that its config.json asks for")


def _encode_in_the_dtype_of_the_vae(pipeline: Any) -> None:
    """Let the VAE have another dtype than the rest: the pipeline casts for its decoder, but not for its encoder."""
    encode = pipeline._encode_vae_image

    def encode_and_cast(image: Any, generator: Any) -> Any:
        return encode(image=image.to(pipeline.vae.dtype), generator=generator).to(image.dtype)

    pipeline._encode_vae_image = encode_and_cast


def _check_prompt_length(tokenizer: Any, job: EditJob) -> None:
    for text in (job.prompt, job.negative_prompt or ""):
        count = len(tokenizer(text).input_ids)
        if count > MAX_PROMPT_TOKENS:
            message = f"the prompt has {count} tokens; at most {MAX_PROMPT_TOKENS} are taken"
            raise WorkerError(WorkerFailure(reason="PromptTooLong", message=message, sticky=False))


def _text_tokens(tokenizer: Any, job: EditJob) -> int:
    texts = (job.prompt, job.negative_prompt) if job.cfg else (job.prompt,)
    return sum(len(tokenizer(text).input_ids) for text in texts)


@contextmanager
def _reported_as_unusable_model(model_dir: Path) -> Iterator[None]:
    try:
        yield
    except WorkerError:
        raise
    except Exception as error:
        message = f"{model_dir} cannot be loaded: {describe(error)}"
        raise WorkerError(WorkerFailure(reason="ModelInvalid", message=message, sticky=True)) from error


@contextmanager
def _reported_as_unusable_device() -> Iterator[None]:
    try:
        yield
    except WorkerError:
        raise
    except Exception as error:
        message = f"the model cannot be moved to the device: {describe(error)}"
        raise WorkerError(WorkerFailure(reason="DeviceUnavailable", message=message, sticky=True)) from error
