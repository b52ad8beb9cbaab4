"""Trees and tables fit the terminal, and nothing that a cluster says steers it."""

from __future__ import annotations

import re

import pytest

from imageedit_operator.cli.screen import Branch, Cell, Screen, aligned, duration, screen_for, table, tree

FILE = Screen()
NARROW = Screen(width=40)


def test_a_tree_joins_its_branches_by_lines() -> None:
    leaf = Branch(cells=(Cell("leaf"),))
    root = Branch(cells=(Cell("root"),), below=(Branch(cells=(Cell("one"),), below=(leaf,)), Branch(words="two")))

    assert tree(root, FILE) == ["root", "├─ one", "│  └─ leaf", "└─ two"]


def test_words_wrap_below_themselves_at_the_width_of_the_terminal() -> None:
    words = "a sentence that is longer than the terminal is wide"
    lines = tree(Branch(below=(Branch(cells=(Cell("cards"),), words=words),)), NARROW)[1:]

    assert len(lines) > 1
    assert max(map(len, lines)) <= 40
    assert lines[1].startswith(" " * lines[0].index("a sentence"))
    assert " ".join(line.strip("└─ ").removeprefix("cards").strip() for line in lines) == words


def test_a_file_gets_whole_lines_and_no_colours() -> None:
    words = "word " * 60
    (line,) = tree(Branch(cells=(Cell("bad", "bad"),), words=words), FILE)

    assert line == f"bad  {words.strip()}"


def test_colours_do_not_count_for_the_columns() -> None:
    rows = [[Cell("a", "bad"), Cell("x")], [Cell("long"), Cell("y")]]
    plain = table(rows, FILE)
    coloured = table(rows, Screen(colour=True))

    assert plain == ["a     x", "long  y"]
    assert [re.sub(r"\x1b\[\d+m", "", line) for line in coloured] == plain
    assert coloured != plain


def test_a_table_is_cut_at_the_width_of_the_terminal() -> None:
    (line,) = table([[Cell("name"), Cell("x" * 100)]], NARROW)

    assert len(line) <= 40
    assert line.endswith("…")


def test_a_column_that_is_empty_everywhere_is_left_out() -> None:
    branches = aligned([Branch(cells=(Cell("a"), Cell(""), Cell("b")))])
    assert tree(Branch(below=branches), FILE)[-1] == "└─ a  b"


def test_control_characters_of_the_cluster_do_not_reach_the_terminal() -> None:
    evil = "\x1b]0;title\x07\n\x1b[2J"
    lines = tree(Branch(cells=(Cell(evil),), words=evil), FILE) + table([[Cell(evil)]], FILE)

    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize(
    ("terminal", "environment", "screen"),
    [
        (True, {}, Screen(width=100, colour=True)),
        (True, {"NO_COLOR": ""}, Screen(width=100, colour=True)),
        (True, {"NO_COLOR": "1"}, Screen(width=100)),
        (True, {"TERM": "dumb"}, Screen(width=100)),
        (False, {}, Screen()),
    ],
)
def test_colours_and_width_are_those_of_a_terminal(terminal: bool, environment: dict[str, str], screen: Screen) -> None:
    assert screen_for(terminal=terminal, columns=100, environment=environment) == screen


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (172_800, "2d")],
)
def test_an_age_has_one_unit(seconds: float, words: str) -> None:
    assert duration(seconds) == words
