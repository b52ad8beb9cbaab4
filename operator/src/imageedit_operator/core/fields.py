"""Reading single fields of a manifest: typed, bounded, and named when they are wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

_DURATION = re.compile(r"([1-9][0-9]*)([smh])")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


class InvalidResource(Exception):
    """A field has a value that the schema would refuse; the message names the field."""


def seconds(text: object, field: str) -> float:
    """Seconds of a duration such as `60s`, `5m` or `1h`; `field` is named when it is none."""
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise InvalidResource(f"{field}: {text!r} is not a duration such as 60s, 5m or 1h")
    return float(int(match[1]) * _SECONDS[match[2]])


def mapping(parent: Mapping[str, Any], key: str, field: str, *, optional: bool = False) -> Mapping[str, Any]:
    """An object; an absent one is empty where it is `optional`."""
    value = parent.get(key)
    if value is None and optional:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidResource(f"{field}: is required and must be an object")
    return value


def text(parent: Mapping[str, Any], key: str, field: str, *, limit: int) -> str:
    """A required text of 1 to `limit` characters."""
    value = parent.get(key)
    if not isinstance(value, str) or not 1 <= len(value) <= limit:
        raise InvalidResource(f"{field}: is required, a text of 1 to {limit} characters")
    return value


def integer(parent: Mapping[str, Any], key: str, field: str, *, default: int | None, low: int, high: int) -> int:
    """A whole number between `low` and `high`; required where `default` is None."""
    value = parent.get(key, default)
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        value = int(value)  # some JSON writers turn 2 into 2.0
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidResource(f"{field}: {value!r} must be a whole number from {low} to {high}")
    return value


def choice(parent: Mapping[str, Any], key: str, field: str, choices: tuple[str, ...]) -> str:
    """One of `choices`, of which the first is the default."""
    value = parent.get(key, choices[0])
    if value not in choices:
        raise InvalidResource(f"{field}: {value!r} must be one of {', '.join(choices)}")
    return str(value)


def switch(parent: Mapping[str, Any], key: str, field: str, *, default: bool) -> bool:
    """True or false, and nothing that only looks like it."""
    value = parent.get(key, default)
    if not isinstance(value, bool):
        raise InvalidResource(f"{field}: {value!r} must be true or false")
    return value


def objects(parent: Mapping[str, Any], key: str, field: str, *, limit: int) -> tuple[Mapping[str, Any], ...]:
    """A list of at most `limit` objects; an absent one is empty."""
    value = parent.get(key) or []
    if (
        not isinstance(value, list | tuple)
        or len(value) > limit
        or not all(isinstance(item, Mapping) for item in value)
    ):
        raise InvalidResource(f"{field}: give a list of at most {limit} objects")
    return tuple(value)


def optional_text(parent: Mapping[str, Any], key: str, field: str, *, limit: int) -> str:
    """A text of 1 to `limit` characters; an absent one is empty."""
    return text(parent, key, field, limit=limit) if parent.get(key) is not None else ""


def absolute_path(path: str, field: str) -> str:
    """A path from the root, without detours. Raises InvalidResource."""
    if not path.startswith("/") or ".." in path.split("/"):
        raise InvalidResource(f"{field}: {path!r} must be absolute, without '..'")
    return path


def nested_deeper(value: object, levels: int) -> bool:
    """Whether objects and lists stand in one another more than so many times."""
    if not isinstance(value, Mapping | list | tuple):
        return False
    if levels == 0:
        return True
    return any(nested_deeper(item, levels - 1) for item in (value.values() if isinstance(value, Mapping) else value))
