"""What somebody took away from the Deployments of this and of earlier revisions, and what only looks like it."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_operator.core import manifests
from imageedit_operator.core.managed_fields import Path
from imageedit_operator.core.manifests import RENDERED
from imageedit_operator.core.recipe import remade
from imageedit_operator.core.resource import parse
from imageedit_operator.core.revision import RECIPE, deployment_name, recipe, revision_hash
from imageedit_operator.kube.client import FIELD_MANAGER, TEMPLATE_MANAGER, Manifest
from imageedit_operator.kube.losses import marked
from imageedit_operator.kube.parsing import parse_deployment
from unit.operator_shell.builders import RESOURCE_UID, custom_resource, merge

TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"team": "a", "env": "prod"}}, "spec": {"hostname": "h"}}
TEAM: Path = ("spec", "template", "metadata", "labels", "team")
Entry = dict[str, Any]


def entry(manager: str, *fields: Path, operation: str = "Apply") -> Entry:
    """What a manager owns."""
    whole: dict[str, Any] = {}
    for path in fields:
        here = whole
        for name in path:
            here = here.setdefault(f"f:{name}", {})
    return {"manager": manager, "operation": operation, "fieldsV1": whole}


OURS = entry(FIELD_MANAGER, ("spec", "template", "spec", "containers"), ("spec", "replicas"))
UNSCALED = entry(FIELD_MANAGER, ("spec", "template", "spec", "containers"))
SCALED = entry(FIELD_MANAGER, ("spec", "replicas"), operation="Update")
BY_HAND = entry("kubectl", ("spec", "replicas"), operation="Update")
THEIRS = entry(TEMPLATE_MANAGER, ("spec", "template", "spec", "hostname"))


def written(*entries: Entry, replicas: int = 1, without: Path = TEAM, **spec: Any) -> Manifest:
    """The Deployment of a resource with that template, from which somebody took a field."""
    resource = parse(custom_resource(**{"template": TEMPLATE, **spec}))
    made = copy.deepcopy(manifests.deployment(resource, revision_hash(resource), replicas=replicas))
    merge(made, {"spec": {"template": resource.template.manifest()}})
    merge(made, {"metadata": {"uid": "d", "resourceVersion": "7", "managedFields": list(entries or (OURS, THEIRS))}})
    *above, last = without
    here = made
    for name in above:
        here = here[name]
    here.pop(last, None)
    return made


def lost(made: Manifest, **spec: Any) -> tuple[str, ...]:
    """What is named of it while the resource has this spec."""
    resource = parse(custom_resource(**{"template": TEMPLATE, **spec}))
    seen = marked(parse_deployment(made, owner_uid=RESOURCE_UID), made, resource)
    return tuple(word for word in seen.changed if word.endswith("taken away"))


OWNS_IT = entry(TEMPLATE_MANAGER, TEAM)


@pytest.mark.parametrize(
    ("template", "entries", "replicas", "named"),
    [
        ({}, (OURS,), 1, False),
        (TEMPLATE, (OURS, THEIRS), 1, True),
        (TEMPLATE, (OURS, THEIRS), 0, True),
        (TEMPLATE, (OURS, OWNS_IT), 1, False),
        (TEMPLATE, (OURS,), 0, False),
        (TEMPLATE, (UNSCALED, BY_HAND), 1, False),
        (TEMPLATE, (UNSCALED, SCALED), 1, True),
        (TEMPLATE, (SCALED,), 1, False),
    ],
    ids=[
        "no template",
        "its manager owns others",
        "its manager owns others, at no replicas",
        "its manager owns it: the apiserver drops it",
        "its manager owns none: still to be applied, or refused",
        "its manager owns none: still to be applied, and scaled up by hand",
        "its manager owns none, and the operator scaled it up",
        "the book was cleared",
    ],
)
def test_a_field_of_the_template_was_taken_away_by_the_table(
    template: dict[str, Any], entries: tuple[Entry, ...], replicas: int, named: bool
) -> None:
    made = written(*entries, replicas=replicas, template=template)
    assert lost(made, template=template) == ((f"{'.'.join(TEAM)} taken away",) if named else ())


def test_a_template_as_it_was_applied_has_lost_nothing() -> None:
    assert lost(written(without=("spec", "paused"))) == ()


def test_a_template_of_another_operators_deployment_is_judged_all_the_same() -> None:
    made = written()
    made["metadata"]["annotations"][RENDERED] = "another"
    assert lost(made) == (f"{'.'.join(TEAM)} taken away",)


def test_losses_of_both_managers_are_named_in_order() -> None:
    made = written()
    del made["spec"]["template"]["spec"]["readinessGates"]
    assert lost(made) == (f"{'.'.join(TEAM)} taken away", "spec.template.spec.readinessGates taken away")


def test_a_field_that_both_managers_wrote_is_named_once() -> None:
    template = {**TEMPLATE, "spec": {"readinessGates": [{"conditionType": "imageedit.dev/warm"}]}}
    made = written(OURS, OWNS_IT, without=("spec", "template", "spec", "readinessGates"), template=template)
    assert lost(made, template=template) == ("spec.template.spec.readinessGates taken away",)


LATER: dict[str, Any] = {"server": {"image": "server:2"}, "template": {"metadata": {"labels": {"floor": "2"}}}}


def noting(text: str | None) -> Manifest:
    """The Deployment of the earlier revision, with another note."""
    made = written()
    made["metadata"]["annotations"].pop(RECIPE)
    merge(made, {"metadata": {"annotations": {} if text is None else {RECIPE: text}}})
    return made


@pytest.mark.parametrize(
    ("made", "named"),
    [
        (written(**LATER, without=("spec", "template", "metadata", "labels", "floor")), True),
        (written(), True),
        (written(replicas=0), False),
        (noting(None), False),
        (noting("{}"), False),
        (noting(recipe(parse(custom_resource(template={"metadata": {"labels": {"team": "b"}}})))), False),
    ],
    ids=[
        "of the spec's revision",
        "of another revision, with pods",
        "of another revision, at rest",
        "of another revision, of an older operator",
        "of another revision, with a note that is none",
        "of another revision, with the note of a third one",
    ],
)
def test_a_loss_of_a_deployment_is_known_by_the_table(made: Manifest, named: bool) -> None:
    found = lost(made, **LATER)
    assert (len(found), bool(found)) == (int(named), named)


def test_what_the_operator_itself_wrote_into_another_revision_is_missed_too() -> None:
    made = written(without=("spec", "template", "spec", "readinessGates"))
    assert lost(made, **LATER) == ("spec.template.spec.readinessGates taken away",)


@pytest.mark.parametrize("later", [{"rollout": {"drainTimeout": "7m"}}, {"replicas": 5, "revisionHistoryLimit": 1}])
def test_another_drain_timeout_makes_the_operators_part_of_earlier_revisions_unknown(later: dict[str, Any]) -> None:
    made = written(without=("spec", "template", "spec", "readinessGates"))
    assert bool(lost(made, **LATER, **later)) is ("rollout" not in later)


def test_an_earlier_revision_as_it_was_written_has_lost_nothing() -> None:
    assert lost(written(without=("spec", "paused")), **LATER) == ()


WHOLE: dict[str, Any] = {
    "model": {"name": "m", "revision": "1", "source": {"demo": {}}},
    "server": {
        "image": "server:1",
        "sizes": ["768x768"],
        "steps": {"standard": 16},
        "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        "volumes": [{"name": "v", "configMap": {"name": "c"}}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "resources": {"limits": {"memory": "1Gi"}},
        "imagePullSecrets": [{"name": "p"}],
    },
    "accelerator": {"count": 1, "tolerations": [{"key": "a"}], "nodeSelector": {"a": "b"}},
    "template": {
        "metadata": {"labels": {"team": "a"}},
        "spec": {
            "hostname": "h",
            "volumes": [{"name": "w", "emptyDir": {}}],
            "containers": [{"name": "log", "ports": [{"containerPort": 80}], "env": [{"name": "B", "value": "b"}]}],
            "topologySpreadConstraints": [{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
        },
    },
}
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, "x", 1, True, 1.5, [], {}, ["x"], [["x"]], [{}], [{"name": ["x"]}], {"a": {"b": {"c": 1}}}]
)


Place = tuple[Any, ...]


def places(value: Any, above: Place = ()) -> list[Place]:
    """Every place of a document, by the keys and numbers that lead to it."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, item in below for found in ((*above, key), *places(item, (*above, key)))]


def with_changes(changes: list[tuple[Place, Any]]) -> dict[str, Any]:
    """A note with other values in these places, as far as they are still there."""
    note = copy.deepcopy(WHOLE)
    for (*above, last), odd in changes:
        here: Any = note
        with contextlib.suppress(IndexError, KeyError, TypeError):
            for key in above:
                here = here[key]
            here[last] = copy.deepcopy(odd)
    found: dict[str, Any] = json.loads(json.dumps(note))
    return found


@given(changes=st.lists(st.tuples(st.sampled_from(places(WHOLE)), ODD), max_size=3))
def test_no_note_that_was_forged_for_a_name_of_its_own_ends_a_look(changes: list[tuple[Place, Any]]) -> None:
    note, now = with_changes(changes), parse(custom_resource())
    made = remade(now, note)
    if made is None:
        return
    text = json.dumps(note)
    live = written()
    live["metadata"]["name"] = deployment_name(now.name, revision_hash(made))
    live["metadata"]["annotations"][RECIPE] = text
    rendered = manifests.deployment(made, parse_deployment(live, owner_uid=RESOURCE_UID).revision_hash)
    live["metadata"]["annotations"][RENDERED] = rendered["metadata"]["annotations"][RENDERED]
    marked(parse_deployment(live, owner_uid=RESOURCE_UID), live, now)
