"""Devices: threads of the processor, and mixed precision as the NPU uses it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from imageedit_server.engine.checkpoint import resolve_model_dir
from imageedit_server.engine.devices.cpu import CpuDevice, thread_count
from imageedit_server.engine.devices.npu import NpuDevice
from imageedit_server.engine.pipeline import PipelineEngine
from imageedit_server.engine.select import build_engine
from imageedit_server.worker.failures import WorkerError
from imageedit_server.worker.shapes import Size
from server.checkpoints import copy_of_demo
from server.pictures import BLUE, Scene, corner_colour, far_apart
from server.workers import edit_job, real_settings


class MixedPrecisionCpu(CpuDevice):
    """The processor with the NPU's precision: bfloat16, and float32 for the VAE."""

    def weights_dtype(self) -> Any:
        import torch

        return {"default": torch.bfloat16, "vae": torch.float32}


@contextmanager
def encoded_shapes() -> Iterator[list[tuple[int, int]]]:
    """Collect height and width of everything that a VAE encodes."""
    from torch.nn.modules.module import register_module_forward_pre_hook

    shapes: list[tuple[int, int]] = []

    def note(module: Any, inputs: tuple[Any, ...]) -> None:
        if type(module).__name__ == "QwenImageEncoder3d":
            height, width = inputs[0].shape[-2:]
            shapes.append((height, width))

    hook = register_module_forward_pre_hook(note)
    try:
        yield shapes
    finally:
        hook.remove()


def test_a_float32_vae_works_with_bfloat16_for_the_rest() -> None:
    engine = PipelineEngine(model_dir=resolve_model_dir("demo"), device=MixedPrecisionCpu())
    engine.load()
    result = engine.edit(edit_job(picture=Scene().draw().tobytes(), steps=16), lambda step, steps: None)
    engine.close()
    picture = Image.frombytes("RGB", (128, 128), result.picture)
    assert far_apart(corner_colour(picture), BLUE) <= 24


def test_the_reference_is_encoded_at_the_size_of_the_job_and_not_at_a_megapixel() -> None:
    engine = PipelineEngine(model_dir=resolve_model_dir("demo"), device=CpuDevice())
    engine.load()
    size = Size(96, 64)
    with encoded_shapes() as shapes:
        engine.edit(edit_job(size=size, steps=2), lambda step, steps: None)
    engine.close()
    assert shapes == [(size.height_px, size.width_px)]


@pytest.mark.parametrize(
    ("part", "key", "value", "said"),
    [
        ("transformer", "num_layers", 5, "transformer: 32 weights do not fit"),
        ("transformer", "num_layers", 3, "transformer: 32 weights do not fit"),
        ("vae", "num_res_blocks", 2, "cannot be loaded"),
    ],
)
def test_weights_that_do_not_fit_the_configuration_are_refused(
    tmp_path: Path, part: str, key: str, value: int, said: str
) -> None:
    folder = copy_of_demo(tmp_path)
    config = json.loads((folder / part / "config.json").read_text())
    (folder / part / "config.json").write_text(json.dumps({**config, key: value}))
    with pytest.raises(WorkerError, match=said) as caught:
        PipelineEngine(model_dir=folder, device=CpuDevice()).load()
    assert caught.value.failure.reason == "ModelInvalid"


@pytest.mark.parametrize(("told", "threads"), [("1", 1), ("3", 3)])
def test_omp_num_threads_decides_when_it_is_a_number(monkeypatch: pytest.MonkeyPatch, told: str, threads: int) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    assert thread_count() == threads


@pytest.mark.parametrize("told", ["", "0", "many"])
def test_threads_come_from_the_cores_otherwise(monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    assert thread_count() >= 1


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(WorkerError, match="use npu or cpu") as caught:
        build_engine(real_settings(device="tpu"))
    assert caught.value.failure.reason == "DeviceUnavailable"


@pytest.mark.parametrize(
    ("said_by_python", "words"),
    [
        ("libascend_hal.so: cannot open shared object file", "set accelerator.injection: Plugin"),
        ("No module named 'torch_npu'", "use an image with torch_npu and CANN"),
    ],
)
def test_a_missing_driver_is_told_apart_from_a_wrong_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said_by_python: str, words: str
) -> None:
    (tmp_path / "torch_npu.py").write_text(f"raise ImportError({said_by_python!r})")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(WorkerError, match=words) as caught:
        NpuDevice().open()
    assert caught.value.failure.reason == "DeviceUnavailable"
    assert said_by_python in caught.value.failure.message
