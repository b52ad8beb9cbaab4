"""Events become keys, and kopf is set up to write nothing and to keep going."""

from __future__ import annotations

from itertools import islice
from typing import Any

import kopf
import pytest

from imageedit_operator.kube.client import DEPLOYMENTS, IMAGE_EDIT_DEPLOYMENTS, PODS, Resource
from imageedit_operator.wake_ups import SELECTOR, keys_for
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
    registry = build_registry(Scope(namespaces=(), kubeconfig=""), lambda _key: None, lambda _key, _version: None)
    kinds = [
        served("imageeditdeployments", "imageedit.dev", "v1alpha1"),
        served("deployments", "apps", "v1"),
        served("pods", "", "v1"),
    ]
    assert [registry._watching.has_handlers(resource=kind) for kind in kinds] == [True, True, True]
    for others in (registry._changing, registry._spawning, registry._indexing):
        assert not any(others.has_handlers(resource=kind) for kind in kinds)
