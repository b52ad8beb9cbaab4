"""Who wrote which field of an object, read from its `metadata.managedFields`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

Raw = Mapping[str, Any]
Path = tuple[str, ...]
"""Names of fields and, for items of a list, their keys, as `containers[name=server]`."""


def scaled_by(metadata: Raw) -> str:
    """The manager that wrote `spec.replicas` through the scale subresource last; empty when nobody did."""
    entries = [entry for entry in _entries(metadata) if entry.get("subresource") == "scale"]
    entries = [entry for entry in entries if ("spec", "replicas") in set(_leaves(entry.get("fieldsV1") or {}))]
    last = max(entries, key=lambda entry: str(entry.get("time", "")), default=None)
    return "" if last is None else str(last.get("manager") or "somebody")


def of_others(metadata: Raw, *, ours: str) -> dict[Path, str]:
    """The fields of the spec that others wrote and the manager `ours` does not own, with who it was.

    A field that somebody took away leaves no trace here.
    """
    written: dict[Path, str] = {}
    own: set[Path] = set()
    entries = [entry for entry in _entries(metadata) if "f:spec" in (entry.get("fieldsV1") or {})]
    if all(entry.get("manager") == ours for entry in entries):
        return {}  # nearly always, and every event on a Deployment asks
    for entry in entries:
        fields = set(_leaves(entry["fieldsV1"]["f:spec"], ("spec",)))
        if entry.get("manager") == ours:
            own |= fields
        else:
            written |= dict.fromkeys(fields, str(entry.get("manager") or "somebody"))
    return {path: manager for path, manager in sorted(written.items()) if path not in own}


def words(fields: Mapping[Path, str], *, most: int = 3) -> tuple[str, ...]:
    """The fields and who wrote them, as people say it; the first ones only."""
    said = tuple(f"{'.'.join(path)} by {manager}" for path, manager in fields.items())
    return said if len(said) <= most else (*said[:most], f"{len(said) - most} more")


def _entries(metadata: Raw) -> list[Raw]:
    return [entry for entry in metadata.get("managedFields") or [] if isinstance(entry, Mapping)]


# | key in fieldsV1        | stands for                            |
# | f:NAME                 | a field                               |
# | k:{"name":"server"}    | the item of a list with these keys    |
# | v:VALUE, i:NUMBER      | the item of a list with this value    |
# | .                      | the item or the map itself            |
def _leaves(fields: Raw, above: Path = ()) -> Iterator[Path]:
    """Every field of an entry that has none below it."""
    for key, below in fields.items():
        if key == ".":
            continue
        path = _deeper(above, key)
        deeper = {name for name in below if name != "."} if isinstance(below, Mapping) else set()
        if deeper:
            yield from _leaves(below, path)
        else:
            yield path


def _deeper(above: Path, key: str) -> Path:
    kind, _, text = key.partition(":")
    if kind == "f":
        return (*above, text)
    if kind == "k":
        keys: dict[str, Any] = json.loads(text)
        text = ",".join(f"{name}={value}" for name, value in keys.items())
    return (*above[:-1], f"{above[-1]}[{text}]") if above else (text,)
