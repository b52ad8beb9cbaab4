"""The page in a real browser against the real server.

Each visit has a profile of its own, and a test fails when the browser's console complains.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from browser import chromium, network
from browser.visitor import Visitor
from server.running import RunningServer, running_server

HERE = Path(__file__).parent
TIMEOUT_S = 180

Visit = Callable[..., Visitor]
VISITORS = pytest.StashKey[list[Visitor]]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A longer timeout for tests that set none."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


def pytest_collection_finish(session: pytest.Session) -> None:
    """The browser is installed before the first test; then the session needs no network but its own."""
    ours = [item.path.is_relative_to(HERE) for item in session.items]
    if not any(ours) or session.config.option.collectonly:
        return
    chromium.install_missing(session)
    if all(ours):
        network.enter()


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
def visit(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """Opens the page of a server, as a visitor with a profile of its own."""
    visitors = request.node.stash.setdefault(VISITORS, [])

    def opened(server: RunningServer, *, wait: bool = True, **options: Any) -> Visitor:
        visitor = Visitor(browser, server, **options)
        visitors.append(visitor)
        visitor.arrive(wait=wait)
        return visitor

    yield opened
    for visitor in visitors:
        visitor.leave()
    for visitor in visitors:
        assert visitor.complaints == []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test says how the pages stand, since a locator that never came true does not say why."""
    report = yield
    if report.failed and report.when != "teardown":
        for visitor in item.stash.get(VISITORS, []):
            with contextlib.suppress(PlaywrightError):
                report.sections.append(("the page", visitor.standing()))
    return report
