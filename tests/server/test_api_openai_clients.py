"""Every option of the OpenAI Images contract by both of the package's clients: what is sent, and what comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import openai
import pytest
import pytest_asyncio
from PIL import Image

from server.checkpoints import demo_as
from server.running import NO_TLS, RunningServer, decoded, encoded, picture, stub_server

BEFORE = picture(100, 50)
MASK = Image.new("RGBA", BEFORE.size, (0, 0, 0, 255))
MASK.paste((0, 0, 0, 0), (0, 0, 50, 50))
MODEL = "image-edit"

Client = openai.OpenAI | openai.AsyncOpenAI
Check = Callable[[Any], bool]


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    files = str(tmp_path_factory.mktemp("files"))
    options = ("--max-references", "3", "--warm-cfg", "on", "--files-dir", files, "--model-revision", "r1")
    with stub_server(*options, edit_s=0.02) as running:
        yield running


@pytest.fixture(scope="module")
def painter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server that makes pictures from text."""
    folder = tmp_path_factory.mktemp("painter")
    model_dir = str(demo_as(folder, "QwenImagePipeline"))
    with stub_server("--model-dir", model_dir, "--files-dir", str(folder), edit_s=0.02) as running:
        yield running


@pytest_asyncio.fixture(params=["sync", "async"])
async def clients(
    request: pytest.FixtureRequest, editor: RunningServer, painter: RunningServer
) -> AsyncIterator[list[Client]]:
    """A client of the editor and one of the painter, both blocking or both not."""
    kind = openai.OpenAI if request.param == "sync" else openai.AsyncOpenAI
    made: list[Client] = [
        kind(base_url=server.api + "/v1", api_key="none", max_retries=0) for server in (editor, painter)
    ]
    yield made
    for client in made:
        await answer_of(client.close())


async def answer_of(called: Any) -> Any:
    """What either client gives."""
    return await called if hasattr(called, "__await__") else called


async def events_of(called: Any) -> list[Any]:
    """What either client's stream gives."""
    stream = await answer_of(called)
    if hasattr(stream, "__aiter__"):
        return [event async for event in stream]
    return list(stream)


def shown(answer: Any, number: int = 0) -> Image.Image:
    return decoded(answer.data[number].b64_json)


def file_is(kind: str) -> Check:
    return lambda answer: (shown(answer).format or "").lower() == kind == answer.output_format


def size_is(width_px: int, height_px: int) -> Check:
    size = (width_px, height_px)
    return lambda answer: shown(answer).size == size and answer.size == f"{width_px}x{height_px}"


def steps_are(steps: int, quality: str | None) -> Check:
    return lambda answer: (answer.model_extra["steps"], answer.quality) == (steps, quality)


def extra(**fields: Any) -> dict[str, Any]:
    return {"extra_body": fields}


def kept_outside(answer: Any) -> bool:
    right = (50, 0, 100, 50)
    return shown(answer).crop(right).tobytes() == BEFORE.crop(right).tobytes()


def pictures_seen(count: int) -> Check:
    return lambda answer: answer.usage.input_tokens_details.image_tokens == 64 * count


EITHER: list[tuple[dict[str, Any], Check]] = [
    ({}, lambda answer: answer.created > 0 and answer.usage.total_tokens > 0),
    ({}, lambda answer: answer.model_extra["digest"].startswith("sha256:") and answer.model_extra["seed"] >= 0),
    ({"model": MODEL}, lambda answer: answer.model_extra["model"] == MODEL),
    ({"n": 2}, lambda answer: answer.data[1].model_extra["seed"] == answer.data[0].model_extra["seed"] + 1),
    ({"size": "200x120"}, size_is(200, 120)),
    ({"size": "1024x1024"}, size_is(1024, 1024)),
    ({"output_format": "png"}, file_is("png")),
    ({"output_format": "jpeg", "output_compression": 60}, file_is("jpeg")),
    ({"output_format": "webp", "output_compression": 0}, file_is("webp")),
    ({"background": "auto"}, lambda answer: answer.background == "opaque"),
    ({"background": "opaque"}, lambda answer: shown(answer).mode == "RGB"),
    ({"response_format": "b64_json"}, lambda answer: answer.data[0].url is None),
    ({"quality": "auto"}, steps_are(16, "standard")),
    ({"quality": "standard"}, steps_are(16, "standard")),
    ({"quality": "high"}, steps_are(24, "high")),
    ({"quality": "hd"}, steps_are(24, "high")),
    ({"user": "customer-17"}, lambda answer: len(answer.data) == 1),
    (extra(seed=7), lambda answer: answer.data[0].model_extra["seed"] == answer.model_extra["seed"] == 7),
    (extra(steps=5), steps_are(5, None)),
    (extra(num_inference_steps=5), steps_are(5, None)),
    (extra(guidance_scale=3.5), lambda answer: len(answer.data) == 1),
    (extra(true_cfg_scale=1.0), lambda answer: len(answer.data) == 1),
    (extra(safety_identifier="a", request_id="b"), lambda answer: len(answer.data) == 1),
]
EDITS: list[tuple[dict[str, Any], Check]] = [
    ({}, lambda answer: answer.model_extra["revision"] == "r1"),
    ({"size": "auto"}, size_is(128, 64)),
    ({"size": "original"}, size_is(100, 50)),
    ({"image": [encoded(BEFORE)]}, pictures_seen(1)),
    ({"image": [encoded(BEFORE)] * 3}, pictures_seen(3)),
    ({"image": ("a.jpg", encoded(BEFORE, "JPEG"), "image/jpeg")}, pictures_seen(1)),
    ({"mask": encoded(MASK), "size": "original"}, kept_outside),
    ({"mask": encoded(MASK), "size": "original", **extra(mask_feather=5)}, kept_outside),
    (extra(negative_prompt="dull", true_cfg_scale=4), lambda answer: answer.usage.total_tokens > 0),
    (extra(request_id="of an edit"), lambda answer: len(answer.data) == 1),
]


def name_of(value: object) -> str:
    return ",".join(value) or "plain" if isinstance(value, dict) else ""


@pytest.mark.parametrize(("fields", "right"), EITHER + EDITS, ids=name_of)
async def test_an_edit_takes_the_option(clients: list[Client], fields: dict[str, Any], right: Check) -> None:
    sent: Any = {"image": encoded(BEFORE), "prompt": "make the background blue"} | fields

    assert right(await answer_of(clients[0].images.edit(**sent)))


@pytest.mark.parametrize(("fields", "right"), EITHER, ids=name_of)
async def test_a_generation_takes_the_option(clients: list[Client], fields: dict[str, Any], right: Check) -> None:
    sent: Any = {"prompt": "a mug"} | fields

    assert right(await answer_of(clients[1].images.generate(**sent)))


async def test_a_file_can_be_asked_for_instead_of_the_picture(clients: list[Client]) -> None:
    addresses = [
        (await answer_of(call)).data[0].url
        for call in (
            clients[0].images.edit(image=encoded(BEFORE), prompt="make it blue", response_format="url"),
            clients[1].images.generate(prompt="a mug", response_format="url"),
        )
    ]
    async with httpx.AsyncClient(verify=NO_TLS) as browser:
        found = [await browser.get(address) for address in addresses]

    assert [answer.headers["content-type"] for answer in found] == ["image/png"] * 2


async def test_a_stream_ends_in_one_event_for_each_picture(clients: list[Client]) -> None:
    edits = await events_of(
        clients[0].images.edit(image=encoded(BEFORE), prompt="make it blue", stream=True, n=2, partial_images=0)
    )
    generations = await events_of(clients[1].images.generate(prompt="a mug", stream=True))

    assert [event.type for event in edits] == ["image_edit.completed"] * 2
    assert [event.type for event in generations] == ["image_generation.completed"]
    assert all(decoded(event.b64_json).format == "PNG" for event in edits + generations)
    assert all(event.usage.output_tokens == 64 for event in edits)


async def test_partial_pictures_are_refused(clients: list[Client]) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        await events_of(clients[1].images.generate(prompt="a mug", stream=True, partial_images=2))

    assert (raised.value.param, raised.value.code) == ("partial_images", "unsupported_value")


async def test_the_model_is_listed_and_found(clients: list[Client]) -> None:
    listed = await answer_of(clients[0].models.list())
    found = await answer_of(clients[0].models.retrieve(MODEL))

    assert [model.id for model in listed.data] == [MODEL]
    assert (found.id, found.owned_by) == (MODEL, "imageedit-server")


async def test_an_error_has_its_class_code_field_and_id(clients: list[Client]) -> None:
    with pytest.raises(openai.NotFoundError) as raised:
        await answer_of(clients[0].images.edit(image=encoded(BEFORE), prompt="make it blue", model="dall-e-2"))
    error = raised.value

    assert (error.code, error.param, error.type) == ("model_not_found", "model", "invalid_request_error")
    assert error.request_id
