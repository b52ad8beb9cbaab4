"""Who wrote which field, read as the apiserver records it."""

from __future__ import annotations

from typing import Any

import pytest

from imageedit_operator.core.managed_fields import of_others, owns, scaled_by, words


def entry(manager: str, fields: Any, **more: Any) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "time": "2026-11-30T03:00:00Z", "fieldsV1": fields, **more}


REPLICAS: dict[str, Any] = {"f:spec": {"f:replicas": {}}}


OTHERS: dict[str, Any] = {"f:spec": {"f:model": {}}}


@pytest.mark.parametrize(
    ("entries", "filled_in", "manager"),
    [
        ([entry("kubectl", REPLICAS, subresource="scale")], False, "kubectl"),
        ([entry("kubectl", REPLICAS, subresource="scale")], True, "kubectl"),
        (
            [
                entry("kube-controller-manager", REPLICAS, subresource="scale", time="2026-11-30T04:00:00Z"),
                entry("kubectl", REPLICAS, subresource="scale"),
            ],
            False,
            "kube-controller-manager",
        ),
        ([entry("team", OTHERS), entry("keda", REPLICAS, subresource="scale")], False, "keda"),
        ([entry("team", REPLICAS), entry("keda", REPLICAS, subresource="scale")], False, "keda"),
        ([entry("kubectl", REPLICAS)], False, ""),
        ([entry("team", OTHERS), entry("kubectl", REPLICAS)], False, ""),
        ([entry("team", OTHERS)], False, "somebody"),
        ([entry("kubectl-edit", {"f:spec": {"f:server": {}}})], False, ""),
        (
            [entry("team", OTHERS), entry("x", {"f:status": {"f:replicas": {}}}, subresource="status")],
            False,
            "somebody",
        ),
        ([entry("team", OTHERS)], True, ""),
        ([entry("x", {"f:status": {"f:replicas": {}}}, subresource="status")], False, ""),
        ([], False, ""),
    ],
)
def test_the_writer_of_replicas_is_whoever_used_the_scale_subresource_last(
    entries: Any, filled_in: bool, manager: str
) -> None:
    assert scaled_by({"managedFields": entries}, filled_in=filled_in) == manager


def test_an_object_without_managed_fields_has_no_writer() -> None:
    assert scaled_by({}, filled_in=False) == ""


IMAGE: dict[str, Any] = {"f:spec": {"f:containers": {'k:{"name":"server"}': {".": {}, "f:image": {}}}}}
VARIABLE: dict[str, Any] = {
    "f:spec": {"f:env": {'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}, 'k:{"name":"B"}': {"f:name": {}}}}
}
VALUES: dict[str, Any] = {"f:spec": {"f:finalizers": {'v:"a"': {}}}}


@pytest.mark.parametrize(
    ("entries", "fields"),
    [
        ([entry("ours", IMAGE)], {}),
        ([entry("ours", IMAGE), entry("kubectl-edit", IMAGE)], {}),
        ([entry("kubectl-edit", IMAGE)], {("spec", "containers[name=server]", "image"): "kubectl-edit"}),
        (
            [entry("kubectl-set", VARIABLE)],
            {("spec", "env[name=A]", "value"): "kubectl-set", ("spec", "env[name=B]", "name"): "kubectl-set"},
        ),
        ([entry("kubectl-edit", VALUES)], {("spec", 'finalizers["a"]'): "kubectl-edit"}),
        ([entry("kcm", {"f:status": {"f:replicas": {}}, "f:metadata": {"f:annotations": {"f:a": {}}}})], {}),
        ([entry("kubectl", REPLICAS, subresource="scale")], {("spec", "replicas"): "kubectl"}),
    ],
)
def test_a_field_of_others_is_one_that_we_do_not_own_too(entries: Any, fields: Any) -> None:
    assert of_others({"managedFields": entries}, ours=("ours",)) == fields


POD: dict[str, Any] = {
    "f:spec": {
        "f:args": {},
        "f:labels": {".": {}, "f:env[a]": {}},
        "f:env": {'k:{"name":"A"}': {".": {}, "f:name": {}}, 'k:{"name":"B"}': {".": {}}},
        "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:name": {}}},
        "f:volumes": {".": {}},
        "f:finalizers": {'v:"a"': {}},
    }
}


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ((), True),
        (("spec",), True),
        (("spec", "args"), True),
        (("spec", "args", "x"), True),
        (("spec", "env[name=A]"), True),
        (("spec", "env[name=A]", "value"), False),
        (("spec", "ports[containerPort=80,protocol=TCP]", "name"), True),
        (("spec", "args[name=A]", "value"), True),
        (("spec", "labels", "env[a]"), True),
        (("spec", "labels", "env"), False),
        (("spec", "env[name=C]"), False),
        (("spec", "finalizers[name=a]"), False),
        (("spec", "env[name=B]"), False),
        (("spec", "volumes"), False),
        (("status",), False),
    ],
)
def test_a_manager_owns_a_field_by_the_table(path: tuple[str, ...], owner: bool) -> None:
    entries = [entry("ours", POD), entry("others", {"f:spec": {"f:env": {}}, "f:status": {}})]
    assert owns({"managedFields": entries}, path, by="ours") is owner


@pytest.mark.parametrize("entries", [[], [entry("ours", {})], [entry("ours", {"f:spec": {".": {}}})]])
def test_who_wrote_nothing_owns_nothing(entries: Any) -> None:
    assert not owns({"managedFields": entries}, (), by="ours")


def test_many_fields_are_said_in_a_few_words() -> None:
    fields: dict[tuple[str, ...], str] = {("spec", str(number)): "kubectl" for number in range(5)}
    assert words(fields) == ("spec.0 by kubectl", "spec.1 by kubectl", "spec.2 by kubectl", "2 more")
