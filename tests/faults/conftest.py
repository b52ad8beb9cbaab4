"""Faults around the operator: a real apiserver and controllers, a proxy that misbehaves, pods played by the test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from apiserver.operator_plane import client, install
from faults.invariants import CHECKS
from imageedit_operator.kube.client import KubeClient
from localcluster import controlplane
from localcluster.controlplane import ControlPlane
from support.programs import build_programs

HERE = Path(__file__).parent
TIMEOUT_S = 600
CONTROLLERS = ("deployment-controller", "replicaset-controller", "garbage-collector-controller")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A longer timeout for tests that set none."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Programs that are not cached are built before the first test."""
    build_programs(session, HERE)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How often the observer checked each invariant."""
    if CHECKS:
        terminalreporter.section("invariants")
        for name, count in sorted(CHECKS.items()):
            terminalreporter.write_line(f"{count:7d} x {name}")


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    """One apiserver with the controllers that make pods of Deployments, for all tests: each has a namespace."""
    with controlplane.up_only(with_controllers=CONTROLLERS) as started:
        install(started)
        yield started


@pytest.fixture
async def kube(plane: ControlPlane) -> AsyncIterator[KubeClient]:
    """A client as the admin, past the proxy."""
    async with client(plane) as connected:
        yield connected
