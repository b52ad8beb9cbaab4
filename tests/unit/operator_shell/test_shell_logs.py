"""Log lines are JSON objects with what was given as extra."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from imageedit_operator.logs import JsonFormatter


def line(message: str, *args: object, error: BaseException | None = None, **extra: Any) -> dict[str, Any]:
    """One record, formatted and read back."""
    info = (type(error), error, error.__traceback__) if error is not None else None
    record = logging.LogRecord("imageedit_operator.x", logging.WARNING, __file__, 1, message, args, info)
    vars(record).update(extra)
    parsed: dict[str, Any] = json.loads(JsonFormatter().format(record))
    return parsed


def test_a_line_has_time_level_logger_and_message() -> None:
    parsed = line("took %d s", 3)
    assert (parsed["level"], parsed["logger"], parsed["message"]) == ("warning", "imageedit_operator.x", "took 3 s")
    assert parsed["time"].endswith("Z")
    assert set(parsed) == {"time", "level", "logger", "message"}


def test_extra_fields_stand_beside_it() -> None:
    assert line("m", imageedit_deployment="edit", reasons=("a",))["imageedit_deployment"] == "edit"


def test_a_line_break_stays_within_the_line() -> None:
    assert "\n" not in JsonFormatter().format(logging.LogRecord("x", logging.INFO, __file__, 1, "a\nb", (), None))


def test_an_exception_is_part_of_the_line() -> None:
    try:
        raise ValueError("bad")
    except ValueError:
        error = sys.exc_info()[1]
    assert "ValueError: bad" in line("m", error=error)["exception"]


def test_a_value_that_is_no_json_is_written_as_text() -> None:
    assert line("m", what={1, 2}.__class__)["what"] == "<class 'set'>"
