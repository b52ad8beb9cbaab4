"""What the page says while an edit waits, runs, is cancelled or refused; each step takes a tenth of a second here."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from browser.conftest import Visit
from browser.visitor import Visitor
from server.running import RunningServer, answers, in_background, picture, stub_server, until

# Long enough that a slow machine sees the edit run; where it is not needed any more it is cancelled.
LONG = 200
ARGUMENTS = ("--steps", "2", "--steps-high", str(LONG), "--max-wait", "600")


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with stub_server(*ARGUMENTS, edit_s=0.2) as running:
        yield running


@pytest.fixture(scope="module")
def small() -> Iterator[RunningServer]:
    """One edit runs, and none may wait."""
    with stub_server(*ARGUMENTS, "--queue-hard-limit", "0", edit_s=0.2) as running:
        yield running


def start(server: RunningServer, visitor: Visitor, *, steps: int) -> None:
    """Start an edit on the page, and wait until it is on the card."""
    visitor.choose(picture())
    visitor.ask("make the background blue", steps=steps)
    visitor.run()
    until(lambda: server.health()["running"] == 1, timeout_s=60, what="the edit runs")


def another_runs(server: RunningServer) -> None:
    until(lambda: server.health()["running"] == 1, timeout_s=60, what="another edit runs")


def test_steps_are_shown_as_they_are_done(visit: Visit, server: RunningServer) -> None:
    visitor = visit(server)
    start(server, visitor, steps=60)
    visitor.says(" of 60")
    bar = visitor.page.get_by_role("progressbar", name="Edit")

    assert 0 < int(bar.get_attribute("aria-valuenow") or 0) <= 100
    visitor.says("Done.")
    expect(bar).to_be_hidden()


def test_the_place_in_the_queue_is_shown_until_the_turn_comes(visit: Visit, server: RunningServer) -> None:
    visitor = visit(server)
    visitor.choose(picture())
    visitor.ask("make the background blue", steps=20)
    with in_background(lambda: server.edit(steps=80)):
        another_runs(server)
        visitor.run()
        visitor.says("1 edit is before yours.")
        visitor.says("1 edit is before yours.", at="#announce")
        visitor.says("Step")
        visitor.says("Done.")


def test_cancel_gives_the_card_back(visit: Visit, server: RunningServer) -> None:
    visitor = visit(server)
    start(server, visitor, steps=LONG)
    visitor.page.get_by_role("button", name="Cancel").click()
    visitor.says("Cancelled.")

    until(lambda: server.health()["running"] == 0, timeout_s=60, what="the card is free")
    expect(visitor.page.get_by_role("button", name="Edit picture")).to_be_focused()


def test_the_button_does_not_start_a_second_edit(visit: Visit, server: RunningServer) -> None:
    visitor = visit(server)
    start(server, visitor, steps=LONG)
    visitor.page.locator("#run").click()
    visitor.page.locator("#prompt").press("Control+Enter")
    visitor.says("Step")

    assert server.health()["waiting"] == 0
    expect(visitor.page.locator("#run")).to_have_attribute("aria-disabled", "true")
    visitor.page.get_by_role("button", name="Cancel").click()
    until(lambda: server.health()["running"] == 0, timeout_s=60, what="the card is free")


def test_a_full_queue_is_said_with_a_countdown_and_tried_again(visit: Visit, small: RunningServer) -> None:
    visitor = visit(small, refused=(429,))
    visitor.choose(picture())
    visitor.ask("make the background blue", steps=2)
    with in_background(lambda: small.edit(steps=60)):
        another_runs(small)
        visitor.run()
        visitor.says("no more may", at="#problem")
        visitor.says("Trying again in")
        visitor.says("Done.")

    expect(visitor.page.locator("#problem")).to_be_empty()


def test_trying_again_can_be_stopped(visit: Visit, small: RunningServer) -> None:
    visitor = visit(small, refused=(429,))
    visitor.choose(picture())
    visitor.ask("make the background blue", steps=2)
    with in_background(lambda: small.edit(steps=100)):
        another_runs(small)
        visitor.run()
        visitor.page.get_by_role("button", name="Stop trying").click()
        visitor.says("Not sent.")

    expect(visitor.page.get_by_role("button", name="Edit picture")).to_be_focused()


def test_what_fails_on_the_card_is_said_and_then_a_server_that_is_away(visit: Visit) -> None:
    with stub_server(*ARGUMENTS, edit_s=0.2) as server:
        visitor = visit(server)
        start(server, visitor, steps=LONG)
        visitor.says("Step")
        os.kill(server.worker_pid(), signal.SIGKILL)
        visitor.says("The worker process was lost", at="#problem")
        server.process.kill()
        server.process.wait()
        visitor.run()
        visitor.says("The server cannot be reached.", at="#problem")
    # The browser reports the failed request, and nothing else.
    assert len(visitor.complaints) == 1
    assert "ERR_CONNECTION_REFUSED" in visitor.complaints.pop()


def test_a_page_opened_before_the_model_is_loaded_offers_what_it_takes_when_it_is(visit: Visit) -> None:
    with stub_server("--stub-load-seconds", "6", ready=False) as loading:
        until(lambda: answers(loading), timeout_s=60, what="it listens")
        visitor = visit(loading)
        guidance = visitor.page.locator("#guidance-part")
        assert guidance.get_attribute("hidden") is not None
        expect(guidance).not_to_have_attribute("hidden", "", timeout=60_000)
