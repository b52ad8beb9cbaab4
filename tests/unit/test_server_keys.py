"""Facts about API keys from a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from imageedit_server.api.keys import ApiKeys
from imageedit_server.errors import SettingsInvalid


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "keys"
    path.write_text("# the shop\nkey-one\n\n  key-two  # since May\nschlüssel\n", encoding="utf-8")
    return path


def sent(key: str) -> str:
    """A header as the server sees it: its bytes as characters."""
    return f"Bearer {key}".encode().decode("latin-1")


@pytest.mark.parametrize("header", [sent("key-one"), sent("key-two"), sent("schlüssel"), "bearer key-one"])
def test_each_key_of_the_file_opens(file: Path, header: str) -> None:
    assert ApiKeys(file).open(header)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer key",
        "Bearer key-onex",
        "Basic key-one",
        "key-one",
        "Bearer #",
        "Bearer # the shop",
    ],
)
def test_nothing_else_opens(file: Path, header: str) -> None:
    assert not ApiKeys(file).open(header)


def test_a_changed_file_is_read_again(file: Path) -> None:
    keys = ApiKeys(file)
    replacement = file.with_name("new")
    replacement.write_text("key-three")
    os.replace(replacement, file)

    assert keys.open("Bearer key-three")
    assert not keys.open("Bearer key-one")


@pytest.mark.parametrize("away", ["", "# none\n", None])
def test_a_file_that_is_empty_or_away_for_a_moment_changes_nothing(file: Path, away: str | None) -> None:
    keys = ApiKeys(file)
    if away is None:
        file.unlink()
    else:
        file.write_text(away)

    assert keys.open("Bearer key-one")
    assert not keys.open("Bearer ")


@pytest.mark.parametrize("broken", ["", None])
def test_a_broken_file_makes_one_line_of_log_and_not_one_for_each_request(
    file: Path, broken: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    keys = ApiKeys(file)
    if broken is None:
        file.unlink()
    else:
        file.write_text(broken)
    for _ in range(3):
        assert keys.open("Bearer key-one")
    assert [record.message for record in caplog.records] == ["api_keys_unreadable"]
    file.write_text("key-four")
    assert keys.open("Bearer key-four")


def test_the_mark_that_some_editors_write_first_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("key-one\n", encoding="utf-8-sig")
    assert ApiKeys(path).open("Bearer key-one")


@pytest.mark.parametrize(("content", "message"), [("\n# none\n", "it holds no key"), (None, "cannot be read: No such")])
def test_a_start_without_keys_is_refused(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "keys"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SettingsInvalid, match=message):
        ApiKeys(path)


def test_keys_are_not_shown(file: Path) -> None:
    assert "key-one" not in repr(vars(ApiKeys(file)))
