"""`spec.template` is tried before it is applied, asked about no oftener than needed, and written by its own manager."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from imageedit_operator.core.actions import ApplyTemplate
from imageedit_operator.core.observed import Observed, Refusal
from imageedit_operator.core.resource import parse
from imageedit_operator.core.revision import deployment_name, revision_hash
from imageedit_operator.errors import ApiError, WorldMoved
from imageedit_operator.kube import template_trial
from imageedit_operator.kube.budgets import BudgetBook
from imageedit_operator.kube.cards import CardBook
from imageedit_operator.kube.client import TEMPLATE_MANAGER, Manifest
from imageedit_operator.kube.execute import Executor, Subject, describe
from imageedit_operator.kube.kinds import DEPLOYMENTS
from imageedit_operator.kube.observe import Observer
from imageedit_operator.kube.parsing import parse_deployment
from unit.operator_shell.builders import RESOURCE_UID, MemoryKube, cluster, custom_resource, deployment

TEMPLATE = {"metadata": {"labels": {"team": "a"}}}
WITH = custom_resource(template=TEMPLATE)
CONTESTED = {".spec.template.spec.x": "imageedit-operator"}
TYPED = "failed to create typed patch object (team/edit; apps/v1, Kind=Deployment): .spec.x: field not declared"
OWN, DEFAULT = '.spec.template.spec.containers[name="server"].image', ".spec.template.spec.schedulerName"
SUBJECT = Subject(
    api_version="imageedit.dev/v1alpha1", kind="ImageEditDeployment", namespace="team", name="edit", uid=RESOURCE_UID
)


def made_for(manifest: Manifest, *, replicas: int = 0) -> Manifest:
    """The Deployment of this resource's revision, as the first manager made it."""
    hash_ = revision_hash(parse(manifest))
    made = deployment(deployment_name("edit", hash_), replicas=replicas)
    made["metadata"]["labels"]["imageedit.dev/revision"] = hash_
    return made


async def look(kube: MemoryKube, manifest: Manifest) -> Observed:
    async with aiohttp.ClientSession() as http:
        cards, budgets = CardBook(kube, clock=lambda: 0.0), BudgetBook(kube, clock=lambda: 0.0)
        return await Observer(kube, http, cards, budgets).observe(parse(manifest), manifest)


async def apply(kube: MemoryKube, manifest: Manifest) -> None:
    async with aiohttp.ClientSession() as http:
        await Executor(kube, http, clock=lambda: 0.0).execute(ApplyTemplate(manifest=manifest), SUBJECT, {})


def tries(kube: MemoryKube) -> int:
    return sum(verb == "try" for verb, _, _ in kube.calls)


REFUSALS: list[tuple[ApiError, Refusal | None]] = [
    (
        ApiError(status=409, reason="Conflict", message="m", contested=CONTESTED),
        Refusal(message="m", contested=CONTESTED),
    ),
    (ApiError(status=409, reason="Conflict", message="the object has been modified"), None),
    (ApiError(status=422, reason="Invalid", message="m", fields=frozenset({"metadata.uid"})), None),
    (ApiError(status=404, reason="NotFound", message="m"), None),
    (ApiError(status=422, reason="Invalid", message="m"), Refusal(message="m")),
    (ApiError(status=403, reason="Forbidden", message="m"), Refusal(message="m")),
    (ApiError(status=400, reason="BadRequest", message="m"), Refusal(message="m")),
    (ApiError(status=500, reason="InternalError", message=TYPED), Refusal(message=".spec.x: field not declared")),
]


@pytest.mark.parametrize(("error", "refusal"), REFUSALS)
async def test_an_answer_is_a_refusal_by_its_row(error: ApiError, refusal: Refusal | None) -> None:
    kube = cluster((DEPLOYMENTS, made_for(WITH)))
    kube.refuse["try"] = error
    assert (await look(kube, WITH)).template_refusal == refusal


@pytest.mark.parametrize(
    ("status", "words"), [(0, "etcd"), (429, "etcd"), (500, "etcd"), (503, "etcd"), (403, "cannot patch resource")]
)
async def test_an_apiserver_that_says_nothing_of_the_template_ends_the_look(status: int, words: str) -> None:
    kube = cluster((DEPLOYMENTS, made_for(WITH)))
    kube.refuse["try"] = ApiError(status=status, reason="InternalError", message=words)
    with pytest.raises(ApiError, match=words):
        await look(kube, WITH)


async def test_a_template_that_fits_is_tried_and_nothing_is_written() -> None:
    kube = cluster((DEPLOYMENTS, made_for(WITH)))
    assert (await look(kube, WITH)).template_refusal is None
    assert tries(kube) == 1
    assert not (await look(kube, WITH)).deployments[0].templated


@pytest.mark.parametrize("manifest", [custom_resource(), custom_resource(template={"spec": {}})])
async def test_without_a_template_nothing_more_is_asked(manifest: Manifest) -> None:
    kube, plain = cluster((DEPLOYMENTS, made_for(manifest))), cluster((DEPLOYMENTS, made_for(custom_resource())))
    await look(kube, manifest)
    await look(plain, custom_resource())
    assert kube.calls == plain.calls


async def test_a_template_is_applied_by_its_own_manager_and_asked_about_no_more() -> None:
    made = made_for(WITH)
    kube = cluster((DEPLOYMENTS, made))
    manifest = {"metadata": {"name": made["metadata"]["name"]}, "spec": {"template": TEMPLATE}}
    await apply(kube, manifest)
    assert kube.writes() == [("apply", "deployments", made["metadata"]["name"])]
    assert (await look(kube, WITH)).deployments[0].templated
    assert tries(kube) == 0
    assert describe(ApplyTemplate(manifest=manifest)) == f"ApplyTemplate(name={made['metadata']['name']!r})"


@pytest.mark.parametrize("contested", [{}, CONTESTED])
async def test_an_apply_over_what_has_changed_is_planned_anew(contested: dict[str, str]) -> None:
    kube = cluster((DEPLOYMENTS, made_for(WITH)))
    kube.refuse["apply"] = ApiError(status=409, reason="Conflict", message="m", contested=contested)
    with pytest.raises(WorldMoved):
        await apply(kube, {"metadata": {"name": "x"}, "spec": {}})


def entry(manager: str, operation: str, fields: Any) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "fieldsV1": fields}


IN_SPEC: dict[str, Any] = {"f:spec": {"f:template": {"f:metadata": {"f:labels": {"f:team": {}}}}}}


@pytest.mark.parametrize(
    ("fields", "templated", "changed"),
    [
        (entry(TEMPLATE_MANAGER, "Apply", IN_SPEC), True, ()),
        (entry(TEMPLATE_MANAGER, "Update", IN_SPEC), False, ()),
        (entry(TEMPLATE_MANAGER, "Apply", {"f:metadata": {"f:labels": {"f:a": {}}}}), False, ()),
        (entry("kubectl", "Apply", IN_SPEC), False, ("spec.template.metadata.labels.team by kubectl",)),
    ],
)
def test_who_applied_a_template_is_read_from_the_fields_that_he_owns(
    fields: Any, templated: bool, changed: tuple[str, ...]
) -> None:
    made = made_for(WITH)
    made["metadata"]["managedFields"] = [fields]
    seen = parse_deployment(made, owner_uid=RESOURCE_UID)
    assert (seen.templated, seen.changed) == (templated, changed)


@dataclass(kw_only=True)
class Owned(MemoryKube):
    """A cluster in which others own fields of the template; force takes them."""

    contested: dict[str, str]

    async def apply_beside(self, *place: Any, force: bool = False, **more: Any) -> Manifest:
        stored = await super().apply_beside(*place, force=force, **more)
        if not force:
            raise ApiError(status=409, reason="Conflict", message="m", contested=self.contested)
        return stored


@pytest.mark.parametrize(
    ("contested", "left", "asked"),
    [([OWN, DEFAULT], [OWN], 1), ([OWN], [OWN], 1), ([DEFAULT], None, 2)],
)
async def test_over_another_revision_only_what_the_operator_sets_is_a_conflict(
    contested: list[str], left: list[str] | None, asked: int
) -> None:
    """Who made it by a POST owns the apiserver's defaults too."""
    other = made_for(custom_resource())
    kube = Owned(contested=dict.fromkeys(contested, "imageedit-operator"))
    kube.put(DEPLOYMENTS, other)
    found = await template_trial.over_another(kube, parse(WITH), parse_deployment(other, owner_uid=RESOURCE_UID))
    assert (None if found is None else list(found.contested)) == left
    assert tries(kube) == asked
