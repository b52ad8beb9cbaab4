"""What changes under the pods asks for a look, row by row."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from imageedit_operator.core.ground import found, is_news
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed_cards import CardLedger, SickNode

NOBODY = Unknown(reason="Forbidden", message="m")
HERE, ELSEWHERE = "node-1", "node-2"


def cards(node: str = "", *sick: str, allocatable: int = 8, requested: int = 1) -> Known[CardLedger]:
    """A ledger with these sick cards on one node."""
    words = dict.fromkeys(sick, "w")
    ill = {node: SickNode(sick=words, capacity=8, allocatable=allocatable, requested=requested)} if node else {}
    return Known(value=CardLedger(allocatable=8, requested=1, sick_nodes=ill))


def nodes(*names: str) -> Known[Mapping[str, str]]:
    return Known(value={name: f"uid-{name}" for name in names})


@pytest.mark.parametrize(
    ("before", "now", "news"),
    [
        (cards(), NOBODY, False),
        (NOBODY, NOBODY, False),
        (NOBODY, cards(), True),
        (cards(HERE, "a"), cards(HERE, "a"), False),
        (cards(HERE, "a"), cards(HERE, "a", requested=5), False),
        (cards(), cards(HERE, "a"), True),
        (cards(HERE, "a"), cards(HERE, "b"), True),
        (cards(HERE, "a"), cards(HERE, "a", allocatable=7), True),
        (cards(HERE, "a", allocatable=7, requested=7), cards(HERE, "a", allocatable=7, requested=8), True),
        (cards(HERE, "a"), cards(), True),
        (cards(), cards(ELSEWHERE, "a"), False),
    ],
)
def test_sick_cards_of_the_pods_nodes_are_news(
    before: Known[CardLedger] | Unknown, now: Known[CardLedger] | Unknown, news: bool
) -> None:
    assert is_news(found(before, NOBODY, near=[HERE]), found(now, NOBODY, near=[HERE])) is news


@pytest.mark.parametrize(
    ("before", "now", "news"),
    [
        (nodes("a"), nodes("a"), False),
        (nodes("a"), NOBODY, False),
        (nodes("a"), nodes("a", "b"), True),
        (nodes("a"), Known(value={"a": "another machine"}), True),
        (NOBODY, nodes("a"), False),
    ],
)
def test_nodes_are_news_where_copies_are_made_for_them(
    before: Known[Mapping[str, str]] | Unknown, now: Known[Mapping[str, str]] | Unknown, news: bool
) -> None:
    assert is_news(found(cards(), before, near=[HERE]), found(cards(), now, near=[HERE])) is news
