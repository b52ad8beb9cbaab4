"""Tests against etcd and the API server alone, which each test module starts for itself in seconds; no node."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.programs import build_programs

HERE = Path(__file__).parent
TIMEOUT_S = 180


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A longer timeout for tests that set none."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Programs that are not cached are built before the first test."""
    build_programs(session, HERE)
