"""What somebody took away from a child: fields that were written and that the live object does not have.

`managedFields` says who wrote a field and not who removed one: the field leaves the entry of its owner, and nothing
else. Only presence counts here, and never a value, because the apiserver writes amounts and defaults its own way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from imageedit_operator.core.managed_fields import Path, owns

Raw = Mapping[str, Any]

_NOTHING: tuple[object, ...] = (0, "", None, [])

KEYS = {
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "imagePullSecrets": ("name",),
    "resourceClaims": ("name",),
    "claims": ("name",),
    "hostAliases": ("ip",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "ownerReferences": ("uid",),
    "ports": ("containerPort", "port", "protocol"),
}
"""By which fields the apiserver tells the items of a list apart; other lists are written whole."""


# | the field that was written | the manager still owns it                   | was taken away            |
# | is there                   | any                                         | no, whatever its value    |
# | is 0, null, "" or [],      | any                                         | no: that means the same   |
# | and not there              |                                             |                           |
# | else is not there          | yes: it, a part of it, or what it is part of| no: the apiserver drops it|
# | else is not there          | no                                          | yes                       |
# | any                        | it owns nothing: the book was cleared       | no: nobody knows          |
# | else is not there          | it owns nothing, and is known to have       | yes: all that it had      |
def away(wanted: Raw, live: Raw, *, ours: str, written: bool = False) -> tuple[Path, ...]:
    """The fields of `wanted` that are gone, sorted; of a map or an item that is gone its own name alone.

    `written`: the manager `ours` is known to have written them, whatever the book says.
    """
    missing = sorted(_missing(wanted, live))
    if not missing:
        return ()
    metadata = live["metadata"]
    if not (written or owns(metadata, (), by=ours)):
        return ()
    return tuple(path for path in missing if not owns(metadata, path, by=ours))


def _missing(wanted: Raw, live: Raw) -> list[Path]:
    """Paths are put together on the way back, for at rest there are none."""
    found: list[Path] = []
    for name, value in wanted.items():
        if value in _NOTHING and value is not False:
            continue
        there = live.get(name)
        if name in KEYS and _are_items(value) and _are_items(there or []):  # people may call a label "env"
            found += _missing_items(name, value, there or ())
        elif name not in live:
            found.append((name,))
        elif isinstance(value, dict) and isinstance(there, dict):
            found += [(name, *path) for path in _missing(value, there)]
    return found


def items_of(name: str, value: object) -> tuple[str, ...]:
    """How paths call the items of a list that the apiserver tells apart by a key; none of anything else."""
    keys = KEYS.get(name)
    return tuple(_called(name, item, keys) for item in value) if keys and isinstance(value, list) else ()


def _called(name: str, item: Raw, keys: Sequence[str]) -> str:
    return f"{name}[{','.join(f'{key}={item[key]}' for key in keys if key in item)}]"


def _are_items(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _missing_items(name: str, wanted: Sequence[Raw], live: Sequence[Raw]) -> list[Path]:
    keys, found = KEYS[name], list[Path]()
    if name == "ports":  # the only key that may be left out
        wanted = [{**item, "protocol": item.get("protocol") or "TCP"} for item in wanted]
    there = {_key(item, keys): item for item in live}
    for item in wanted:
        same = there.get(_key(item, keys))
        paths: list[Path] = [()] if same is None else _missing(item, same)
        if paths:
            found += [(_called(name, item, keys), *path) for path in paths]
    return found


def _key(item: Raw, keys: Sequence[str]) -> tuple[str, ...]:
    """As text: a note that somebody forged may have anything in it."""
    return tuple(str(item.get(key)) for key in keys)
