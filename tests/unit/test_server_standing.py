"""Where an edit stands, as the comments of a stream say it."""

from __future__ import annotations

import json

import pytest

from imageedit_server.api.standing import Standing

WAITS = Standing(queue_position=2, estimated_start_s=7.43, steps=16)


@pytest.mark.parametrize(
    ("later", "moved"),
    [
        (Standing(queue_position=2, estimated_start_s=3.1, steps=16), False),
        (Standing(queue_position=1, estimated_start_s=7.43, steps=16), True),
        (Standing(queue_position=None, steps=16), True),
        (Standing(queue_position=2, steps=24), True),
    ],
)
def test_an_edit_has_moved_when_place_or_step_is_another_one(later: Standing, moved: bool) -> None:
    assert later.moved_from(WAITS) == moved


def test_a_comment_is_one_line_that_begins_with_a_colon() -> None:
    text = WAITS.comment().decode()

    assert text.startswith(": ")
    assert text.endswith("\n\n")
    assert text.count("\n") == 2
    assert json.loads(text[2:]) == {"queue_position": 2, "estimated_start_s": 7.4, "step": 0, "steps": 16}
