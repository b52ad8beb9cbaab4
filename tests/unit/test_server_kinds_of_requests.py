"""What is taken with models that make pictures from text, edit none, or repaint under a mask."""

from __future__ import annotations

from functools import partial

import pytest

from imageedit_server.api.limits import Limits
from imageedit_server.api.requests import from_generation
from imageedit_server.api.wishes import EditRequest
from imageedit_server.errors import InvalidInput
from imageedit_server.worker.shapes import Size
from support.edit_requests import ALL, form, form_request, json_request, limits, problem

TEXT_ALONE = limits(edit=False, generate=True)


@pytest.mark.parametrize("read", [partial(json_request, b"{}", TEXT_ALONE), partial(form_request, [], TEXT_ALONE)])
def test_a_model_that_edits_nothing_says_where_to_send_the_prompt(read: partial[EditRequest]) -> None:
    with pytest.raises(InvalidInput, match="send the prompt to POST /v1/images/generations") as raised:
        read()

    assert problem(raised.value) == ("edit_unsupported", None)
    assert from_generation(b'{"prompt": "a mug"}', TEXT_ALONE).pictures == ()


def test_a_model_that_repaints_needs_a_mask() -> None:
    repaints = limits(mask_required=True)
    with pytest.raises(InvalidInput, match="send a mask") as raised:
        form_request(form(), repaints)

    assert problem(raised.value) == ("missing_parameter", "mask")
    assert form_request(form(("mask", b"a mask")), repaints).mask == b"a mask"


def test_a_picture_is_made_from_text_where_the_model_can() -> None:
    made = from_generation(b'{"prompt": "a mug", "size": "64x64"}', ALL)

    assert (made.pictures, made.mask, made.wish.size) == ((), None, Size(64, 64))


@pytest.mark.parametrize(
    ("sent", "taken", "expected"),
    [
        (b'{"prompt": "a mug"}', limits(), ("generation_unsupported", None)),
        (b'{"prompt": "a mug", "image": "YQ=="}', ALL, ("unknown_parameter", "image")),
        (b'{"prompt": "a mug", "size": "original"}', ALL, ("unsupported_value", "size")),
        (b'{"prompt": "a mug", "style": "vivid"}', ALL, ("unknown_parameter", "style")),
        (b"{}", ALL, ("missing_parameter", "prompt")),
    ],
)
def test_a_wrong_generation_is_refused(sent: bytes, taken: Limits, expected: tuple[str, str | None]) -> None:
    with pytest.raises(InvalidInput) as raised:
        from_generation(sent, taken)

    assert problem(raised.value) == expected
