"""The page about the load test names what the command has."""

from __future__ import annotations

import re
from pathlib import Path

from imageedit_server.commands.loadtest import parser
from imageedit_server.loadtest import report
from imageedit_server.loadtest.statistics import Level

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "loadtest.md").read_text()


def test_every_option_is_on_the_page() -> None:
    offered = {option for action in parser()._actions for option in action.option_strings} - {"-h", "--help"}
    assert set(re.findall(r"`(--?[a-z-]+)`", PAGE)) == offered


def test_every_field_of_the_json_is_on_the_page() -> None:
    said = report.as_json("http://edits:80", [Level(concurrency=1, elapsed_s=1.0, latencies_s=(1.0,))])
    levels = said["levels"]
    assert isinstance(levels, list)
    shown = set(re.findall(r'"(\w+)":', PAGE))
    assert shown >= set(said) | set(levels[0]) | set(report.SHARES)
