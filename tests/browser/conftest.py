"""The page in a real browser against the real server.

Each visit has a profile of its own, and a test fails when the browser's console complains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from browser import chromium
from browser.visitor import Visitor
from server.running import RunningServer, running_server

HERE = Path(__file__).parent
TIMEOUT_S = 180

Visit = Callable[..., Visitor]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A longer timeout for tests that set none."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


def pytest_collection_finish(session: pytest.Session) -> None:
    """The browser is installed before the first test."""
    if any(item.path.is_relative_to(HERE) for item in session.items) and not session.config.option.collectonly:
        chromium.install_missing(session)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium.path(), args=list(chromium.ARGUMENTS))
        yield started
        started.close()


@pytest.fixture(scope="session")
def demo() -> Iterator[RunningServer]:
    """A server with the demo checkpoint that takes all that a model can take."""
    with running_server("--max-references", "2", "--warm-cfg", "on", "--steps", "8", ready_timeout_s=170) as running:
        yield running


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Opens the page of a server, as a visitor with a profile of its own."""
    visitors: list[Visitor] = []

    def opened(server: RunningServer, **options: Any) -> Visitor:
        visitors.append(Visitor(browser, server, **options))
        return visitors[-1]

    yield opened
    for visitor in visitors:
        visitor.leave()
    for visitor in visitors:
        assert visitor.complaints == []
