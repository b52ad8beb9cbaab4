"""Models of other classes through the API: pictures from text, and masks that the model itself takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from PIL import Image, ImageChops

from server.checkpoints import demo_as
from server.pictures import BLUE, GREEN, YELLOW, Scene, far_apart
from server.running import NO_TLS, RunningServer, decoded, encoded, png_base64, running_server

# Real pipelines: on a busy machine their start takes a while.
START_S = 200.0
pytestmark = pytest.mark.timeout(300)


@contextmanager
def server_of(folder: Path, class_name: str, *arguments: str) -> Iterator[RunningServer]:
    model_dir = str(demo_as(folder, class_name))
    with running_server(*arguments, model_dir=model_dir, ready_timeout_s=START_S) as running:
        yield running


def client(server: RunningServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.api + "/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="module")
def painter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Makes pictures from text alone."""
    folder = tmp_path_factory.mktemp("painter")
    for name in ("files", "jobs"):
        (folder / name).mkdir()
    options = ("--steps", "4", "--files-dir", str(folder / "files"), "--jobs-dir", str(folder / "jobs"))
    with server_of(folder, "QwenImagePipeline", *options) as running:
        yield running


@pytest.fixture(scope="module")
def inpainter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Edits pictures, and takes the mask itself."""
    with server_of(tmp_path_factory.mktemp("inpainter"), "QwenImageEditInpaintPipeline") as running:
        yield running


def test_pictures_are_made_from_text_with_number_size_and_format(painter: RunningServer) -> None:
    with client(painter) as api:
        answer: Any = api.images.generate(prompt="a mug", size="256x128", n=2, output_format="webp")
    pictures = [decoded(one.b64_json) for one in answer.data]

    assert [(picture.size, picture.format) for picture in pictures] == [((256, 128), "WEBP")] * 2
    assert pictures[0].tobytes() != pictures[1].tobytes()
    assert (answer.size, answer.model_extra["working_size"]) == ("256x128", "128x64")
    assert (answer.usage.input_tokens_details.image_tokens, answer.usage.output_tokens) == (0, 128)


async def test_the_async_client_makes_a_picture_with_the_first_size_of_the_settings(painter: RunningServer) -> None:
    async with openai.AsyncOpenAI(base_url=painter.api + "/v1", api_key="none", max_retries=0) as api:
        answer: Any = await api.images.generate(prompt="a mug", response_format="url", extra_body={"seed": 7})
    async with httpx.AsyncClient(verify=NO_TLS) as browser:
        found = await browser.get(answer.data[0].url)

    assert answer.size == "128x128"
    assert (found.status_code, found.headers["content-type"]) == (200, "image/png")


def test_a_stream_of_a_picture_from_text_has_its_own_event(painter: RunningServer) -> None:
    with client(painter) as api:
        events = list(api.images.generate(prompt="a mug", stream=True))

    assert [event.type for event in events] == ["image_generation.completed"]
    assert decoded(events[0].b64_json).size == (128, 128)


def test_edits_are_refused_on_every_path_with_where_to_go(painter: RunningServer) -> None:
    sent = {"image": png_base64(), "prompt": "make the background blue"}
    with client(painter) as api, pytest.raises(openai.BadRequestError) as raised:
        api.images.edit(image=encoded(Scene().draw()), prompt="make the background blue")
    answers = [httpx.post(painter.api + path, json=sent, verify=NO_TLS) for path in ("/v1/edit", "/v1/jobs")]

    assert raised.value.code == "edit_unsupported"
    for answer in answers:
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "edit_unsupported")
        assert "POST /v1/images/generations" in answer.json()["error"]["message"]


def test_the_model_says_that_it_makes_pictures_from_text_alone(painter: RunningServer) -> None:
    model = httpx.get(painter.api + "/v1/models", verify=NO_TLS).json()["data"][0]

    assert (model["edits"], model["generations"], model["max_images"], model["mask"]) == (False, True, 0, "none")
    assert list(painter.get("/warmz").json()["sizes"]) == ["128x128"]


def test_the_mask_reaches_the_model_and_the_rest_stays_to_the_bit(inpainter: RunningServer) -> None:
    before = Scene(colour=YELLOW, background=GREEN).draw().resize((150, 150))
    mask = Image.new("RGBA", before.size, (0, 0, 0, 255))
    mask.paste((0, 0, 0, 0), (0, 0, 75, 150))
    with client(inpainter) as api:
        answer: Any = api.images.edit(
            image=encoded(before),
            mask=encoded(mask),
            # The demo was trained by a template that ends in "Picture 1: ", and this class has one without.
            prompt="1: make the background blue",
            size="original",
            extra_body={"seed": 1},
        )
        model = api.models.retrieve(answer.model).model_extra or {}
    after = decoded(answer.data[0].b64_json)
    corner: Any = after.getpixel((4, 4))

    assert (model["mask"], model["max_images"]) == ("model", 1)
    assert far_apart(corner, BLUE) <= 24
    assert ImageChops.difference(after, before).crop((75, 0, 150, 150)).getbbox() is None


def test_requests_that_differ_in_their_mask_alone_are_not_one_edit(inpainter: RunningServer) -> None:
    before = Scene().draw()
    outputs = []
    for box in ((0, 0, 64, 128), (64, 0, 128, 128)):
        mask = Image.new("RGBA", before.size, (0, 0, 0, 255))
        mask.paste((0, 0, 0, 0), box)
        sent = {"image": png_base64(before), "mask": png_base64(mask), "prompt": "1: make the background blue"}
        headers = {"x-stainless-retry-count": "1"}
        answer = httpx.post(inpainter.api + "/v1/edit", json=sent, headers=headers, timeout=50, verify=NO_TLS)
        outputs.append(decoded(answer.json()["output"]))

    assert [ImageChops.difference(one, before).getbbox() is None for one in outputs] == [False, False]
    assert ImageChops.difference(outputs[1], before).crop((64, 0, 128, 128)).getbbox() is not None
    assert inpainter.metric("imageedit_attached_requests_total", by="content") == 0


def test_a_model_that_only_repaints_says_that_it_needs_a_mask(tmp_path: Path) -> None:
    with server_of(tmp_path, "QwenImageInpaintPipeline", "--stub-edit-seconds", "0.05") as server:
        without = server.edit()
        model = json.loads(httpx.get(server.api + "/v1/models", verify=NO_TLS).text)["data"][0]

    assert (without.status_code, without.json()["error"]["param"]) == (400, "mask")
    assert model["mask"] == "required"
