"""How many connections a listener may have."""

from __future__ import annotations

import pytest

from imageedit_server.api.doors import within_descriptors


@pytest.mark.parametrize(
    ("wanted", "descriptors", "allowed"),
    [
        (1050, None, 1050),
        (1050, 1_048_576, 1050),
        (1050, 1024, 701),
        (100, 1024, 66),
        (1050, 256, 175),
        (100, 4, 1),
    ],
)
def test_listeners_share_what_the_process_may_open(wanted: int, descriptors: int | None, allowed: int) -> None:
    assert within_descriptors(wanted, of_all=1150, descriptors=descriptors) == allowed
