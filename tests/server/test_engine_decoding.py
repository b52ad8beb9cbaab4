"""A picture that is none never leaves the engine: decoded again in float32, and refused if that does not help."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from imageedit_server.engine.decoding import fault_of, picture_of
from imageedit_server.engine.devices.cpu import CpuDevice
from imageedit_server.worker.failures import WorkerError
from imageedit_server.worker.shapes import Size

SIZE = Size(16, 8)
GOOD = torch.linspace(-1, 1, 3 * 8 * 16).reshape(1, 3, 1, 8, 16)
BLACK = torch.full((1, 3, 1, 8, 16), -1.0)
UNDEFINED = torch.full((1, 3, 1, 8, 16), float("nan"))


class ScriptedVae:
    """Gives a fixed picture for each dtype that it runs in."""

    config = SimpleNamespace(z_dim=1, latents_mean=[0.0], latents_std=[1.0])

    def __init__(self, by_dtype: dict[torch.dtype, torch.Tensor], dtype: torch.dtype) -> None:
        self._by_dtype = by_dtype
        self.dtype = dtype
        self.ran: list[torch.dtype] = []

    def to(self, dtype: torch.dtype) -> None:
        self.dtype = dtype

    def decode(self, latents: torch.Tensor, return_dict: bool) -> tuple[torch.Tensor]:
        assert latents.dtype is self.dtype
        self.ran.append(self.dtype)
        return (self._by_dtype[self.dtype],)


class WatchedDevice(CpuDevice):
    """Notes whether the exact mode is on."""

    def __init__(self) -> None:
        self.exact_times = 0

    @contextmanager
    def exact(self) -> Iterator[None]:
        self.exact_times += 1
        yield


def pipeline(*, half: torch.Tensor, full: torch.Tensor, dtype: torch.dtype = torch.bfloat16) -> Any:
    def postprocess(image: torch.Tensor, output_type: str) -> torch.Tensor:
        assert output_type == "pt"
        return (image / 2 + 0.5).clamp(0, 1)

    return SimpleNamespace(
        vae=ScriptedVae({torch.bfloat16: half, torch.float32: full}, dtype),
        vae_scale_factor=8,
        image_processor=SimpleNamespace(postprocess=postprocess),
        _unpack_latents=lambda latents, height, width, factor: latents,
    )


def decoded(model: Any) -> tuple[bytes, bool, WatchedDevice]:
    device = WatchedDevice()
    picture, retried = picture_of(model, device, torch.zeros(1, 1, 1, 1, 1), SIZE)
    return picture, retried, device


def test_a_good_picture_is_decoded_once() -> None:
    model = pipeline(half=GOOD, full=GOOD)
    picture, retried, device = decoded(model)
    assert (len(picture), retried, device.exact_times) == (3 * SIZE.area_px, False, 0)
    assert model.vae.ran == [torch.bfloat16]


@pytest.mark.parametrize("bad", [BLACK, UNDEFINED])
def test_a_bad_picture_is_decoded_again_in_float32_and_the_vae_put_back(bad: torch.Tensor) -> None:
    model = pipeline(half=bad, full=GOOD)
    picture, retried, device = decoded(model)
    assert picture == decoded(pipeline(half=GOOD, full=GOOD))[0]
    assert (retried, device.exact_times) == (True, 1)
    assert model.vae.ran == [torch.bfloat16, torch.float32]
    assert model.vae.dtype is torch.bfloat16


@pytest.mark.parametrize(("bad", "said"), [(BLACK, "one colour"), (UNDEFINED, "NaN")])
def test_a_picture_that_is_bad_twice_is_an_error_and_the_vae_is_put_back(bad: torch.Tensor, said: str) -> None:
    model = pipeline(half=bad, full=bad)
    with pytest.raises(WorkerError, match=said) as caught:
        decoded(model)
    assert (caught.value.failure.reason, caught.value.failure.sticky) == ("BadOutput", False)
    assert model.vae.dtype is torch.bfloat16


def test_a_float32_vae_is_tried_a_second_time_too() -> None:
    model = pipeline(half=GOOD, full=UNDEFINED, dtype=torch.float32)
    with pytest.raises(WorkerError, match="twice"):
        decoded(model)
    assert model.vae.ran == [torch.float32, torch.float32]


def test_an_output_of_another_size_is_an_error() -> None:
    with pytest.raises(ValueError, match="for size 32x8"):
        picture_of(pipeline(half=GOOD, full=GOOD), CpuDevice(), torch.zeros(1, 1, 1, 1, 1), Size(32, 8))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda image: image, None),
        (lambda image: image * 0, "one colour"),
        (lambda image: image * 0 + 1, "one colour"),
        (lambda image: image * 0 + torch.tensor([0.9, 0.1, 0.5]).reshape(3, 1, 1), "one colour"),
        (lambda image: (image - 0.5) * 0.007 + 0.5, "one colour"),
        (lambda image: (image - 0.5) * 0.05 + 0.5, None),
        (lambda image: image.masked_fill(image > 0.99, float("inf")), "NaN"),
    ],
)
def test_what_counts_as_no_picture(change: Callable[[torch.Tensor], torch.Tensor], fault: str | None) -> None:
    said = fault_of(change(torch.linspace(0, 1, 3 * 8 * 16).reshape(3, 8, 16)))
    assert (said is None) if fault is None else fault in str(said)
