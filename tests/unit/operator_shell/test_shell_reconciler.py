"""One pass and its ends."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from imageedit_operator.core.actions import Action
from imageedit_operator.core.resource import parse
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.first_look import FirstLook
from imageedit_operator.kube.kept import Kept, nothing_kept
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS, NODES, PODS, SERVICES
from imageedit_operator.reconciler import MOVED_AGAIN_S, Reconciler
from imageedit_operator.worker import Outcome
from imageedit_operator.workqueue import Key
from unit.operator_shell.builders import (
    CARD,
    RESOURCE_UID,
    MemoryKube,
    cluster,
    custom_resource,
    deployment,
    node,
    pod,
    with_resource,
)
from unit.operator_shell.passes import (
    KEY,
    SCALE,
    SERVICE,
    SETTLED,
    FixedPlan,
    begun,
    metric,
    passes,
    reads,
    reconciler,
)
from unit.operator_shell.virtual_time import now, run_virtual


def test_a_pass_executes_the_plan_then_writes_the_status() -> None:
    kube = with_resource()
    _, outcomes = passes(kube, FixedPlan(actions=(SERVICE,)))
    assert kube.writes() == [("apply", "services", "edit"), ("patch", "imageeditdeployments", "edit")]
    assert outcomes == [Outcome(result="ok", again_after_s=30.0)]


def first_pass(kube: MemoryKube, planner: FixedPlan, shown: Manifest) -> tuple[Reconciler, Outcome]:
    """The first pass of a term whose list showed the resource so."""

    async def main() -> tuple[Reconciler, Outcome]:
        async with aiohttp.ClientSession() as http:
            subject = reconciler(kube, planner, http)
            subject.first = FirstLook(clock=now, kept=nothing_kept())
            subject.first.begin()
            subject.first.show(IMAGE_EDIT_DEPLOYMENTS, shown)
            subject.first.end(whole=True)
            return subject, await subject.reconcile(KEY)

    return run_virtual(main)


def test_a_first_look_that_finds_nothing_to_do_is_the_pass() -> None:
    kube, planner = with_resource(status=SETTLED), FixedPlan()
    subject, outcome = first_pass(kube, planner, custom_resource(status=SETTLED))
    assert outcome == Outcome(result="ok", again_after_s=30.0)
    assert kube.writes() == []
    assert reads(kube) == ["deployments", "services"]  # by name: one that our label does not find, and what is not kept
    assert subject.memories[KEY] == (RESOURCE_UID, planner.answered[-1])


@pytest.mark.parametrize(
    ("shown", "actions"),
    [
        pytest.param(custom_resource(status=SETTLED, model={}), (), id="invalid spec"),
        pytest.param(custom_resource(status=SETTLED), (SERVICE,), id="children to be changed"),
        pytest.param(custom_resource(status={"phase": "Starting"}), (), id="status to be written"),
        pytest.param(custom_resource(), (), id="no status yet"),
    ],
)
def test_a_first_look_that_finds_work_is_followed_by_one_at_the_live_state(
    shown: Manifest, actions: tuple[Action, ...]
) -> None:
    kube = with_resource(status=SETTLED)
    _, outcome = first_pass(kube, FixedPlan(actions=actions), shown)
    assert outcome.result == "ok"
    assert {"imageeditdeployments", "deployments", "pods"} <= set(reads(kube))
    assert len(kube.writes()) == len(actions)  # the status that was read is right


def test_what_the_list_told_of_children_that_nobody_watches_is_read_anew_before_a_write() -> None:
    kube, kept = with_resource(status=SETTLED), Kept(clock=now)

    async def main() -> None:
        async with aiohttp.ClientSession() as http:
            subject = reconciler(kube, FixedPlan(actions=(SERVICE,)), http)
            subject.first, subject.kept = FirstLook(clock=now, kept=kept), kept
            subject.first.begin()
            subject.first.show(IMAGE_EDIT_DEPLOYMENTS, custom_resource(status=SETTLED))
            subject.first.show(SERVICES, {"metadata": {**deployment()["metadata"], "name": "edit"}})
            subject.first.end(whole=True)
            assert kept.get(SERVICES, parse(custom_resource())) is not None
            await subject.reconcile(KEY)

    run_virtual(main)
    assert kept.get(SERVICES, parse(custom_resource())) is None


def test_the_children_of_a_new_resource_are_not_looked_for_before_they_are_created() -> None:
    kube = with_resource()
    passes(kube, FixedPlan(actions=(SERVICE,)))
    assert reads(kube) == ["imageeditdeployments"]


def test_a_child_that_is_there_before_the_first_pass_is_seen_by_the_next() -> None:
    """Somebody else's, or left by an operator that died before it wrote the status."""
    kube = with_resource()
    kube.put(SERVICES, {"metadata": {"name": "edit", "namespace": "team", "uid": "u", "resourceVersion": "3"}})
    _, outcomes = passes(kube, FixedPlan(actions=(SERVICE,)), times=2)
    assert outcomes == [Outcome(result="moved", again_after_s=MOVED_AGAIN_S)] * 2
    assert sorted(set(reads(kube))) == ["deployments", "imageeditdeployments", "pods", "services"]


def test_a_second_pass_with_the_same_plan_writes_nothing() -> None:
    kube = with_resource()
    passes(kube, FixedPlan(), times=2)
    assert kube.writes() == [("patch", "imageeditdeployments", "edit")]


def test_a_pass_stops_before_its_next_write_when_the_lease_is_lost() -> None:
    kube, answers = with_resource(), iter([True, False])

    async def main() -> Outcome:
        async with aiohttp.ClientSession() as http:
            subject = reconciler(kube, FixedPlan(actions=(SERVICE, SCALE)), http, leading=lambda: next(answers))
            return await subject.reconcile(KEY)

    assert run_virtual(main).result == "moved"
    assert kube.writes() == [("apply", "services", "edit")]


def test_a_plan_gets_back_what_it_remembered() -> None:
    planner = FixedPlan()
    passes(with_resource(), planner, times=2)
    assert planner.memories[1] is planner.answered[0]


def test_a_resource_that_was_created_anew_begins_without_memory() -> None:
    planner, kube = FixedPlan(), with_resource()

    async def main() -> None:
        async with aiohttp.ClientSession() as http:
            subject = reconciler(kube, planner, http)
            await subject.reconcile(KEY)
            kube.put(IMAGE_EDIT_DEPLOYMENTS, custom_resource(uid="another"))
            await subject.reconcile(KEY)

    run_virtual(main)
    assert planner.memories[1] is not planner.answered[0]


def test_a_resource_that_is_gone_is_forgotten_with_its_series() -> None:
    kube, gone = with_resource(), list[Key]()

    async def main() -> tuple[Reconciler, Outcome]:
        async with aiohttp.ClientSession() as http:
            subject = reconciler(kube, FixedPlan(), http)
            subject.on_gone = gone.append
            await subject.reconcile(KEY)
            assert 'imageedit_deployment="edit"' in subject.telemetry.render().decode()
            kube.objects.clear()
            return subject, await subject.reconcile(KEY)

    subject, outcome = run_virtual(main)
    assert outcome == Outcome(result="gone")
    assert gone == [KEY]
    assert subject.memories == {}
    assert 'imageedit_deployment="edit"' not in subject.telemetry.render().decode()


def test_an_invalid_spec_is_said_in_the_status_and_waits_for_a_change() -> None:
    kube = with_resource(replicas=-1)
    _, outcomes = passes(kube, FixedPlan(), times=2)
    assert outcomes == [Outcome(result="invalid")] * 2
    assert kube.writes() == [("patch", "imageeditdeployments", "edit")]
    conditions = {condition["type"]: condition for condition in kube.bodies[0]["status"]["conditions"]}
    assert (conditions["Ready"]["status"], conditions["Ready"]["reason"]) == ("False", "InvalidSpec")
    assert "spec.replicas" in conditions["Ready"]["message"]


def test_a_world_that_moved_leaves_the_rest_undone_and_looks_again_soon() -> None:
    kube, planner = with_resource(), FixedPlan(actions=(SCALE, SERVICE))
    subject, outcomes = passes(kube, planner)
    assert outcomes == [Outcome(result="moved", again_after_s=MOVED_AGAIN_S)]
    assert kube.writes() == [("patch", "deployments", "edit-gone")]
    assert subject.memories == {}  # the plan was for another world, and so is what it remembered


def test_a_resource_that_changed_meanwhile_is_a_world_that_moved() -> None:
    kube = with_resource()
    kube.refuse["patch"] = ApiError(status=409, reason="Conflict", message="changed")
    assert passes(kube, FixedPlan())[1] == [Outcome(result="moved", again_after_s=MOVED_AGAIN_S)]


def test_a_changed_decision_is_counted_once() -> None:
    kube = cluster((IMAGE_EDIT_DEPLOYMENTS, custom_resource(status={"desiredReplicas": 1})))
    subject, _ = passes(kube, FixedPlan(status={"desiredReplicas": 3}), times=2)
    labels = '{direction="up",imageedit_deployment="edit",imageedit_namespace="team"}'
    assert metric(subject, f"imageedit_operator_scaling_decisions_total{labels} 1.0")


def test_a_write_that_moves_cards_makes_the_ledger_old() -> None:
    kube = with_resource()
    passes(kube, FixedPlan(actions=(SCALE,)), times=2)
    assert kube.calls.count(("list", "nodes", "")) == 2


def test_only_a_pass_that_comes_to_its_end_has_seen_its_resource() -> None:
    """Else a list of versions would leave a resource alone whose passes fail."""
    kube, seen = with_resource(status=begun()), list[Manifest]()

    async def main() -> list[int]:
        async with aiohttp.ClientSession() as http:
            subject = reconciler(kube, FixedPlan(), http)
            subject.on_read = seen.append
            counts = []
            kube.refuse["list pods"] = ApiError(status=500, reason="InternalError", message="etcd")
            with pytest.raises(ApiError):
                await subject.reconcile(KEY)
            counts.append(len(seen))
            del kube.refuse["list pods"]
            await subject.reconcile(KEY)  # writes the status: another version, which the writer tells of
            counts.append(len(seen))
            await subject.reconcile(KEY)
            counts.append(len(seen))
            return counts

    assert run_virtual(main) == [0, 0, 1]


def test_free_cards_are_counted_for_resources_at_rest_too() -> None:
    kube = with_resource(accelerator={"resourceName": CARD})
    kube.put(NODES, node(cards=2))
    free = 'imageedit_operator_free_cards{imageedit_deployment="edit",imageedit_namespace="team"}'

    async def main() -> Reconciler:
        async with aiohttp.ClientSession() as http:
            subject = reconciler(kube, FixedPlan(), http)
            await subject.reconcile(KEY)
            assert metric(subject, f"{free} 2.0")
            kube.put(NODES, node(cards=3))
            await asyncio.sleep(60.0)
            await subject.grounds.look()
            return subject

    assert metric(run_virtual(main), f"{free} 3.0")


def sick_card(name: str) -> Manifest:
    """A node that offers fewer cards than it has."""
    seen = node(name, cards=1)
    return {**seen, "status": {**seen["status"], "capacity": {CARD: "2"}}}


@pytest.mark.parametrize(
    ("changed", "looked_at"),
    [(node("node-1"), False), (sick_card("node-1"), True), (sick_card("node-2"), False), (node("node-3"), False)],
)
def test_a_card_that_falls_sick_under_a_pod_at_rest_asks_for_a_look(changed: Manifest, looked_at: bool) -> None:
    kube = with_resource(accelerator={"resourceName": CARD}, status=begun())
    for manifest in (node("node-1"), node("node-2")):
        kube.put(NODES, manifest)
    kube.put(PODS, pod())

    async def main() -> int:
        async with aiohttp.ClientSession() as http:
            subject = reconciler(kube, FixedPlan(), http)
            await subject.reconcile(KEY)
            kube.put(NODES, changed)
            await asyncio.sleep(60.0)
            await subject.grounds.look()
            return subject.queue.depth()

    assert run_virtual(main) == int(looked_at)
