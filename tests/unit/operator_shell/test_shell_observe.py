"""One look: what the apiserver, the pods and Prometheus say, joined."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from imageedit_operator.core import manifests
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.manifests import OWNER_UID, RENDERED
from imageedit_operator.core.observed import Observed
from imageedit_operator.core.resource import parse
from imageedit_operator.core.revision import deployment_name, revision_hash
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.budgets import BudgetBook
from imageedit_operator.kube.cards import CardBook
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.kept import Kept
from imageedit_operator.kube.kinds import BUDGETS, DEPLOYMENTS, NODES, PODS, SERVICES
from imageedit_operator.kube.observe import Observer
from imageedit_operator.kube.warmz import ask_warmz
from unit.operator_shell.builders import MemoryKube, cluster, custom_resource, deployment, node, owner, pod, warm_body
from unit.operator_shell.loopback import answering


async def look(
    kube: MemoryKube, manifest: Manifest | None = None, *, http: aiohttp.ClientSession | None = None, port: int = 1
) -> Observed:
    """One look at a cluster in memory."""
    if http is None:
        async with aiohttp.ClientSession() as session:
            return await look(kube, manifest, http=session, port=port)
    manifest = manifest or custom_resource()
    cards = CardBook(kube, clock=lambda: 0.0)
    return await Observer(kube, http, cards, BudgetBook(kube, clock=lambda: 0.0), probes_port=port).observe(
        parse(manifest), manifest
    )


async def test_an_empty_cluster_has_nothing() -> None:
    seen = await look(cluster())
    assert (seen.deployments, seen.pods, seen.service_exists, seen.status) == ((), (), False, {})


async def test_an_own_service_and_budget_that_are_kept_are_not_read_again() -> None:
    wanted = parse(custom_resource())
    about = {"uid": "u", "resourceVersion": "5"}
    service, budget = manifests.service(wanted), manifests.budget(wanted, 1)
    kube = cluster(
        *(
            (kind, {**raw, "metadata": raw["metadata"] | about})
            for kind, raw in ((SERVICES, service), (BUDGETS, budget))
        )
    )
    kept = Kept(clock=lambda: 0.0)
    cards, budgets = CardBook(kube, clock=lambda: 0.0), BudgetBook(kube, clock=lambda: 0.0, kept=kept)
    async with aiohttp.ClientSession() as http:
        observer = Observer(kube, http, cards, budgets, kept=kept)
        seen = [await observer.observe(wanted, custom_resource()) for _ in range(2)]
    assert seen[0] == seen[1]
    assert seen[1].service_matches
    assert [plural for verb, plural, _ in kube.calls if verb == "get" and plural != "deployments"] == [
        "services",
        "poddisruptionbudgets",
    ]


async def test_children_are_found_by_label_in_the_namespace() -> None:
    stranger = pod("other")
    stranger["metadata"]["labels"]["imageedit.dev/deployment"] = "another"
    elsewhere = pod("elsewhere", metadata={"namespace": "other"})
    kube = cluster((DEPLOYMENTS, deployment()), (PODS, pod(podIP="")), (PODS, stranger), (PODS, elsewhere))
    seen = await look(kube)
    assert [item.name for item in seen.deployments] == ["edit-abc"]
    assert [item.name for item in seen.pods] == ["edit-abc-1"]


async def test_pods_of_an_earlier_resource_of_the_name_are_not_seen() -> None:
    uid = custom_resource()["metadata"]["uid"]
    kube = cluster()
    for name, labels in (("before", {OWNER_UID: "gone"}), ("ours", {OWNER_UID: uid}), ("unlabelled", {})):
        one = pod(name, podIP="")
        one["metadata"]["labels"] |= labels
        kube.put(PODS, one)
    assert [item.name for item in (await look(kube)).pods] == ["ours", "unlabelled"]


async def test_a_foreign_deployment_of_the_wanted_name_is_seen_without_our_labels() -> None:
    resource = parse(custom_resource())
    foreign = deployment(deployment_name("edit", revision_hash(resource)), owners=[])
    foreign["metadata"]["labels"] = {}
    seen = await look(cluster((DEPLOYMENTS, foreign)))
    assert [(item.owned, item.foreign_owner) for item in seen.deployments] == [(False, "nobody")]


def of_the_spec() -> Manifest:
    """The Deployment that the operator wrote, as the apiserver keeps it."""
    resource = parse(custom_resource())
    made = manifests.deployment(resource, revision_hash(resource))
    more = {"uid": "d", "resourceVersion": "7", "creationTimestamp": "2026-11-30T03:00:00Z"}
    fields: dict[str, Any] = {"f:spec": {"f:strategy": {"f:type": {}}}}
    written = [{"manager": "imageedit-operator", "operation": "Apply", "fieldsV1": fields}]
    return copy.deepcopy({**made, "metadata": {**made["metadata"], **more, "managedFields": written}})


async def lost(made: Manifest) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """What the Deployment has lost: fields in words, and labels."""
    (seen,) = (await look(cluster((DEPLOYMENTS, made)))).deployments
    return seen.changed, seen.labels_lost


async def test_a_deployment_as_it_was_written_has_lost_nothing() -> None:
    assert await lost(of_the_spec()) == ((), {})


async def test_a_field_that_somebody_took_from_a_deployment_is_named() -> None:
    made = of_the_spec()
    del made["spec"]["template"]["spec"]["readinessGates"]
    assert await lost(made) == (("spec.template.spec.readinessGates taken away",), {})


async def test_of_a_template_that_another_operator_wrote_nobody_knows_what_is_missing() -> None:
    made = of_the_spec()
    made["metadata"]["annotations"][RENDERED] = "another"
    del made["spec"]["template"]["spec"]["readinessGates"]
    assert await lost(made) == ((), {})


async def test_a_label_that_somebody_took_or_changed_is_seen_even_the_one_that_deployments_are_found_by() -> None:
    made = of_the_spec()
    hash_ = made["metadata"]["labels"].pop("imageedit.dev/revision")
    made["metadata"]["labels"] |= {"imageedit.dev/deployment": "another", "team": "theirs"}
    labels = {"imageedit.dev/deployment": "edit", "imageedit.dev/revision": hash_}
    assert await lost(made) == ((), labels)


def service(**changes: object) -> Manifest:
    """The Service as the apiserver completes it: false fields left out, others added."""
    wanted = manifests.service(parse(custom_resource()))
    spec = {name: value for name, value in wanted["spec"].items() if value} | {"clusterIP": "10.96.0.9", **changes}
    return {**wanted, "metadata": {**wanted["metadata"], "uid": "s"}, "spec": spec}


async def test_a_service_with_the_apiservers_defaults_matches() -> None:
    seen = await look(cluster((SERVICES, service())))
    assert (seen.service_exists, seen.service_matches, seen.service_foreign_owner) == (True, True, "")


async def test_a_service_that_somebody_changed_does_not_match() -> None:
    seen = await look(cluster((SERVICES, service(selector={"app": "other"}))))
    assert (seen.service_exists, seen.service_matches) == (True, False)


async def test_a_service_whose_selector_asks_for_more_does_not_match() -> None:
    selector = {**manifests.service(parse(custom_resource()))["spec"]["selector"], "app": "other"}
    assert not (await look(cluster((SERVICES, service(selector=selector))))).service_matches


OWNERS = service()["metadata"]["ownerReferences"]
MORE_PORTS = [*manifests.service(parse(custom_resource()))["spec"]["ports"], {"name": "metrics", "port": 9999}]


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"spec": {**service()["spec"], "ports": MORE_PORTS}}, id="a port"),
        pytest.param(
            {"metadata": {**service()["metadata"], "ownerReferences": [{"kind": "Team", "uid": "t"}, *OWNERS]}},
            id="an owner",
        ),
    ],
)
async def test_a_service_to_which_somebody_added_an_item_is_not_applied_for_ever(more: Manifest) -> None:
    assert (await look(cluster((SERVICES, {**service(), **more})))).service_matches


async def test_a_port_that_somebody_added_is_not_told_of_as_put_back() -> None:
    ours: dict[str, Any] = {'k:{"port":80,"protocol":"TCP"}': {"f:targetPort": {}}}
    fields = {"f:spec": {"f:ports": {'k:{"port":9999,"protocol":"TCP"}': {".": {}, "f:port": {}}, **ours}}}
    changed = service(ports=[{**MORE_PORTS[0], "targetPort": 1}, MORE_PORTS[1]])
    changed["metadata"]["managedFields"] = [{"manager": "kubectl-edit", "operation": "Update", "fieldsV1": fields}]
    seen = await look(cluster((SERVICES, changed)))
    assert seen.service_changed == ("spec.ports[port=80,protocol=TCP].targetPort by kubectl-edit",)


async def test_a_service_of_somebody_else_names_its_owner() -> None:
    foreign = service()
    foreign["metadata"]["ownerReferences"] = [owner(uid="other")]
    assert (await look(cluster((SERVICES, foreign)))).service_foreign_owner == "ImageEditDeployment edit"


@pytest.mark.parametrize("verb", ["list deployments", "list pods", "get services"])
async def test_a_read_that_is_refused_ends_the_look(verb: str) -> None:
    kube = MemoryKube(refuse={verb: ApiError(status=500, reason="InternalError", message="etcd")})
    with pytest.raises(ApiError, match="etcd"):
        await look(kube)


async def test_cards_are_read_for_the_resource_that_the_pods_ask_for() -> None:
    seen = await look(cluster((NODES, node(cards=3))))
    assert isinstance(seen.cards, Known)
    assert seen.cards.value.free == 3


async def test_pods_without_a_card_need_no_ledger() -> None:
    kube = cluster((NODES, node()))
    seen = await look(kube, custom_resource(accelerator={"device": "cpu", "resourceName": ""}))
    assert isinstance(seen.cards, Unknown)
    assert seen.cards.reason == "NoCardAsked"
    assert ("list", "nodes", "") not in kube.calls


async def test_prometheus_is_asked_only_for_autoscaling() -> None:
    seen = await look(cluster())
    assert isinstance(seen.queue, Unknown)
    assert seen.queue.reason == "NotAsked"
    metrics = {"prometheus": {"address": "http://127.0.0.1:1"}}
    seen = await look(cluster(), custom_resource(autoscaling={"maxReplicas": 2, "metrics": metrics}))
    assert isinstance(seen.queue, Unknown)
    assert seen.queue.reason == "PrometheusUnreachable"


@pytest.mark.parametrize("status", [200, 503])
async def test_a_pod_that_runs_is_asked_for_its_warm_report_whatever_the_status(status: int) -> None:
    async def server(request: web.Request) -> web.Response:
        assert request.path == "/warmz"
        return web.json_response(warm_body(warm=status == 200), status=status)

    async with answering(server) as (http, port):
        seen = await look(cluster((PODS, pod(podIP="127.0.0.1"))), http=http, port=port)
    report = seen.pods[0].report
    assert isinstance(report, Known)
    assert report.value.warm is (status == 200)


@pytest.mark.parametrize(
    "unasked",
    [
        pod(podIP=""),
        pod(containerStatuses=[]),
        pod(metadata={"deletionTimestamp": "2026-11-30T03:00:00Z"}),
    ],
)
async def test_a_pod_that_cannot_answer_is_not_asked(unasked: Manifest) -> None:
    report = (await look(cluster((PODS, unasked)))).pods[0].report
    assert isinstance(report, Unknown)
    assert report.reason == "NotAsked"


@pytest.mark.parametrize("body", ["", "{}", "<html>", "[1]", '{"warm": "yes"}', "x" * 400_000, "[" * 200_000])
async def test_a_body_that_is_no_report_is_a_bad_answer(body: str) -> None:
    async def server(_: web.Request) -> web.Response:
        return web.Response(text=body)

    async with answering(server) as (http, port):
        report = await ask_warmz(http, "127.0.0.1", port)
    assert isinstance(report, Unknown)
    assert report.reason == "BadAnswer"


async def test_a_pod_that_does_not_listen_is_unreachable() -> None:
    async with aiohttp.ClientSession() as http:
        report = await ask_warmz(http, "127.0.0.1", 1)
    assert isinstance(report, Unknown)
    assert report.reason == "Unreachable"


async def test_a_pod_that_stays_silent_is_unreachable() -> None:
    released = asyncio.Event()

    async def silent(_: web.Request) -> web.Response:
        await released.wait()
        return web.Response()

    async with answering(silent) as (http, port):
        report = await ask_warmz(http, "127.0.0.1", port, timeout_s=0.05)
        released.set()
    assert isinstance(report, Unknown)
    assert (report.reason, "0.05 s" in report.message) == ("Unreachable", True)


ON_NODES = {
    "name": "m",
    "revision": "1",
    "source": {"pvc": {"claimName": "models"}},
    "prefetch": {"hostPath": {"path": "/data"}},
}


async def test_the_nodes_are_read_only_where_copies_are_wanted_on_them() -> None:
    kube = cluster((NODES, node("n1")))
    assert (await look(kube, custom_resource(model=ON_NODES))).nodes == Known(value={"n1": "uid-n1"})
    in_claim = {**ON_NODES, "prefetch": {"pvc": {"claimName": "fast"}}}
    cpu = {"device": "cpu", "resourceName": ""}
    for manifest in (
        custom_resource(),
        custom_resource(model=in_claim),
        custom_resource(model=ON_NODES, accelerator=cpu),
    ):
        assert isinstance((await look(kube, manifest)).nodes, Unknown)


async def test_pods_of_jobs_are_none_of_the_resources_pods() -> None:
    copier = pod("edit-prefetch-1-x", metadata={"labels": {"imageedit.dev/prefetch": "edit"}})
    assert (await look(cluster((PODS, copier)), custom_resource(model=ON_NODES))).pods == ()
