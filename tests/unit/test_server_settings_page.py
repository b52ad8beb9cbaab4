"""The page about settings and commands names what the code has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from imageedit_server.__main__ import COMMANDS
from imageedit_server.arguments import ARGUMENTS
from imageedit_server.worker.failures import Reason

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "server-settings.md").read_text()


def test_every_argument_that_is_shown_is_on_the_page_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `--([\w-]+)` \| ([^|]+) \| .*\|$", PAGE, re.MULTILINE))
    shown = {name: default for name, (default, text) in ARGUMENTS.items() if text}

    assert rows.keys() == shown.keys()
    for name, default in shown.items():
        assert rows[name] == ("must be given" if default is None else f"`{default}`" if default else "unset"), name


def test_every_command_has_its_section() -> None:
    assert set(re.findall(r"^## `imageedit-server (\w+)", PAGE, re.MULTILINE)) == set(COMMANDS)


def test_every_class_of_failure_is_in_the_table() -> None:
    table = PAGE.split("## How a worker fails")[1]
    named = set(re.findall(r"`([A-Z]\w+)`", table))

    assert named == set(get_args(Reason)) - {"Cancelled"}
