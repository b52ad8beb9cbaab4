"""A file that is applied after `kubectl imageedit rollback`: what was rolled back must not stand in its way."""

from __future__ import annotations

import copy
import subprocess
from typing import Any

import pytest
import yaml

from apiserver.cli_process import Ran, cli
from apiserver.operator_plane import client, kubectl, new_namespace, plane, resource
from imageedit_operator.core import manifests
from imageedit_operator.core.resource import parse
from imageedit_operator.core.revision import revision_hash
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.kinds import DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS
from localcluster.controlplane import ControlPlane

__all__ = ["plane"]

CLAIM, FOLDER = {"pvc": {"claimName": "models"}}, {"hostPath": {"path": "/models"}}
SECRET = {"secretKeyRef": {"name": "s", "key": "k"}}
SWAPPED = [
    ({"model": {"source": {"demo": {}}}}, {"model": {"source": CLAIM}}),
    ({"model": {"source": FOLDER}}, {"model": {"source": CLAIM}}),
    (
        {"model": {"source": CLAIM, "prefetch": {"hostPath": {"path": "/copies"}}}},
        {"model": {"source": CLAIM, "prefetch": {"pvc": {"claimName": "copies"}}}},
    ),
]
"""A file and a later one that has another member of the same field; these are refused by kubectl apply."""
LISTED = [
    ({"server": {"env": [{"name": "A", "value": "x"}]}}, {"server": {"env": [{"name": "A", "valueFrom": SECRET}]}}),
    (
        {"server": {"volumes": [{"name": "v", "emptyDir": {}}]}},
        {"server": {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}},
    ),
]
"""The same in items of a list; kubectl apply replaces whole lists, so these are refused to the server's apply alone."""
ANYWAY = ("--server-side", "--force-conflicts")


def file(parts: dict[str, Any], revision: str) -> Manifest:
    """The manifest in the user's file."""
    made = resource()
    for part, fields in copy.deepcopy(parts).items():
        made["spec"][part] |= fields
    made["spec"]["model"]["revision"] = revision
    return made


def apply(plane: ControlPlane, namespace: str, manifest: Manifest, *flags: str) -> str:
    """The refusal in kubectl's words; empty where there is none."""
    try:
        kubectl(plane, "apply", *flags, "-n", namespace, "-f", "-", stdin=yaml.safe_dump(manifest))
    except subprocess.CalledProcessError as error:
        return str(error.stderr)
    return ""


async def stored(plane: ControlPlane, namespace: str) -> Manifest:
    async with client(plane) as kube:
        return await kube.get(IMAGE_EDIT_DEPLOYMENTS, namespace, "edit")


async def rolled_back(plane: ControlPlane, good: Manifest, bad: Manifest, *flags: str) -> tuple[str, Ran]:
    """A namespace whose resource was applied from one file, then from another, and rolled back to the first."""
    async with client(plane) as kube:
        namespace = await new_namespace(kube)
        assert apply(plane, namespace, good, *flags) == ""
        asked = parse(await stored(plane, namespace))
        await kube.apply(DEPLOYMENTS, namespace, manifests.deployment(asked, revision_hash(asked)))
    assert apply(plane, namespace, bad, *flags) == ""
    ran = await cli(plane, "rollback", "edit", "-n", namespace)
    assert ran.code == 0, ran.err
    return namespace, ran


@pytest.mark.parametrize("flags", [(), ("--server-side",)], ids=["client-side", "server-side"])
@pytest.mark.parametrize(("good", "bad"), [*SWAPPED, *LISTED])
async def test_a_corrected_file_is_applied_in_the_documented_way_and_later_ones_as_ever(
    plane: ControlPlane, good: Any, bad: Any, flags: tuple[str, ...]
) -> None:
    namespace, _ = await rolled_back(plane, file(good, "1"), file(bad, "2"), *flags)

    assert apply(plane, namespace, file(bad, "3"), *ANYWAY) == ""
    corrected = (await stored(plane, namespace))["spec"]
    assert apply(plane, namespace, file(good, "4"), *flags) == ""
    later = (await stored(plane, namespace))["spec"]

    for spec, parts in ((corrected, bad), (later, good)):
        for part, fields in parts.items():
            assert {name: spec[part][name] for name in fields} == fields


@pytest.mark.parametrize("flags", [(), ("--server-side",)], ids=["client-side", "server-side"])
@pytest.mark.parametrize(("good", "bad"), SWAPPED)
async def test_where_plain_apply_is_refused_rollback_and_the_refusal_say_the_way(
    plane: ControlPlane, good: Any, bad: Any, flags: tuple[str, ...]
) -> None:
    namespace, ran = await rolled_back(plane, file(good, "1"), file(bad, "2"), *flags)

    assert "--force-conflicts" in apply(plane, namespace, file(bad, "3"), *flags)
    assert "kubectl apply --server-side --force-conflicts -f FILE" in ran.err


@pytest.mark.parametrize(("good", "bad"), [*LISTED, ({}, {})])
async def test_where_plain_apply_is_not_refused_rollback_says_nothing_of_it(
    plane: ControlPlane, good: Any, bad: Any
) -> None:
    namespace, ran = await rolled_back(plane, file(good, "1"), file(bad, "2"))

    assert apply(plane, namespace, file(bad, "3")) == ""
    assert "--force-conflicts" not in ran.err


async def test_a_field_that_only_the_rollback_put_in_goes_away_with_a_replace(plane: ControlPlane) -> None:
    good = {"model": {"source": CLAIM, "prefetch": {"hostPath": {"path": "/copies"}}}}
    bad: dict[str, Any] = {"model": {"source": {"demo": {}}}}
    namespace, _ = await rolled_back(plane, file(good, "1"), file(bad, "2"))
    corrected = yaml.safe_dump(file(bad, "3"))

    assert "leave prefetch out" in apply(plane, namespace, file(bad, "3"), *ANYWAY)
    kubectl(plane, "replace", "--save-config", "-n", namespace, "-f", "-", stdin=corrected)

    assert (await stored(plane, namespace))["spec"]["model"] == {"name": "m", "revision": "3", "source": {"demo": {}}}
    assert apply(plane, namespace, file(good, "4")) == ""
