"""Events become keys, and kopf is set up to write nothing and to keep going."""

from __future__ import annotations

from itertools import islice
from typing import Any

import kopf
import pytest

from imageedit_operator.kube.client import DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS, PODS, Resource
from imageedit_operator.wake_ups import SELECTOR, SOON_S, Sights, keys_for
from imageedit_operator.watching import Scope, build_registry, build_settings
from imageedit_operator.workqueue import Key
from unit.operator_shell.builders import custom_resource, deployment, pod

EDIT = (Key("team", "edit"),)


@pytest.mark.parametrize(
    ("resource", "manifest", "keys"),
    [
        (IMAGE_EDIT_DEPLOYMENTS, custom_resource(), EDIT),
        (DEPLOYMENTS, deployment(), EDIT),
        (PODS, pod(), EDIT),
        (DEPLOYMENTS, {"metadata": {"name": "x", "namespace": "team"}}, ()),
        (PODS, {"metadata": {"name": "x", "namespace": "team", "labels": {"app": "y"}}}, ()),
        (PODS, {"metadata": {"name": "x", "labels": {"imageedit.dev/deployment": "edit"}}}, ()),
        (IMAGE_EDIT_DEPLOYMENTS, {}, ()),
    ],
)
def test_an_event_wakes_the_resource_that_it_belongs_to(
    resource: Resource, manifest: dict[str, Any], keys: tuple[Key, ...]
) -> None:
    assert keys_for(resource, manifest) == keys


def delays(resource: Resource, *manifests: dict[str, Any]) -> list[float | None]:
    """When each of these versions of one object asks for a look."""
    sights = Sights()
    return [sights.delay_s(resource, manifest, gone=False) for manifest in manifests]


def changed(manifest: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": "99", **metadata}}


PENDING = pod(spec={"nodeName": ""}, podIP="", phase="Pending", containerStatuses=[])
LOADING = [{"name": "server", "state": {"waiting": {"reason": "ContainerCreating"}}}]
BROKEN = [{"name": "server", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]
GATE = {"type": "imageedit.dev/warm", "status": "True"}
READY = {"type": "Ready", "status": "True"}
NO_PLACE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


@pytest.mark.parametrize(
    ("resource", "before", "after", "delay_s"),
    [
        (IMAGE_EDIT_DEPLOYMENTS, custom_resource(), changed(custom_resource(status={"phase": "x"})), None),
        (IMAGE_EDIT_DEPLOYMENTS, custom_resource(), changed(custom_resource(), generation=2), 0.0),
        (IMAGE_EDIT_DEPLOYMENTS, custom_resource(), changed(custom_resource(), annotations={"a": "b"}), 0.0),
        (IMAGE_EDIT_DEPLOYMENTS, custom_resource(), changed(custom_resource(), deletionTimestamp="t"), 0.0),
        (DEPLOYMENTS, deployment(), changed(deployment()), None),
        (DEPLOYMENTS, deployment(), changed(deployment(), generation=2), SOON_S),
        (DEPLOYMENTS, deployment(), changed(deployment(), ownerReferences=[]), SOON_S),
        (DEPLOYMENTS, deployment(), changed(deployment(), labels={}), SOON_S),
        (PODS, pod(), changed(pod()), None),
        (PODS, PENDING, changed(pod(phase="Pending", podIP="", containerStatuses=LOADING)), SOON_S),
        (PODS, PENDING, changed(pod(phase="Pending", podIP="", containerStatuses=BROKEN)), 0.0),
        (PODS, PENDING, changed({**PENDING, "status": {"conditions": [NO_PLACE]}}), 0.0),
        (PODS, PENDING, changed(pod()), 0.0),
        (PODS, pod(), changed(pod(conditions=[GATE])), SOON_S),
        (PODS, pod(conditions=[GATE]), changed(pod(conditions=[GATE, READY])), 0.0),
        (PODS, pod(), changed(pod(), deletionTimestamp="t"), 0.0),
        (PODS, pod(), changed(pod(phase="Failed")), 0.0),
        (PODS, pod(), changed(pod(containerStatuses=[])), 0.0),
    ],
)
def test_an_event_asks_for_a_look_as_soon_as_somebody_waits_for_it(
    resource: Resource, before: dict[str, Any], after: dict[str, Any], delay_s: float | None
) -> None:
    assert delays(resource, before, after)[1] == delay_s


@pytest.mark.parametrize(
    ("resource", "manifest", "delay_s"),
    [
        (IMAGE_EDIT_DEPLOYMENTS, custom_resource(), 0.0),
        (DEPLOYMENTS, deployment(), SOON_S),
        (PODS, PENDING, SOON_S),
        (PODS, pod(), 0.0),
    ],
)
def test_what_is_seen_first_is_news(resource: Resource, manifest: dict[str, Any], delay_s: float) -> None:
    assert delays(resource, manifest) == [delay_s]


@pytest.mark.parametrize(
    ("resource", "manifest"), [(IMAGE_EDIT_DEPLOYMENTS, custom_resource()), (DEPLOYMENTS, deployment()), (PODS, pod())]
)
def test_what_is_gone_is_looked_at_once_and_forgotten(resource: Resource, manifest: dict[str, Any]) -> None:
    sights = Sights()
    first = sights.delay_s(resource, manifest, gone=False)
    assert sights.delay_s(resource, manifest, gone=True) == 0.0
    assert sights.delay_s(resource, manifest, gone=False) == first


def served(plural: str, group: str, version: str) -> kopf.Resource:
    """A kind as kopf finds it by discovery."""
    return kopf.Resource(group=group, version=version, plural=plural, namespaced=True)


@pytest.mark.parametrize(("plural", "group"), [("deployments", "apps"), ("pods", "")])
def test_children_are_filtered_by_the_server(plural: str, group: str) -> None:
    selectors = build_settings().watching.label_selectors
    assert list(selectors.collect(served(plural, group, "v1"))) == [SELECTOR]


def test_our_own_kind_is_watched_whole() -> None:
    selectors = build_settings().watching.label_selectors
    assert list(selectors.collect(served("imageeditdeployments", "imageedit.dev", "v1alpha1"))) == []


def test_kopf_keeps_no_state_and_posts_no_events() -> None:
    settings = build_settings()
    assert (settings.posting.enabled, settings.peering.standalone, settings.scanning.disabled) == (False, True, True)
    assert settings.process.ultimate_exiting_timeout is None


def test_kopf_copies_and_compares_no_object() -> None:
    storage = build_settings().persistence.diffbase_storage
    body = kopf.Body(custom_resource())
    assert storage.build(body=body) == {}
    assert storage.fetch(body=body) is None


def test_kopf_retries_for_ever_with_bounded_pauses() -> None:
    pauses = list(islice(iter(build_settings().networking.error_backoffs), 50))
    assert len(pauses) == 50
    assert 0.75 <= pauses[0] <= 1.25
    assert all(22.5 <= pause <= 37.5 for pause in pauses[5:])


def test_only_event_handlers_are_registered() -> None:
    registry = build_registry(
        Scope(namespaces=(), kubeconfig=""), lambda _key, _delay_s: None, lambda _key, _version: None
    )
    kinds = [
        served("imageeditdeployments", "imageedit.dev", "v1alpha1"),
        served("deployments", "apps", "v1"),
        served("pods", "", "v1"),
    ]
    assert [registry._watching.has_handlers(resource=kind) for kind in kinds] == [True, True, True]
    for others in (registry._changing, registry._spawning, registry._indexing):
        assert not any(others.has_handlers(resource=kind) for kind in kinds)
