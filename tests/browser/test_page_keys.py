"""The page in front of a server that asks for API keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.conftest import Visit
from server.running import RunningServer, picture, stub_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    path: Path = tmp_path_factory.mktemp("keys") / "keys"
    path.write_text("the-right-key\n")
    with stub_server("--api-keys-file", str(path), edit_s=0.2) as running:
        yield running


def test_the_key_is_asked_for_and_used(visit: Visit, server: RunningServer) -> None:
    visitor = visit(server, refused=(401,), wait=False)
    dialog = visitor.page.get_by_role("dialog", name="This server asks for an API key")
    expect(dialog).to_be_visible()
    key = dialog.get_by_label("API key", exact=True)
    expect(key).to_be_focused()
    key.fill("a-wrong-key")
    key.press("Enter")
    visitor.says("The server does not know this key.", at="#key-problem")
    key.fill("the-right-key")
    key.press("Enter")
    visitor.says("image-edit", at="#model")
    expect(dialog).to_be_hidden()
    visitor.choose(picture())
    visitor.ask("make the background blue")
    visitor.run()

    assert visitor.picture().size == (128, 128)
    visitor.says("Authorization: Bearer $IMAGEEDIT_API_KEY", at="#snippet")
    assert "the-right-key" not in visitor.page.content()


def test_the_key_lives_in_the_tab_alone_and_can_be_forgotten(visit: Visit, server: RunningServer) -> None:
    visitor = visit(server, refused=(401,), wait=False)
    page = visitor.page
    page.locator("#key").fill("the-right-key")
    page.get_by_role("button", name="Use this key").click()
    visitor.says("image-edit", at="#model")

    assert page.evaluate("[Object.values(sessionStorage), localStorage.length, document.cookie]") == [
        ["the-right-key"],
        0,
        "",
    ]
    page.reload()
    visitor.says("image-edit", at="#model")
    page.get_by_role("button", name="API key").click()
    page.get_by_role("button", name="Forget it").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0
