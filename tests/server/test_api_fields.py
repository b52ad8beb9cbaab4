"""Every field of an edit over the socket, by the OpenAI clients, and what each changes. Edits are inverted pictures."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from PIL import Image, ImageChops

from server.running import RunningServer, decoded, encoded, picture, png_base64, stub_server

PROMPT = "make the background blue"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    files = str(tmp_path_factory.mktemp("files"))
    arguments = ("--max-references", "3", "--warm-cfg", "on", "--files-dir", files, "--model-revision", "2026-11-a")
    with stub_server(*arguments, "--log-level", "debug", edit_s=0.03) as running:
        yield running


@pytest.fixture(scope="module")
def api(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.api + "/v1", api_key="none", max_retries=0) as client:
        yield client


def edit(api: openai.OpenAI, **fields: Any) -> Any:
    """One edit of a picture of 100 x 50."""
    return api.images.edit(**{"image": encoded(picture(100, 50)), "prompt": PROMPT} | fields)


def shown(answer: Any, number: int = 0) -> Image.Image:
    return decoded(answer.data[number].b64_json)


def test_the_answer_says_what_was_made_and_by_what(api: openai.OpenAI, server: RunningServer) -> None:
    answer = edit(api, extra_body={"seed": 7, "steps": 5})
    extra = answer.model_extra

    assert (answer.size, answer.output_format, answer.background, answer.quality) == ("128x64", "png", "opaque", None)
    assert (extra["working_size"], extra["seed"], extra["steps"]) == ("128x64", 7, 5)
    assert (extra["model"], extra["revision"]) == ("image-edit", "2026-11-a")
    assert extra["digest"] == server.get("/warmz").json()["digest"]
    assert extra["seconds"] > 0


def test_usage_counts_the_tokens_of_every_run(api: openai.OpenAI) -> None:
    usage = edit(api, image=[encoded(picture()), encoded(picture())], n=2).usage

    # 128 x 128 pixels are 64 tokens; two pictures are read and one is made, twice; the prompt has four words here.
    assert (usage.input_tokens_details.image_tokens, usage.input_tokens_details.text_tokens) == (256, 8)
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (264, 128, 392)


def test_n_gives_pictures_with_seeds_in_a_row(api: openai.OpenAI, server: RunningServer) -> None:
    before = server.metric("imageedit_edit_seconds_count", size="128x128")
    answer = edit(api, n=3, extra_body={"seed": 4294967295})

    assert [one.model_extra["seed"] for one in answer.data] == [4294967295, 0, 1]
    assert server.metric("imageedit_edit_seconds_count", size="128x128") == before + 3


@pytest.mark.parametrize(
    ("size", "given", "working"),
    [
        ("auto", (128, 64), "128x64"),
        ("original", (100, 50), "128x64"),
        ("200x100", (200, 100), "128x64"),
        ("128x128", (128, 128), "128x128"),
        ("64x96", (64, 96), "85x128"),
    ],
)
def test_the_size_is_the_one_that_the_answer_names(
    api: openai.OpenAI, size: str, given: tuple[int, int], working: str
) -> None:
    answer = edit(api, size=size)

    assert shown(answer).size == given
    assert (answer.size, answer.model_extra["working_size"]) == (f"{given[0]}x{given[1]}", working)


@pytest.mark.parametrize(("kind", "name"), [("png", "PNG"), ("jpeg", "JPEG"), ("webp", "WEBP")])
def test_the_file_is_of_the_kind_that_the_answer_names(api: openai.OpenAI, kind: Any, name: str) -> None:
    answer = edit(api, output_format=kind)

    assert (shown(answer).format, answer.output_format) == (name, kind)


@pytest.mark.parametrize("kind", ["jpeg", "webp"])
def test_less_quality_gives_a_smaller_file(api: openai.OpenAI, kind: Any) -> None:
    noise = encoded(Image.effect_noise((128, 128), 90))
    large, small = (
        len(edit(api, image=noise, output_format=kind, output_compression=quality).data[0].b64_json)
        for quality in (95, 20)
    )

    assert small < large / 2


@pytest.mark.parametrize(
    ("fields", "steps", "quality"),
    [
        ({}, 16, "standard"),
        ({"quality": "high"}, 24, "high"),
        ({"quality": "medium"}, 16, "standard"),
        ({"extra_body": {"num_inference_steps": 3}}, 3, None),
    ],
)
def test_quality_and_steps_decide_how_long_the_card_works(
    api: openai.OpenAI, fields: dict[str, Any], steps: int, quality: str | None
) -> None:
    answer = edit(api, **fields)

    assert (answer.model_extra["steps"], answer.quality) == (steps, quality)
    assert answer.model_extra["seconds"] >= 0.03 * steps / 16


def test_a_negative_prompt_runs_the_model_twice_a_step(api: openai.OpenAI) -> None:
    fields = {"negative_prompt": "blurry", "true_cfg_scale": 4, "steps": 16}
    alone, guided = edit(api, extra_body={"steps": 16}), edit(api, extra_body=fields)

    assert guided.model_extra["seconds"] > 1.6 * alone.model_extra["seconds"]


def test_the_kinds_of_edit_that_are_not_warm_are_refused_with_those_that_are(server: RunningServer) -> None:
    with stub_server("--max-references", "2", "--warmup-budget", "0", edit_s=0.01) as cold:
        two = [png_base64(), png_base64()]
        answer = cold.edit(image=two)

        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "not_served")
        assert "served are: 128x128" in answer.json()["error"]["message"]
    assert server.edit(image=two).status_code == 200


def test_a_result_can_be_fetched_from_its_address(api: openai.OpenAI, server: RunningServer) -> None:
    answer = edit(api, response_format="url", output_format="webp")
    found = httpx.get(answer.data[0].url)

    assert answer.data[0].b64_json is None
    assert answer.data[0].url.startswith(server.api + "/v1/files/")
    assert (found.status_code, found.headers["content-type"]) == (200, "image/webp")
    assert Image.open(io.BytesIO(found.content)).size == (128, 64)


@pytest.mark.parametrize("name", ["x" * 32 + ".png", "..%2F..%2Fetc%2Fpasswd", "a.png"])
def test_a_file_that_is_not_there_is_a_404(server: RunningServer, name: str) -> None:
    answer = httpx.get(f"{server.api}/v1/files/{name}")

    assert (answer.status_code, answer.json()["error"]["code"] in ("file_not_found", "not_found")) == (404, True)


def test_a_file_expires(tmp_path: Path) -> None:
    with stub_server("--files-dir", str(tmp_path), "--files-ttl", "0", edit_s=0.01) as server:
        with openai.OpenAI(base_url=server.api + "/v1", api_key="none", max_retries=0) as api:
            address = edit(api, response_format="url").data[0].url

        assert httpx.get(address).json()["error"]["code"] == "file_not_found"


def test_outside_of_the_mask_the_result_is_the_input_to_the_bit(api: openai.OpenAI) -> None:
    before = Image.merge("RGB", [Image.effect_noise((150, 110), 90) for _ in range(3)])
    mask = Image.new("RGBA", before.size, (0, 0, 0, 255))
    mask.paste((0, 0, 0, 0), (40, 30, 90, 70))
    answer = edit(api, image=encoded(before), mask=encoded(mask), size="original")
    after = shown(answer)
    inside = ImageChops.difference(after.crop((40, 30, 90, 70)), before.crop((40, 30, 90, 70)))

    assert (after.size, answer.model_extra["working_size"]) == (before.size, "128x94")
    assert ImageChops.difference(after, before).getbbox() == (40, 30, 90, 70)
    assert max(inside.tobytes()) > 100


async def test_the_async_client_sends_mask_and_feather(server: RunningServer) -> None:
    before = picture(100, 100, (255, 255, 255))
    mask = Image.new("RGBA", before.size, (0, 0, 0, 255))
    mask.paste((0, 0, 0, 0), (0, 0, 20, 100))
    async with openai.AsyncOpenAI(base_url=server.api + "/v1", api_key="none", max_retries=0) as api:
        answer = await api.images.edit(
            image=encoded(before), mask=encoded(mask), prompt=PROMPT, size="original", extra_body={"mask_feather": 8}
        )
    row = shown(answer).convert("L").crop((0, 5, 30, 6)).tobytes()

    assert list(row[20:]) == [255] * 10
    assert row[0] < row[14] < row[18]


def test_a_mask_of_another_size_is_refused_before_the_card_works(api: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        edit(api, mask=encoded(Image.new("RGBA", (10, 10))))

    assert (raised.value.code, raised.value.param) == ("invalid_mask", "mask")


def test_the_json_call_takes_the_same_fields(server: RunningServer) -> None:
    mask = Image.new("RGBA", (100, 50), (0, 0, 0, 255))
    mask.paste((0, 0, 0, 0), (0, 0, 50, 50))
    before = picture(100, 50)
    answer = server.edit(
        image=[png_base64(before), png_base64()],
        mask=base64.b64encode(encoded(mask)).decode(),
        size="original",
        quality="high",
        seed=3,
        negative_prompt="blurry",
        true_cfg_scale=2,
    ).json()
    after = decoded(answer["output"])

    assert (answer["size"], answer["steps"], answer["quality"], answer["seed"]) == ("100x50", 24, "high", 3)
    assert ImageChops.difference(after.crop((50, 0, 100, 50)), before.crop((50, 0, 100, 50))).getbbox() is None


def test_who_asks_is_in_the_log_and_the_prompt_is_not(api: openai.OpenAI, server: RunningServer) -> None:
    edit(api, user="customer-17", prompt="make the zebrafish purple")

    assert "customer-17" in server.log()
    assert "zebrafish" not in server.log()


def test_the_model_says_what_it_takes(api: openai.OpenAI) -> None:
    model = api.models.retrieve("image-edit").model_extra or {}

    assert (model["sizes"], model["steps"]) == (["128x128"], {"lowest": 2, "standard": 16, "high": 24})
    assert (model["max_images"], model["negative_prompt"], model["mask"]) == (3, True, "composite")
    assert model["response_formats"] == ["b64_json", "url"]


@pytest.mark.parametrize(
    ("fields", "param", "code"),
    [
        ({"n": 5}, "n", "invalid_parameter"),
        ({"size": "5000x5000"}, "size", "invalid_parameter"),
        ({"quality": "low"}, "quality", "unsupported_value"),
        ({"background": "transparent"}, "background", "unsupported_value"),
        ({"input_fidelity": "high"}, "input_fidelity", "unknown_parameter"),
        ({"partial_images": 2, "stream": True}, "partial_images", "unsupported_value"),
        ({"output_compression": 50}, "output_compression", "invalid_parameter"),
        ({"extra_body": {"strength": 0.5}}, "strength", "unknown_parameter"),
        ({"extra_body": {"true_cfg_scale": 4}}, "true_cfg_scale", "invalid_parameter"),
        ({"extra_body": {"url": "https://example.org/a.png"}}, "url", "unknown_parameter"),
        ({"image": [encoded(picture())] * 4}, "image", "too_many_images"),
    ],
)
def test_what_would_have_no_effect_is_refused_by_its_name(
    api: openai.OpenAI, fields: dict[str, Any], param: str, code: str
) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        edit(api, **fields)

    assert (raised.value.param, raised.value.code) == (param, code)
    assert raised.value.request_id
