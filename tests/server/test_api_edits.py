"""Edits through the real server with the real pipeline: the OpenAI client, `/v1/edit`, shapes."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from PIL import Image, ImageDraw

from server.running import RunningServer, decoded, encoded, in_background, png_base64, running_server

MODEL, REVISION = "qwen-image-edit-demo", "2026-11-a"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server("--model-name", MODEL, "--model-revision", REVISION, "--log-level", "debug") as running:
        yield running


def scene(width_px: int = 128, height_px: int = 128) -> Image.Image:
    """A red disc on grey: the kind of picture that the demo checkpoint was trained on."""
    drawn = Image.new("RGB", (width_px, height_px), (200, 200, 200))
    middle, radius = (width_px // 2, height_px // 2), min(width_px, height_px) // 4
    box = (middle[0] - radius, middle[1] - radius, middle[0] + radius, middle[1] + radius)
    ImageDraw.Draw(drawn).ellipse(box, fill=(220, 30, 30))
    return drawn


def strongest_channel(image: Image.Image, at: tuple[int, int]) -> str:
    pixel: Any = image.convert("RGB").getpixel(at)
    return "rgb"[pixel.index(max(pixel))]


def client(server: RunningServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.api + "/v1", api_key="none", max_retries=0)


def test_the_openai_client_edits_a_picture(server: RunningServer) -> None:
    with client(server) as api:
        answer = api.images.edit(image=encoded(scene()), prompt="make the background blue", model=MODEL)
    assert answer.data is not None
    picture = decoded(answer.data[0].b64_json or "")

    assert (picture.format, picture.size) == ("PNG", (128, 128))
    assert (answer.size, answer.output_format) == ("128x128", "png")
    assert strongest_channel(picture, (4, 4)) == "b"
    assert strongest_channel(picture, (64, 64)) == "r"
    assert (answer.model_extra or {})["revision"] == REVISION


async def test_the_async_openai_client_edits_a_list_of_one_picture(server: RunningServer) -> None:
    async with openai.AsyncOpenAI(base_url=server.api + "/v1", api_key="none", max_retries=0) as api:
        answer = await api.images.edit(
            image=[("photo.jpg", encoded(scene(), "JPEG"))],
            prompt="make the background green",
            n=1,
            size="auto",
            user="me",
        )
    assert answer.data is not None

    assert strongest_channel(decoded(answer.data[0].b64_json or ""), (4, 4)) == "g"


def test_edit_by_json_says_what_it_did(server: RunningServer) -> None:
    answer = server.edit(image=png_base64(scene()), seed=7).json()

    assert strongest_channel(decoded(answer.pop("output")), (4, 4)) == "b"
    assert answer.pop("seconds") > 0
    assert answer.pop("digest") == server.get("/warmz").json()["digest"]
    # "make the background blue" are four tokens of the demo's tokenizer; 128 x 128 pixels are 64.
    assert answer.pop("usage")["input_tokens_details"] == {"text_tokens": 4, "image_tokens": 64}
    assert answer == {
        "size": "128x128",
        "working_size": "128x128",
        "output_format": "png",
        "background": "opaque",
        "quality": "standard",
        "seed": 7,
        "steps": 16,
        "model": MODEL,
        "revision": REVISION,
    }


def test_the_same_seed_gives_the_same_picture(server: RunningServer) -> None:
    first, second, other = (server.edit(image=png_base64(scene()), seed=seed).json()["output"] for seed in (7, 7, 8))

    assert first == second
    assert first != other


def test_the_seed_that_was_drawn_can_be_used_again(server: RunningServer) -> None:
    drawn = server.edit(image=png_base64(scene())).json()

    assert server.edit(image=png_base64(scene()), seed=drawn["seed"]).json()["output"] == drawn["output"]


def test_seed_in_the_form_is_the_seed_in_the_json(server: RunningServer) -> None:
    with client(server) as api:
        answer = api.images.edit(
            image=encoded(scene()), prompt="make the background blue", extra_body={"seed": 7}, model=MODEL
        )
    assert answer.data is not None

    assert answer.data[0].b64_json == server.edit(image=png_base64(scene()), seed=7).json()["output"]


@pytest.mark.parametrize(("given", "returned"), [((600, 300), "128x64"), ((90, 120), "96x128"), ((32, 32), "128x128")])
def test_the_result_has_the_shape_of_the_picture_without_padding(
    server: RunningServer, given: tuple[int, int], returned: str
) -> None:
    answer = server.edit(image=png_base64(scene(*given))).json()
    picture = decoded(answer["output"])

    assert answer["size"] == returned == f"{picture.width}x{picture.height}"


def test_a_data_address_is_taken(server: RunningServer) -> None:
    assert server.edit(image="data:image/png;base64," + png_base64(scene())).status_code == 200


def test_the_model_is_listed_and_found(server: RunningServer) -> None:
    with client(server) as api:
        assert [model.id for model in api.models.list()] == [MODEL]
        assert api.models.retrieve(MODEL).owned_by == "imageedit-server"
        with pytest.raises(openai.NotFoundError) as raised:
            api.models.retrieve("dall-e-2")

    assert raised.value.code == "model_not_found"


def test_an_error_reaches_the_openai_client_with_its_parts(server: RunningServer) -> None:
    with client(server) as api, pytest.raises(openai.BadRequestError) as raised:
        api.images.edit(image=b"no picture", prompt="make the background blue", model=MODEL)
    error = raised.value

    assert (error.code, error.param, error.type) == ("invalid_image", "image", "invalid_request_error")
    assert error.request_id


def test_a_mask_keeps_the_rest_of_the_picture_to_the_bit(server: RunningServer) -> None:
    before = scene(150, 150)
    mask = Image.new("RGBA", before.size, (0, 0, 0, 255))
    mask.paste((0, 0, 0, 0), (0, 0, 150, 30))
    with client(server) as api:
        answer = api.images.edit(
            image=encoded(before), mask=encoded(mask), prompt="make the background blue", model=MODEL, size="original"
        )
    assert answer.data is not None
    after = decoded(answer.data[0].b64_json or "")

    assert strongest_channel(after, (4, 4)) == "b"
    assert after.crop((0, 30, 150, 150)).tobytes() == before.crop((0, 30, 150, 150)).tobytes()


def test_pictures_from_text_alone_are_refused_by_a_model_that_only_edits(server: RunningServer) -> None:
    with client(server) as api, pytest.raises(openai.BadRequestError) as raised:
        api.images.generate(prompt="a mug")

    assert raised.value.code == "generation_unsupported"


def test_prompts_and_pictures_are_not_logged(server: RunningServer) -> None:
    prompt = "make the zebrafish purple"
    picture = png_base64(scene())
    assert server.edit(prompt=prompt, image=picture).status_code == 200
    assert server.edit(prompt=prompt, image=picture, strength=1).status_code == 400

    assert "zebrafish" not in server.log()
    assert picture[:40] not in server.log()


def test_health_answers_fast_while_the_card_and_the_decoder_work(server: RunningServer) -> None:
    large = base64.b64encode(encoded(Image.effect_noise((2500, 2500), 60).convert("RGB"), "JPEG")).decode()
    body = {"image": large, "prompt": "make the background blue"}
    taken_s: list[float] = []
    with (
        httpx.Client(base_url=server.probes) as probes,
        in_background(*[lambda: httpx.post(server.api + "/v1/edit", json=body, timeout=50)] * 4) as answers,
    ):
        while not answers.done():
            taken_s.append(probes.get("/healthz").elapsed.total_seconds())
    taken_s.sort()

    assert [answer.status_code for answer in answers.results()] == [200] * 4
    assert len(taken_s) >= 10
    # Of the slowest tenth some wait for whatever else the test machine does.
    assert taken_s[int(len(taken_s) * 0.9)] < 0.05
