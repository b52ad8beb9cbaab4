"""What one idempotency key stands for, over the socket: the whole request, whatever the card would make of it."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from PIL import Image

from server.running import RunningServer, decoded, encoded, picture, stub_server


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with stub_server("--warm-cfg", "on", "--max-references", "2", edit_s=0.02) as running:
        yield running


def mask(left_px: int = 0) -> bytes:
    drawn = Image.new("RGBA", (128, 128), (0, 0, 0, 255))
    drawn.paste((0, 0, 0, 0), (left_px, 0, 64, 64))
    return encoded(drawn)


def post(
    server: RunningServer,
    headers: dict[str, str],
    *files: tuple[str, bytes],
    mask_data: bytes | None = None,
    fields: dict[str, str] | None = None,
) -> httpx.Response:
    sent = [("image", encoded(picture())), ("mask", mask() if mask_data is None else mask_data), *files]
    return httpx.post(
        server.api + "/v1/images/edits",
        data={"prompt": "make the background blue", "size": "original"} | (fields or {}),
        files=[(name, ("a.png", data)) for name, data in sent],
        headers=headers,
        timeout=50,
    )


@pytest.mark.parametrize(
    "more",
    [
        {"mask_feather": "4"},
        {"output_format": "jpeg"},
        {"output_format": "jpeg", "output_compression": "50"},
        {"size": "64x64"},
        {"negative_prompt": "dull", "true_cfg_scale": "4"},
        {"n": "2"},
        {"seed": "7"},
    ],
    ids="_and_".join,
)
def test_a_key_with_another_field_is_a_conflict(server: RunningServer, more: dict[str, str]) -> None:
    key = {"idempotency-key": "_and_".join(more)}
    first, other, again = post(server, key), post(server, key, fields=more), post(server, key)

    assert [first.status_code, other.status_code, again.status_code] == [200, 409, 200]
    assert other.json()["error"]["code"] == "idempotency_key_reused"
    assert again.json()["data"] == first.json()["data"]


def test_a_key_with_another_mask_or_a_further_picture_is_a_conflict(server: RunningServer) -> None:
    key = {"idempotency-key": "files"}
    first = post(server, key)
    another_mask = post(server, key, mask_data=mask(left_px=10))
    another_picture = post(server, key, ("image[]", encoded(picture(colour=(1, 2, 3)))))

    assert [one.status_code for one in (first, another_mask, another_picture)] == [200, 409, 409]


def test_a_retry_without_a_key_shares_the_edit_and_gets_the_file_that_it_asks_for(server: RunningServer) -> None:
    first = post(server, {"x-stainless-retry-count": "0"}, fields={"seed": "11"})
    before = server.metric("imageedit_attached_requests_total", by="content")
    again = post(
        server,
        {"x-stainless-retry-count": "1"},
        mask_data=mask(left_px=10),
        fields={"seed": "11", "output_format": "webp"},
    )

    assert (first.status_code, again.status_code) == (200, 200)
    assert server.metric("imageedit_attached_requests_total", by="content") == before + 1
    assert decoded(again.json()["data"][0]["b64_json"]).format == "WEBP"
