"""The one cluster that all cluster tests share.

It is left running when it ran before, or with IMAGEEDIT_KEEP=1. Tests of the cluster's own life
(test_localcluster_lifecycle.py) go first, while no cluster runs.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster import cluster as local
from localcluster import external, health
from localcluster.addresses import RESOURCE_NAME
from localcluster.paths import cluster_layout
from support.kubectl import Kubectl, wait_for
from support.programs import build_programs
from support.resources import Resource
from support.system import DEMO_NAME, DEMO_NAMESPACE, VALUES_OF_TESTS, install_operator

HERE = Path(__file__).parent
LIFECYCLE = "test_localcluster_lifecycle.py"
CARDS = 2
CARDS_TIMEOUT_S = 60.0
TIMEOUT_S = 180
"""The first test of a session also waits for the cluster to come up."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Lifecycle tests first, after any shuffle; a longer timeout for tests that set none."""
    items.sort(key=lambda item: item.path.name != LIFECYCLE)
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Programs that are not cached are built before the first test."""
    if external.kubeconfig() is None:
        build_programs(session, HERE)


@pytest.fixture(scope="session")
def cluster() -> Iterator[local.Cluster]:
    """The running cluster, with two healthy cards at the start."""
    ran_before = external.kubeconfig() is not None or health.healthy(cluster_layout())
    yield local.up(cards=CARDS)
    if not ran_before and not os.environ.get("IMAGEEDIT_KEEP"):
        local.down()


@pytest.fixture(scope="session")
def kubectl(cluster: local.Cluster) -> Kubectl:
    """kubectl and helm for the cluster, as its admin."""
    return Kubectl(kubeconfig=cluster.kubeconfig, kubectl=cluster.kubectl, helm=cluster.helm)


@pytest.fixture
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """A namespace of the test's own; its pods are gone, and their cards free, when the test ends."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    kubectl.run("create", "namespace", name)
    yield name
    kubectl.run("delete", "namespace", name, "--wait=false")
    # A pod that stays keeps its card from every test that follows, so a loaded machine is waited for.
    kubectl.run("delete", "pods", "--all", "-n", name, "--grace-period=1", "--timeout=150s", timeout_s=180)


@pytest.fixture(scope="session")
def installed(kubectl: Kubectl) -> None:
    """The operator, from the working tree's chart; what `make demo` left running gives its cards back first."""
    if kubectl.exists("namespace", DEMO_NAMESPACE):
        Resource(kubectl, DEMO_NAME, DEMO_NAMESPACE).delete()
    install_operator(kubectl, values=VALUES_OF_TESTS)


@pytest.fixture
def two_cards(cluster: local.Cluster, kubectl: Kubectl) -> None:
    """Two healthy cards that the node offers, whatever the test before left: tests run in any order."""
    if not cluster.embedded:
        return

    def offered() -> bool:
        (node,) = kubectl.get("nodes")["items"]
        return int(node["status"]["allocatable"].get(RESOURCE_NAME, 0)) == CARDS

    cluster.set_cards(CARDS)
    wait_for(f"{CARDS} cards that the node offers", offered, timeout_s=CARDS_TIMEOUT_S)


@pytest.fixture
def resource(installed: None, two_cards: None, kubectl: Kubectl, namespace: str) -> Iterator[Resource]:
    """A resource of the test's own, not created yet; its cards are free again when the test ends."""
    made = Resource(kubectl, "edit", namespace)
    yield made
    made.delete()


@pytest.fixture
def other_resource(installed: None, two_cards: None, kubectl: Kubectl, namespace: str) -> Iterator[Resource]:
    """A second one beside it."""
    made = Resource(kubectl, "other", namespace)
    yield made
    made.delete()
