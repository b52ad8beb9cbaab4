"""Frozen values as JSON documents for `-o json`: the fields' names in camelCase, as Kubernetes writes them. Pure."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import TypeAlias, cast

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


def document(value: object) -> Json:
    """A dataclass as an object, a tuple as a list, numbers to the millisecond; other values as they are."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {_camel(field.name): document(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): document(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [document(item) for item in value]
    return round(value, 3) if isinstance(value, float) else cast("Json", value)


def as_text(value: object) -> str:
    """The document, indented."""
    return json.dumps(document(value), indent=2, ensure_ascii=False)


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)
