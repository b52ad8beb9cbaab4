"""The real engine: the diffusers pipeline that the checkpoint names, held to the candidate sizes."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from PIL import Image

from imageedit_server.engine.base import Device, OnStep
from imageedit_server.engine.checkpoint import check_checkpoint, digest, tensor_elements
from imageedit_server.engine.faults import describe
from imageedit_server.worker.protocol import EditJob, EditResult, LoadReport, Size, WorkerError, WorkerFailure

# The picture that the text encoder sees. Larger ones cost tokens and were never trained.
_CONDITION_AREA_PX = 384 * 384


class PipelineEngine:
    """One pipeline on one device; every call comes from the same thread."""

    def __init__(self, *, model_dir: Path, device: Device) -> None:
        self._model_dir = model_dir
        self._device = device
        self._module: ModuleType | None = None
        self._pipeline: Any = None

    def load(self) -> LoadReport:
        """Check the files, open the device, load the weights, and digest the files meanwhile."""
        class_name = check_checkpoint(self._model_dir)
        self._device.open()
        with ThreadPoolExecutor(1) as hashing:
            digested = hashing.submit(digest, self._model_dir)
            with _reported_as_unusable_model(self._model_dir):
                self._module = _edit_plus_module()
                self._pipeline = _load(getattr(self._module, class_name), self._model_dir, self._device)
                checkpoint_digest = digested.result()
        with _reported_as_unusable_device():
            self._device.place(self._pipeline)
        return LoadReport(digest=checkpoint_digest, pipeline=class_name)

    def edit(self, job: EditJob, on_step: OnStep) -> EditResult:
        """Run one edit.

        Raises:
            ValueError: the model's output is not a picture of the job's size.
        """
        import torch

        def report(pipeline: Any, index: int, timestep: Any, tensors: dict[str, Any]) -> dict[str, Any]:
            del pipeline, timestep
            on_step(index + 1, job.steps)
            return tensors

        assert self._module is not None, "load() comes first"
        started_s = time.monotonic()
        _hold_reference_to(self._module, job.size)
        # Schedulers keep the state of a run; a fresh one cannot be left half used by a run that failed.
        self._pipeline.scheduler = type(self._pipeline.scheduler).from_config(self._pipeline.scheduler.config)
        with torch.no_grad():
            output = self._pipeline(
                image=[Image.frombytes("RGB", (job.size.width_px, job.size.height_px), job.picture)],
                prompt=job.prompt,
                width=job.size.width_px,
                height=job.size.height_px,
                num_inference_steps=job.steps,
                true_cfg_scale=1.0,
                # Noise from the processor is the same on every device.
                generator=torch.Generator("cpu").manual_seed(job.seed),
                output_type="pt",
                callback_on_step_end=report,
            )
            picture = _to_rgb(output.images[0], job.size)
        self._device.synchronize()
        return EditResult(job_id=job.job_id, picture=picture, seconds=time.monotonic() - started_s)

    def release_memory(self) -> None:
        """Return what a failed edit left in the device's cache."""
        self._device.release_memory()

    def close(self) -> None:
        """Drop the pipeline."""
        self._pipeline = None
        self._device.release_memory()


def _edit_plus_module() -> ModuleType:
    """Import the pipeline's module, and only that: the whole of diffusers takes several times as long."""
    from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_plus as module
    from diffusers.utils import logging as diffusers_logging
    from transformers.utils import logging as transformers_logging

    for library_logging in (diffusers_logging, transformers_logging):
        library_logging.set_verbosity_error()
        library_logging.disable_progress_bar()
    for constant in ("VAE_IMAGE_SIZE", "CONDITION_IMAGE_SIZE"):
        if not isinstance(getattr(module, constant, None), int):
            raise RuntimeError(f"this release of diffusers has no {constant}; install the release that the server pins")
    return module  # type: ignore[no-any-return]


def _load(pipeline_class: Any, model_dir: Path, device: Device) -> Any:
    pipeline = pipeline_class.from_pretrained(
        str(model_dir), dtype=device.weights_dtype(), local_files_only=True, use_safetensors=True
    )
    _check_every_weight_was_there(pipeline, model_dir)
    pipeline.set_progress_bar_config(disable=True)
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


def _hold_reference_to(module: Any, size: Size) -> None:
    """Encode the input at the candidate's own size; the stock pipeline enlarges it to a megapixel first."""
    module.VAE_IMAGE_SIZE = size.area_px
    module.CONDITION_IMAGE_SIZE = min(_CONDITION_AREA_PX, size.area_px)


def _to_rgb(image: Any, size: Size) -> bytes:
    """Turn one `3 x height x width` tensor of 0..1 into raw RGB."""
    image = image.float().cpu()
    if tuple(image.shape) != (3, size.height_px, size.width_px):
        raise ValueError(f"the model gave a picture of shape {tuple(image.shape)} for size {size}")
    if not bool(image.isfinite().all()):
        raise ValueError("the model gave a picture with undefined pixels (NaN)")
    rounded = image.mul(255).round().byte().permute(1, 2, 0).contiguous()
    return bytes(rounded.numpy().tobytes())


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
