"""Who wrote which field of an object, read from its `metadata.managedFields`."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

Raw = Mapping[str, Any]
Path = tuple[str, ...]
"""Names of fields and, for items of a list, their keys, as `containers[name=server]`."""
SOMEBODY = "somebody"
"""Who wrote what has no name."""


# | spec.replicas is owned by                       | who scales         |
# | writers by the scale subresource, beside others | the last of them   |
# | others alone                                    | nobody             |
# | none, while others own `spec.model`, and it is  |                    |
# |   not what the apiserver fills in               | somebody           |
# | none else                                       | nobody             |
# The apiserver records no writer of the scale subresource while nobody owns the field: that is so where a file without
# it was applied server-side, and after a scale to zero, which is written as no number at all. Such a writer has no
# name, and cannot be told from nobody while the number is the default. Every resource is written with a model: where
# nobody owns that either, the book was cleared, and tells nothing of the number.
def scaled_by(metadata: Raw, *, filled_in: bool) -> str:
    """Who writes `spec.replicas` through the scale subresource; empty when nobody does.

    `filled_in`: the number is the one that the apiserver writes where nobody does.
    """
    owned = [(entry, (entry.get("fieldsV1") or {}).get("f:spec") or {}) for entry in _entries(metadata)]
    writers = [entry for entry, fields in owned if "f:replicas" in fields]
    if not writers:
        return SOMEBODY if not filled_in and any("f:model" in fields for _, fields in owned) else ""
    scalers = [entry for entry in writers if entry.get("subresource") == "scale"]
    last = max(scalers, key=lambda entry: str(entry.get("time", "")), default=None)
    return "" if last is None else str(last.get("manager") or SOMEBODY)


def applied_by(metadata: Raw, manager: str) -> bool:
    """Whether this manager has applied anything of the spec."""
    entries = (
        item for item in _entries(metadata) if item.get("manager") == manager and item.get("operation") == "Apply"
    )
    return any(path[0] == "spec" for entry in entries for path in _leaves(entry.get("fieldsV1") or {}))


def of_others(metadata: Raw, *, ours: Collection[str]) -> dict[Path, str]:
    """The fields of the spec that others wrote and none of the managers `ours` owns, with who it was.

    A field that somebody took away leaves no trace here: `core.taken` finds it.
    """
    written: dict[Path, str] = {}
    for entry in _entries(metadata):
        fields = (entry.get("fieldsV1") or {}).get("f:spec")
        if fields and entry.get("manager") not in ours:
            written |= dict.fromkeys(_leaves({"f:spec": fields}), str(entry.get("manager") or SOMEBODY))
    if not written:
        return {}  # by far the most: what is ours, which is long, need not be read
    mine = (entry.get("fieldsV1") or {} for entry in _entries(metadata) if entry.get("manager") in ours)
    own = {path for fields in mine for path in _leaves(fields)}
    return {path: manager for path, manager in sorted(written.items()) if path not in own}


# | the manager's entry, on the way to the field | it owns the field                    |
# | ends before it, in a field of no parts       | yes: that is written whole           |
# | has it, of no parts, or with one below it    | yes                                  |
# | has it as a map or an item, and nothing in it| no: it holds fields of others by now |
# | has it not                                   | no                                   |
def owns(metadata: Raw, path: Path, *, by: str) -> bool:
    """Whether this manager owns the field, a part of it or what it is a part of, whichever way it wrote that."""
    entries = (entry.get("fieldsV1") for entry in _entries(metadata) if entry.get("manager") == by)
    return any(_reaches(fields, path) for fields in entries if fields)


def _reaches(fields: Raw, path: Path) -> bool:
    """Walks down, for a list of all leaves takes ten times as long."""
    if not fields:
        return True
    if not path:
        return any(True for _ in _leaves(fields, holders=False))
    below = _part(fields, path[0])
    return below is not None and _reaches(below, path[1:])


def _part(fields: Raw, name: str) -> Raw | None:
    """What the entry has below a field or an item of a list; None where that is not in it."""
    if f"f:{name}" in fields:
        return dict(fields[f"f:{name}"])
    above, _, item = name.partition("[")
    items = fields.get(f"f:{above}") if item else None
    if not items:
        return items
    return next((below for key, below in items.items() if key != "." and _deeper((above,), key)[-1] == name), None)


def words(fields: Mapping[Path, str], taken: Iterable[Path] = (), *, most: int = 3) -> tuple[str, ...]:
    """The fields and who wrote them, and those that were taken away, as people say it; the first ones only."""
    written = (f"{'.'.join(path)} by {manager}" for path, manager in fields.items())
    said = (*written, *(f"{'.'.join(path)} taken away" for path in taken))
    return said if len(said) <= most else (*said[:most], f"{len(said) - most} more")


def _entries(metadata: Raw) -> list[Raw]:
    return [entry for entry in metadata.get("managedFields") or [] if isinstance(entry, Mapping)]


# | key in fieldsV1        | stands for                            |
# | f:NAME                 | a field                               |
# | k:{"name":"server"}    | the item of a list with these keys;   |
# |                        | its keys again only where it is alone |
# | v:VALUE, i:NUMBER      | the item of a list with this value    |
# | .                      | the item or the map itself            |
def _leaves(fields: Raw, above: Path = (), *, holders: bool = True) -> Iterator[Path]:
    """Every field of an entry that has none below it; `holders`: maps and items that are owned as such, too."""
    for key, below in fields.items():
        if key == ".":
            continue
        path = _deeper(above, key)
        deeper = {name for name in below if name != "."} if isinstance(below, Mapping) else set()
        if deeper:
            more = deeper - _keys(key) or deeper
            yield from _leaves({name: below[name] for name in more}, path, holders=holders)
        elif holders or not below:
            yield path


def _keys(key: str) -> set[str]:
    """The fields inside the item of a list that its own path names already."""
    kind, _, text = key.partition(":")
    return {f"f:{name}" for name in json.loads(text)} if kind == "k" else set()


def _deeper(above: Path, key: str) -> Path:
    kind, _, text = key.partition(":")
    if kind == "f":
        return (*above, text)
    if kind == "k":
        keys: dict[str, Any] = json.loads(text)
        text = ",".join(f"{name}={value}" for name, value in keys.items())
    return (*above[:-1], f"{above[-1]}[{text}]") if above else (text,)
