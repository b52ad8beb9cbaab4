"""The files of the web page hold together: nothing inline, nothing from elsewhere, nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from imageedit_server.api.page import FOLDER, MEDIA_TYPES, PageFile, answer, page_files

HTML = (FOLDER / "index.html").read_text()
SCRIPTS = {path.name: path.read_text() for path in sorted(FOLDER.glob("*.js"))}
STYLES = {path.name: path.read_text() for path in sorted(FOLDER.glob("*.css"))}
IDS = re.findall(r'\bid="([\w-]+)"', HTML)
FILE = PageFile(data=b"text", media_type="text/css", etag='"abc"')


def test_every_file_of_the_folder_is_served() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(page_files(FOLDER))


def test_nothing_stands_inline() -> None:
    assert re.findall(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|javascript:", HTML) == []


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.iterdir()))
def test_no_file_names_an_address(name: str) -> None:
    addresses = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+", (FOLDER / name).read_text()))

    assert addresses <= {"http://www.w3.org"}, "only the name space of SVG looks like one"


def test_what_the_page_refers_to_is_there_and_relative() -> None:
    references = set(re.findall(r'(?:src|href)="([^"#]+)', HTML))

    assert {reference.removeprefix("page/") for reference in references} <= set(page_files(FOLDER))


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_a_script_imports_is_there(name: str) -> None:
    for path, names in re.findall(r'import \{([^}]+)\} from "\./([\w.]+)"', SCRIPTS[name]):
        exported = set(re.findall(r"export (?:async )?(?:function|class|const) (\w+)", SCRIPTS[names]))
        assert {one.strip() for one in path.split(",")} <= exported


def test_every_icon_is_drawn() -> None:
    drawn = set(re.findall(r'<symbol id="(\w+)"', (FOLDER / "icons.svg").read_text()))

    assert set(re.findall(r"icons\.svg#(\w+)", HTML)) == drawn


def test_ids_are_there_once_and_labels_lead_to_them() -> None:
    referred = re.findall(r'\s(?:for|aria-controls|aria-labelledby|aria-describedby)="([^"]+)"', HTML)

    assert len(IDS) == len(set(IDS))
    assert {one for text in referred for one in text.split()} <= set(IDS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_ids_that_a_script_asks_for_are_there(name: str) -> None:
    asked = set(re.findall(r'(?:byId|getElementById)\("([\w-]+)"\)', SCRIPTS[name]))

    assert asked <= set(IDS)


def test_each_script_is_one_idea_of_at_most_250_lines() -> None:
    assert {name: len(text.splitlines()) for name, text in SCRIPTS.items() if len(text.splitlines()) > 250} == {}


def test_every_colour_that_is_used_has_a_value() -> None:
    used = {name for text in STYLES.values() for name in re.findall(r"var\((--[\w-]+)", text)}
    given = {name for text in STYLES.values() for name in re.findall(r"^\s*(--[\w-]+):", text, re.MULTILINE)}

    assert used <= given


@pytest.mark.parametrize(
    ("if_none_match", "status"),
    [("", 200), ('"other"', 200), ('"abc"', 304), ('W/"abc"', 304), ('"other", "abc"', 304)],
)
def test_a_browser_that_has_the_file_gets_none(if_none_match: str, status: int) -> None:
    made = answer(FILE, if_none_match)

    assert (made.status_code, made.body) == (status, b"text" if status == 200 else b"")
    assert made.headers["etag"] == FILE.etag


def test_other_bytes_have_another_tag(tmp_path: Path) -> None:
    tags = []
    for text in ("one", "two"):
        (tmp_path / "a.css").write_text(text)
        tags.append(page_files(tmp_path)["a.css"].etag)

    assert tags[0] != tags[1]


def test_files_of_other_kinds_are_not_served(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("text")

    assert page_files(tmp_path) == {}
    assert ".txt" not in MEDIA_TYPES
