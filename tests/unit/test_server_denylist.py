"""Facts about what a denylist refuses, row by row."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_server.errors import SettingsInvalid
from imageedit_server.safety.denylist import MAX_LINES, MAX_TEXT_CHARACTERS, Denylist, parsed
from imageedit_server.safety.denylist_file import DenylistFile


@pytest.mark.parametrize(
    ("line", "prompt", "refused"),
    [
        # Whole words, whatever the case, the form and the white space.
        ("nude", "a nude figure", True),
        ("nude", "NUDE", True),
        ("nude", "nude!", True),
        ("nude", "(nude)", True),
        ("nude", "nude_art", True),
        ("nude", "denuded hills", False),
        ("nude", "nudes", False),
        ("nude", "nude2", False),
        ("Straße", "an der STRASSE", True),
        ("ﬁre", "fire", True),
        ("nude", "\uff4e\uff55\uff44\uff45", True),
        ("nude", "nu\u00adde", True),
        ("nude", "n\u200bude", True),
        ("nude", "n u d e", False),
        ("two words", "these  two\n words here", True),
        ("two words", "two other words", False),
        # Accents are letters of their own, in whatever way they are coded.
        ("résumé", "re\u0301sume\u0301", True),
        ("resume", "résumé", False),
        # Signs have no edges.
        ("c++", "use c++17", True),
        ("\\#tag", "a #tag", True),
        ("-18", "under-18 only", True),
        # Scripts without spaces: anywhere.
        ("裸体", "一个裸体的人", True),
        ("裸体", "裸的身体", False),
        ("ヌード", "美しいヌード写真", True),
        ("누드", "누드를 그려", True),
        ("เปลือย", "ภาพเปลือยกาย", True),
        # Where both meet, the word ends.
        ("nude", "裸nude体", True),
        ("vip会员", "成为vip会员吧", True),
        ("vip会员", "xvip会员", False),
        # Cyrillic, Greek and Arabic have spaces.
        ("голый", "ГОЛЫЙ человек", True),
        ("гол", "голубой", False),
        ("عار", "رجل عار هنا", True),
        # Expressions.
        (r"re:\bnud(?:e|ity)\b", "some nudity", True),
        (r"re:\bnud(?:e|ity)\b", "denuded", False),
        (r"re:kill.{0,20}person", "Kill that one person", True),
        (r"re:kill.{0,20}person", "kill the weeds behind the house of a person", False),
    ],
)
def test_what_a_line_refuses(line: str, prompt: str, refused: bool) -> None:
    assert parsed(line).refuses(prompt) is refused


def test_comments_and_blank_lines_refuse_nothing() -> None:
    found = parsed("# nude\n\n  blood  \n")

    assert found.refuses("blood")
    assert not found.refuses("nude")
    assert found.count == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it holds no line"),
        ("# only a comment", "it holds no line"),
        ("ok\n\u200b", "line 2: nothing of it is visible"),
        ("re:(a+)+b", "line 1: * and + are not taken"),
        ("re:a*", "line 1: * and + are not taken"),
        ("re:+", "line 1: * and + are not taken"),
        ("re:a{2,}", "two repetitions in a row"),
        ("re:a{1,3}{1,3}", "two repetitions in a row"),
        ("re:a{1,3}*", "two repetitions in a row"),
        ("re:(a{1,50}){1,50}", "more than 2000 ways"),
        ("re:(a|b){0,30}", "more than 2000 ways"),
        ("re:a{0,100}b{0,100}", "more than 2000 ways"),
        ("re:a{9,3}", "the lower one first"),
        ("re:a{0,5000}", "limits up to 1000"),
        ("re:(?=a)b", "of groups only"),
        ("re:(?P<x>a)", "of groups only"),
        ("re:(a", "a ( is not closed"),
        ("re:a)", "a ) closes nothing"),
        ("re:?a", "nothing stands before"),
        ("re:(a)\\1", "of escapes only"),
        ("re:[a", "sets in [ ]"),
        ("re:[b-a]", "no regular expression"),
        ("re:[a--b]", "within [ ]"),
        ("re:[[a]", "within [ ]"),
        ("x" * 501, "more than 500 characters"),
        ("x\n" * (MAX_LINES + 1), f"at most {MAX_LINES}"),
        ("\n".join(f"re:{letter}.{{0,998}}y" for letter in "abcdefghijklmnopqrstu"), "all expressions together"),
    ],
)
def test_a_wrong_list_is_refused_with_what_to_do(text: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        parsed(text)

    assert message in str(raised.value)


@pytest.mark.parametrize("secret", ["re:(canary+)+", "re:(canary"])
def test_an_error_does_not_quote_the_line(secret: str) -> None:
    with pytest.raises(ValueError) as raised:
        parsed(secret)

    assert "canary" not in str(raised.value)


@given(st.text(alphabet="ab|(){}?.\\[]^$*+,:12bdw-", max_size=20))
def test_any_expression_is_taken_or_refused_and_ends(text: str) -> None:
    try:
        found = parsed("re:" + text)
    except ValueError:
        return
    found.refuses("ab" * 500 + "c")


@given(st.text(min_size=1, max_size=40).filter(lambda text: bool(text.strip()) and text.isalnum()))
def test_a_word_refuses_itself(word: str) -> None:
    assert parsed(word).refuses(word)


def test_the_worst_expression_that_is_taken_ends() -> None:
    """It would take for ever if its limits were not counted; the test's own time limit would say so."""
    assert not parsed("re:(?:a|a|a|a|a){3}b{0,1}(?:aa?){0,1}c").refuses("a" * 4000)


def test_a_prompt_that_unfolds_beyond_all_measure_is_refused() -> None:
    # One character of Arabic that stands for eighteen.
    assert parsed("nude").refuses("\ufdfa" * (MAX_TEXT_CHARACTERS // 18 + 1))


def test_lines_are_not_shown() -> None:
    assert "canary" not in repr(parsed("canary\nre:canary"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "list"
    path.write_text("nude\n", encoding="utf-8")
    return path


def replace(file: Path, text: str | bytes) -> None:
    new = file.with_name("new")
    new.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.replace(new, file)


def test_a_changed_file_is_read_again(file: Path) -> None:
    found = DenylistFile(file)
    replace(file, "blood\n")

    assert found.refuses("blood")
    assert not found.refuses("nude")


def test_the_mark_that_some_editors_write_first_hides_no_line(tmp_path: Path) -> None:
    path = tmp_path / "denylist"
    path.write_text("re:weap.n\n", encoding="utf-8-sig")
    assert DenylistFile(path).refuses("a weapon")


@pytest.mark.parametrize("broken", ["", "# none\n", "re:(", b"\xff\xfe", None])
def test_a_file_that_breaks_leaves_the_last_good_list_in_force_and_says_so(
    file: Path, broken: str | bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    said: list[bool] = []
    found = DenylistFile(file, on_stale=said.append)
    if broken is None:
        file.unlink()
    else:
        replace(file, broken)

    assert [found.refuses("nude") for _ in range(3)] == [True] * 3
    assert found.stale
    assert said == [True]
    assert [record.getMessage() for record in caplog.records].count("denylist_broken") == 1

    replace(file, "blood\n")
    assert found.refuses("blood")
    assert said == [True, False]


@pytest.mark.parametrize(
    ("content", "message"),
    [("\n# none\n", "it holds no line"), ("re:(", "not closed"), (None, "cannot be read: No such")],
)
def test_a_start_with_a_broken_list_is_refused(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "list"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SettingsInvalid, match=message):
        DenylistFile(path)


def test_a_list_is_a_plain_value() -> None:
    assert parsed("a\na\nb") == Denylist(literals=("a", "b"), expressions=())
