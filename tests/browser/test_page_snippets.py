"""The snippets really run, and make to the byte what the page made, whatever is in the prompt."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from browser.conftest import Visit
from browser.visitor import Visitor
from server.pictures import Scene
from server.running import RunningServer, encoded

PROMPTS = {
    "plain": "make the background blue",
    "quotes": """it's "blue", isn't it? '\\''""",
    "lines": "make the background blue\n\nand\tkeep the rest\n",
    "backslashes": r"C:\new\table \u0041 \x41 $HOME $(id) `id` %s",
    "chinese": "把背景改成蓝色\uff0c保留“杯子” 🫖",
    "signs": "@before.png;type=text/plain",
}
BEFORE = encoded(Scene().draw())


def snippet(visitor: Visitor, tab: str) -> str:
    visitor.page.get_by_role("tab", name=tab).click()
    text: str = visitor.page.locator("#snippet-text").text_content() or ""
    return text


def run_both(visitor: Visitor, folder: Path, kind: str = "png") -> list[bytes]:
    """The files that the two snippets write."""
    made = []
    for tab, program in (("cURL", ["bash", "-e"]), ("Python", [sys.executable, "-W", "error"])):
        done = subprocess.run(
            program,
            input=snippet(visitor, tab).encode(),
            cwd=folder,
            capture_output=True,
            check=False,
            env={**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
        )
        assert done.returncode == 0, (tab, done.stderr.decode())
        made.append((folder / f"edited.{kind}").read_bytes())
        (folder / f"edited.{kind}").unlink()
    return made


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS.keys())
def test_the_snippets_make_what_the_page_made(visit: Visit, demo: RunningServer, tmp_path: Path, prompt: str) -> None:
    visitor = visit(demo)
    visitor.choose(BEFORE)
    (tmp_path / "before.png").write_bytes(BEFORE)
    visitor.ask(prompt, steps=2, seed=7)
    visitor.run()
    by_page = visitor.result()

    assert run_both(visitor, tmp_path) == [by_page, by_page]


def test_all_fields_and_files_are_in_the_snippets(visit: Visit, demo: RunningServer, tmp_path: Path) -> None:
    visitor = visit(demo)
    page = visitor.page
    name = 'it\'s "a" mug; 杯.png'
    visitor.choose(BEFORE, name)
    other = encoded(Scene(kind="box").draw())
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Add a picture").click()
    chooser.value.set_files({"name": "box.png", "mimeType": "image/png", "buffer": other})
    page.get_by_role("button", name="Mask", exact=True).click()
    visitor.drag_on_mask((0.2, 0.2), (0.8, 0.2))
    page.get_by_label("Soft edge").fill("3")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save mask").click()
    download.value.save_as(tmp_path / "mask.png")
    (tmp_path / name).write_bytes(BEFORE)
    (tmp_path / "box.png").write_bytes(other)
    page.get_by_label("Format").select_option("webp")
    page.get_by_label("File quality").fill("70")
    page.get_by_label("What it should not show").fill('it\'s \\ "text"')
    visitor.ask("make the background blue", steps=2, seed=7, size="original")
    visitor.run()
    by_page = visitor.result()

    assert run_both(visitor, tmp_path, "webp") == [by_page, by_page]


def test_several_results_come_as_several_files(visit: Visit, demo: RunningServer, tmp_path: Path) -> None:
    visitor = visit(demo)
    visitor.choose(BEFORE)
    (tmp_path / "before.png").write_bytes(BEFORE)
    visitor.page.get_by_role("combobox", name="Results").select_option("2")
    visitor.ask("make the background blue", steps=2, seed=7)
    subprocess.run(
        ["bash", "-e"], input=snippet(visitor, "cURL").encode(), cwd=tmp_path, capture_output=True, check=True
    )
    by_shell = [(tmp_path / f"edited-{number}.png").read_bytes() for number in (1, 2)]
    subprocess.run(
        [sys.executable], input=snippet(visitor, "Python").encode(), cwd=tmp_path, capture_output=True, check=True
    )

    assert by_shell == [(tmp_path / f"edited-{number}.png").read_bytes() for number in (1, 2)]
    assert by_shell[0] != by_shell[1]


def test_the_copy_button_copies_the_snippet(visit: Visit, demo: RunningServer) -> None:
    visitor = visit(demo, permissions=["clipboard-read", "clipboard-write"])
    visitor.page.get_by_role("tab", name="Python").click()
    visitor.page.get_by_role("button", name="Copy").click()
    visitor.says("Copied", at="#announce")

    assert "client.images.edit(" in visitor.page.evaluate("navigator.clipboard.readText()")


def test_the_tabs_follow_the_arrow_keys(visit: Visit, demo: RunningServer) -> None:
    visitor = visit(demo)
    visitor.page.get_by_role("tab", name="cURL").press("ArrowRight")

    assert "import openai" in (visitor.page.locator("#snippet-text").text_content() or "")
