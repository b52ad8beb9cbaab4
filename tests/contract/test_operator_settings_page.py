"""The page of the operator's settings lists what the program takes, with its defaults."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from imageedit_operator.health import Limits
from imageedit_operator.settings import load

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/operator-settings.md"
ROW = re.compile(r"^\| `--([a-z-]+)` \| (.+?) \|", re.M)
DEFAULT = re.compile(r"--([a-z-]+) [A-Z_]+ .*?\(default: '(.*?)'\)")


def test_every_flag_has_its_row_and_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        load(["--help"], {"COLUMNS": "1000"})
    taken = dict(DEFAULT.findall(re.sub(r"\s+", " ", capsys.readouterr().out).split("options:")[1]))
    listed = {flag: cell.strip("`") if cell.startswith("`") else "" for flag, cell in ROW.findall(PAGE.read_text())}
    assert listed == taken


def test_the_limits_of_health_are_the_ones_of_the_code() -> None:
    limits, text = Limits(since_contact_s=0.0), PAGE.read_text()
    for what, seconds in (
        ("the event loop", limits.since_post_s),
        ("the watches", limits.since_watch_s),
        ("the workers", limits.oldest_waiting_s),
    ):
        assert re.search(rf"^\| {what}: [^|]* \| {seconds:.0f} s \|$", text, flags=re.M), what
