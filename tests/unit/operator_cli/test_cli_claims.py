"""The claims that a file names, and what a plan makes of those that are not there; row by row."""

from __future__ import annotations

from typing import Any

import pytest

from imageedit_operator.cli import claims, plan_text, plan_view
from imageedit_operator.cli.claims import Found, Wanted
from imageedit_operator.cli.plan_view import PlanView
from imageedit_operator.cli.reading_claims import read
from imageedit_operator.cli.screen import Screen
from imageedit_operator.core.known import Known
from imageedit_operator.core.observed import Observed
from imageedit_operator.core.observed_cards import CardLedger
from imageedit_operator.core.resource import parse
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.kinds import CLAIMS
from unit.operator_cli.builders import CARD, NOW, hash_of, resource
from unit.operator_core import builders as core
from unit.operator_shell.builders import MemoryKube

MODELS = Wanted(name="models", field="spec.model.source.pvc.claimName")
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
NO_CLASS = "is not bound, and no storage class makes a volume for it: kubectl describe pvc models"
FIRST_POD = (
    "is not bound: storage class fast may wait for its first pod; if it does not, kubectl describe pvc models says"
)


def model(claim: str, **more: Any) -> dict[str, Any]:
    return {"name": "qwen", "revision": "b", "source": {"pvc": {"claimName": claim}}, **more}


def volumes(*names: str) -> list[dict[str, Any]]:
    """One that is a claim for each name, and one that is none."""
    named = [{"name": f"v-{name}", "persistentVolumeClaim": {"claimName": name}} for name in names]
    return [*named, {"name": "scratch", "emptyDir": {}}]


def claim(phase: str = "", *, class_: str | None = None, **metadata: Any) -> dict[str, Any]:
    status = {"phase": phase} if phase else {}
    return {"metadata": {"name": "models", **metadata}, "spec": {"storageClassName": class_}, "status": status}


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({}, []),
        ({"model": model("a")}, [("a", "spec.model.source.pvc.claimName", True)]),
        (
            {"model": model("a", prefetch={"pvc": {"claimName": "b"}})},
            [("b", "spec.model.prefetch.pvc.claimName", True), ("a", "spec.model.source.pvc.claimName", False)],
        ),
        (
            {"model": model("a", prefetch={"hostPath": {"path": "/m"}})},
            [("a", "spec.model.source.pvc.claimName", False)],
        ),
        (
            {"server": {"image": "i", "volumes": volumes("c")}, "template": {"spec": {"volumes": volumes("c", "d")}}},
            [("c", "spec.server.volumes", True), ("d", "spec.template.spec.volumes", True)],
        ),
    ],
)
def test_the_claims_of_a_spec_are_found_with_their_fields(spec: Any, named: list[Any]) -> None:
    found = claims.wanted(parse(resource("b", **spec)))
    assert [(item.name, item.field, item.of_pods) for item in found] == named


@pytest.mark.parametrize(
    ("raw", "warned", "scheduler"),
    [
        (None, "is not there: make it in this namespace, or correct", 'persistentvolumeclaim "models" not found'),
        (
            claim("Bound", deletionTimestamp="2026-11-30T03:00:00Z"),
            "is being deleted: make another one",
            'persistentvolumeclaim "models" is being deleted',
        ),
        (claim("Lost"), "has lost its volume: make another one", UNBOUND),
        (claim("Pending"), NO_CLASS, UNBOUND),
        (claim(), NO_CLASS, UNBOUND),
        (claim("Pending", class_="fast"), FIRST_POD, ""),
        (claim("Bound"), "", ""),
    ],
)
def test_a_claim_is_warned_of_and_keeps_pods_away_by_its_row(raw: Any, warned: str, scheduler: str) -> None:
    found = Found(claims=((MODELS, raw),))
    said = claims.warnings(found)
    assert [words.startswith(f"PersistentVolumeClaim models ({MODELS.field}) {warned}") for words in said] == (
        [True] if warned else []
    )
    assert claims.unplaced_words(found) == scheduler


def test_a_claim_that_only_the_copies_read_keeps_no_server_pod_away() -> None:
    source = Wanted(name="models", field=MODELS.field, of_pods=False)
    found = Found(claims=((source, None),))
    assert len(claims.warnings(found)) == 1
    assert claims.unplaced_words(found) == ""


async def test_claims_are_read_in_the_resources_namespace() -> None:
    kube = MemoryKube()
    kube.put(CLAIMS, {**claim("Bound"), "metadata": {"name": "models", "namespace": "team"}})
    other = Wanted(name="other", field="spec.server.volumes")
    found = await read(kube, [MODELS, other], "team")
    assert [(item.name, raw is not None) for item, raw in found.claims] == [("models", True), ("other", False)]


async def test_claims_that_may_not_be_read_are_taken_to_be_there_and_that_is_said() -> None:
    kube = MemoryKube(
        refuse={"get persistentvolumeclaims": ApiError(status=403, reason="Forbidden", message="no right")}
    )
    found = await read(kube, [MODELS], "team")
    assert claims.assumed(found) == ("claims were not seen, and are taken to be there and bound: no right",)
    assert claims.warnings(found) == ()


def planned(found: Found) -> PlanView:
    """One pod of revision a serves on the only card, and b mounts a claim."""
    old = hash_of(resource("a"))
    status = {"currentRevision": old, "lastGoodRevision": old, "updateRevision": old, "readyReplicas": 1}
    seen = Observed(
        deployments=(core.deployment(1, old),),
        pods=(core.serving_pod("old-1", revision_hash=old, cards={CARD: 1}),),
        service_exists=True,
        service_matches=True,
        cards=Known(value=CardLedger(allocatable=1, requested=1)),
        status=status,
    )
    return plan_view.build(resource("a"), resource("b", model=model("models")), seen, now=NOW, mounted=found)


def test_a_plan_whose_claim_is_missing_ends_there_and_drains_nothing() -> None:
    view = planned(Found(claims=((MODELS, None),)))
    assert (view.outcome, view.outage_s, view.fewest_warm) == ("VolumeNotReady", 0.0, 1)
    text = plan_text.text([view], Screen())
    assert "warnings" in text
    assert "PersistentVolumeClaim models (spec.model.source.pvc.claimName) is not there" in text


def test_a_plan_whose_claims_are_bound_warns_of_nothing() -> None:
    view = planned(Found(claims=((MODELS, claim("Bound")),)))
    assert (view.outcome, view.warnings) == ("Complete", ())


def test_a_plan_that_may_not_read_claims_says_so_below_what_was_not_seen() -> None:
    assert "claims were not seen" in " ".join(planned(Found(unread="no right")).assumed)
