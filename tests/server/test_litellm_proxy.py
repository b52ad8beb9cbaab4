"""Clients of a litellm proxy whose model is our server: what reaches them, and what reaches the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from PIL import Image, ImageChops

from server.litellm_proxy import KEY, MODEL, LitellmProxy, litellm_proxy
from server.running import RunningServer, decoded, encoded, in_background, picture, stub_server, until

# The first run installs the proxy, and every run waits for it to start.
pytestmark = pytest.mark.timeout(900)

PROMPT = "make the background blue"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with stub_server("--queue-hard-limit", "1", "--max-references", "2", edit_s=1.0) as running:
        yield running


@pytest.fixture(scope="module")
def proxy(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LitellmProxy]:
    with litellm_proxy(tmp_path_factory.mktemp("litellm"), api_base=server.api + "/v1") as running:
        yield running


@pytest.fixture
def api(proxy: LitellmProxy) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=proxy.base_url, api_key=KEY, max_retries=0) as client:
        yield client


def edit(api: openai.OpenAI, **fields: Any) -> Any:
    return api.images.edit(**{"model": MODEL, "image": encoded(picture()), "prompt": PROMPT} | fields)


def answered(server: RunningServer, code: int) -> float:
    return server.metric("imageedit_requests_total", route="/v1/images/edits", code=str(code))


def test_a_picture_comes_back_through_the_proxy(api: openai.OpenAI) -> None:
    before = picture(100, 50)
    answer = edit(api, image=encoded(before), size="original", output_format="webp", quality="high")
    after = decoded(answer.data[0].b64_json)

    assert (after.format, after.size, answer.size, answer.quality) == ("WEBP", (100, 50), "100x50", "high")
    assert answer.usage.output_tokens == 64
    assert ImageChops.difference(after.convert("RGB"), before).getbbox() is not None


async def test_the_async_client_sends_two_pictures_a_mask_and_fields_of_our_own(proxy: LitellmProxy) -> None:
    before = picture()
    mask = Image.new("RGBA", before.size, (0, 0, 0, 255))
    mask.paste((0, 0, 0, 0), (0, 0, 64, 128))
    async with openai.AsyncOpenAI(base_url=proxy.base_url, api_key=KEY, max_retries=0) as api:
        answer: Any = await api.images.edit(
            model=MODEL,
            image=[encoded(before), encoded(picture())],
            mask=encoded(mask),
            prompt=PROMPT,
            extra_body={"seed": 7, "steps": 5},
        )
    after = decoded(answer.data[0].b64_json)

    assert answer.quality is None  # the steps were chosen
    assert answer.usage.input_tokens_details.image_tokens == 128
    assert ImageChops.difference(after, before).getbbox() == (0, 0, 64, 128)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"extra_body": {"strength": 0.5}}, "unknown_parameter"),
        ({"size": "large"}, "invalid_parameter"),
        ({"background": "transparent"}, "unsupported_value"),
        ({"image": b"no picture"}, "invalid_image"),
    ],
)
def test_an_error_of_the_server_reaches_the_client_with_its_status_and_code(
    api: openai.OpenAI, fields: dict[str, Any], code: str
) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        edit(api, **fields)

    assert f'"code":"{code}"' in raised.value.message.replace('\\"', '"')


def test_a_full_queue_is_one_refusal_that_the_client_sees_with_its_time(
    api: openai.OpenAI, server: RunningServer
) -> None:
    before = answered(server, 429)
    calls = [lambda number=number: server.edit(prompt=f"hold {number}", steps=24) for number in range(2)]
    with in_background(*calls) as held:
        until(lambda: server.health()["waiting"] == 1, what="the queue is full")
        with pytest.raises(openai.RateLimitError) as raised:
            edit(api)

    assert [answer.status_code for answer in held.results()] == [200, 200]
    assert answered(server, 429) == before + 1
    assert int(raised.value.response.headers["llm_provider-retry-after"]) >= 1


def test_a_retry_through_the_proxy_attaches_by_the_id_that_it_passes_on(
    api: openai.OpenAI, server: RunningServer
) -> None:
    edits = server.metric("imageedit_edit_seconds_count", size="128x128")
    headers = {"x-request-id": "through-the-proxy"}
    first, again = [edit(api, extra_headers=headers, extra_body={"steps": 4}) for _ in range(2)]

    assert first.data[0].b64_json == again.data[0].b64_json
    assert server.metric("imageedit_edit_seconds_count", size="128x128") == edits + 1
