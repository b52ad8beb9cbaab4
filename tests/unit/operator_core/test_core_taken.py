"""What somebody took away from a child, whatever the apiserver makes of values, defaults and zeros."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_operator.core import manifests
from imageedit_operator.core.managed_fields import Path
from imageedit_operator.core.taken import KEYS, away
from unit.operator_core.builders import HASH, resource

OURS = "ours"
PLUGIN = {"injection": "Plugin", "nodeSelector": {"chip": "910B"}, "tolerations": [{"key": "npu"}]}
SECRET = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
SERVER = {"image": "server:1", "env": [SECRET, {"name": "EMPTY", "value": ""}], "imagePullSecrets": [{"name": "r"}]}
WHOLE = resource(accelerator=PLUGIN, server=SERVER, service={"annotations": {"a/b": "c"}})
CHILDREN: dict[str, dict[str, Any]] = {
    "Deployment": manifests.deployment(WHOLE, HASH),
    "Service": manifests.service(WHOLE),
    "PodDisruptionBudget": manifests.budget(WHOLE, 1),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Spot:
    """Something that can be taken away: a field, or an item of a list whose items have keys."""

    where: tuple[str | int, ...]
    path: Path
    book: tuple[str, ...]
    """Its keys in `fieldsV1`."""


def spots(wanted: Any, above: Spot) -> Iterator[Spot]:
    for name, value in wanted.items():
        here = Spot(where=(*above.where, name), path=(*above.path, name), book=(*above.book, f"f:{name}"))
        yield here
        if isinstance(value, Mapping):
            yield from spots(value, here)
        for place, item in enumerate(value if is_keyed(name, value) else ()):
            keys = key_of(item, name)
            called = f"{name}[{','.join(f'{key}={text}' for key, text in keys.items())}]"
            one = Spot(
                where=(*here.where, place),
                path=(*above.path, called),
                book=(*here.book, f"k:{json.dumps(keys)}"),
            )
            yield one
            yield from spots({field: text for field, text in item.items() if field not in keys}, one)


def is_keyed(name: str, value: Any) -> bool:
    return name in KEYS and isinstance(value, list)


def key_of(item: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: item[key] for key in KEYS[name] if key in item}


def cases() -> st.SearchStrategy[tuple[str, Spot]]:
    root = Spot(where=("spec",), path=("spec",), book=("f:spec",))
    return st.sampled_from([(kind, spot) for kind, child in CHILDREN.items() for spot in spots(child["spec"], root)])


def book(fields: Any, name: str = "") -> Any:
    """The entry of `fieldsV1` for what was applied: maps by name, lists of items by key, all else whole."""
    if isinstance(fields, Mapping):
        return {f"f:{below}": book(value, below) for below, value in fields.items()}
    if is_keyed(name, fields):
        return {f"k:{json.dumps(key_of(item, name))}": {".": {}, **book(item)} for item in fields}
    return {}


def forgotten(fields: Any, keys: Iterable[str]) -> Any:
    """The entry after somebody took that away; what held nothing else goes with it."""
    first, *below = keys
    if first not in fields:
        return fields
    kept = forgotten(fields[first], below) if below else {}
    return {name: value for name, value in fields.items() if name != first} | ({first: kept} if kept else {})


def stored(wanted: Any, name: str = "", keys: Iterable[str] = ()) -> Any:
    """As the apiserver keeps it: more fields than were written, zeros left out, amounts in its own spelling."""
    if isinstance(wanted, Mapping):
        kept = {below: value for below, value in wanted.items() if below in keys or value not in (0, "", False)}
        more = {below: value if below in keys else stored(value, below) for below, value in kept.items()}
        return {**more, "added": "by the apiserver"}
    if is_keyed(name, wanted):
        return [*(stored(item, keys=KEYS[name]) for item in wanted), dict.fromkeys(KEYS[name], "of somebody else")]
    return f"as {wanted}"


def live(wanted: Mapping[str, Any], fields: Any) -> dict[str, Any]:
    kept: dict[str, Any] = stored(wanted)
    kept["metadata"]["managedFields"] = [{"manager": OURS, "operation": "Apply", "fieldsV1": fields}]
    return kept


def without(wanted: Mapping[str, Any], spot: Spot) -> dict[str, Any]:
    left = copy.deepcopy(dict(wanted))
    *above, last = spot.where
    found: Any = left
    for step in above:
        found = found[step]
    del found[last]
    return left


def is_nothing(wanted: Any, spot: Spot) -> bool:
    """Zero and the empty text mean the same as no field; False does not, where no field means True."""
    for step in spot.where:
        wanted = wanted[step]
    return wanted == "" or (wanted == 0 and wanted is not False)


def took(kind: str, spot: Spot) -> dict[str, Any]:
    """The child after somebody took that away."""
    wanted = CHILDREN[kind]
    return live(without(wanted, spot), forgotten(book(wanted), spot.book))


@pytest.mark.parametrize("kind", CHILDREN)
def test_from_a_child_that_the_apiserver_completed_nothing_was_taken(kind: str) -> None:
    wanted = CHILDREN[kind]
    assert away(wanted, live(wanted, book(wanted)), ours=OURS) == ()


@given(case=cases())
def test_whatever_somebody_takes_away_is_named_and_nothing_else(case: tuple[str, Spot]) -> None:
    kind, spot = case
    gone = away(CHILDREN[kind], took(kind, spot), ours=OURS)
    if is_nothing(CHILDREN[kind], spot):
        assert gone == ()
    elif spot.where[-1] in KEYS:  # of a list whose items have keys each one is named
        assert {(*path[:-1], path[-1].partition("[")[0]) for path in gone} == {spot.path}
    else:
        assert gone == (spot.path,)


@given(case=cases())
def test_what_the_apiserver_drops_itself_is_no_loss(case: tuple[str, Spot]) -> None:
    kind, spot = case
    wanted = CHILDREN[kind]
    assert away(wanted, live(without(wanted, spot), book(wanted)), ours=OURS) == ()


def test_several_losses_are_named_in_order() -> None:
    wanted = CHILDREN["Service"]
    fields = book(wanted)
    del fields["f:spec"]["f:type"], fields["f:metadata"]["f:labels"]["f:imageedit.dev/deployment"]
    found = live(wanted, fields)
    del found["spec"]["type"], found["metadata"]["labels"]["imageedit.dev/deployment"]
    assert away(wanted, found, ours=OURS) == (("metadata", "labels", "imageedit.dev/deployment"), ("spec", "type"))


def test_a_map_that_is_still_ours_is_no_owner_of_what_was_in_it() -> None:
    wanted = CHILDREN["Service"]
    fields = book(wanted)
    fields["f:metadata"]["f:annotations"] = {".": {}}
    found = live(wanted, fields)
    found["metadata"]["annotations"] = {}
    assert away(wanted, found, ours=OURS) == (("metadata", "annotations", "a/b"),)


def test_where_the_book_of_writers_was_cleared_nobody_knows() -> None:
    wanted = CHILDREN["Service"]
    found = live(wanted, {})
    del found["spec"]["ports"]
    assert away(wanted, found, ours=OURS) == ()


def test_who_is_known_to_have_written_lost_all_that_is_gone_when_he_owns_nothing() -> None:
    found: dict[str, Any] = {"metadata": {"managedFields": []}, "spec": {}}
    assert away({"spec": {"type": "x"}}, found, ours=OURS, written=True) == (("spec", "type"),)
    assert away({"spec": {"type": "x"}}, found, ours=OURS) == ()


def test_a_list_that_is_written_whole_is_there_whatever_it_holds() -> None:
    wanted = CHILDREN["Deployment"]
    found = live(wanted, book(wanted))
    found["spec"]["template"]["spec"]["tolerations"] = []
    assert away(wanted, found, ours=OURS) == ()


@pytest.mark.parametrize("name", ["env", "ports", "containers"])
def test_a_label_that_is_called_like_a_list_is_a_label(name: str) -> None:
    wanted = manifests.deployment(resource(accelerator={"nodeSelector": {name: "prod", "chip": "910B"}}), HASH)
    fields = book(wanted)
    found = live(wanted, fields)
    assert away(wanted, found, ours=OURS) == ()
    pod, above = found["spec"]["template"]["spec"], ("spec", "template", "spec", "nodeSelector")
    del pod["nodeSelector"][name]
    found["metadata"]["managedFields"][0]["fieldsV1"] = forgotten(fields, [f"f:{step}" for step in (*above, name)])
    assert away(wanted, found, ours=OURS) == ((*above, name),)


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ({"args": None, "env": None}, {}),
        ({"env": [], "command": []}, {}),
        ({"ports": [{"containerPort": 80}]}, {"ports": [{"containerPort": 80, "protocol": "TCP"}]}),
    ],
    ids=["null", "an empty list", "the protocol, which belongs to the key"],
)
def test_a_value_that_the_apiserver_drops_or_fills_in_was_not_taken_away(written: Any, kept: Any) -> None:
    found = {"metadata": {"managedFields": [{"manager": OURS, "fieldsV1": {"f:image": {}}}]}, **kept}
    assert away(written, found, ours=OURS) == ()


def test_of_a_port_without_a_protocol_the_whole_key_is_named() -> None:
    found = {"metadata": {"managedFields": [{"manager": OURS, "fieldsV1": {"f:image": {}}}]}, "ports": []}
    assert away({"ports": [{"containerPort": 80}]}, found, ours=OURS) == (("ports[containerPort=80,protocol=TCP]",),)


@pytest.mark.parametrize(
    ("name", "item", "called"),
    [
        ("hostAliases", {"ip": "10.0.0.9", "hostnames": ["models"]}, "ip=10.0.0.9"),
        ("volumeDevices", {"devicePath": "/dev/x", "name": "x"}, "devicePath=/dev/x"),
        (
            "topologySpreadConstraints",
            {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1},
            "topologyKey=zone,whenUnsatisfiable=DoNotSchedule",
        ),
    ],
)
def test_of_a_list_that_only_templates_have_the_item_is_named(name: str, item: dict[str, Any], called: str) -> None:
    other = {key: f"other {value}" for key, value in item.items()}
    found = {"metadata": {"managedFields": [{"manager": OURS, "fieldsV1": {"f:image": {}}}]}, name: [other]}
    assert away({name: [item]}, found, ours=OURS) == ((f"{name}[{called}]",),)
