"""The runner of make targets in lanes: a log that is cut still ends with what failed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tools.lanes
from tools.lanes import LAST_LINES, Failure, closing_words

MAKEFILE = """\
good:
\t@echo fine
bad:
\t@for n in $$(seq 100); do echo line $$n; done
\t@echo "FAILED tests/a/test_b.py::test_c[x y] - AssertionError: 1 is not 2"
\t@false
after:
\t@echo after it
temporary:
\t@test -d $$PYTEST_DEBUG_TEMPROOT && echo in $$PYTEST_DEBUG_TEMPROOT
"""


@pytest.fixture
def lanes(tmp_path: Path) -> list[str]:
    """The program, in a folder with three targets."""
    (tmp_path / "Makefile").write_text(MAKEFILE)
    return [sys.executable, str(Path(tools.lanes.__file__))]


def test_the_last_words_are_the_tests_that_failed_and_their_targets(lanes: list[str], tmp_path: Path) -> None:
    done = subprocess.run([*lanes, "good", "bad,after"], cwd=tmp_path, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert lines[-3:] == [
        "--- failed tests",
        "bad: FAILED tests/a/test_b.py::test_c[x y] - AssertionError: 1 is not 2",
        "failed: bad",
    ]
    assert lines.count("bad: line 100") == 2
    assert lines.count("bad: line 1") == 1  # the end shows the end only
    assert {"good: fine", "after: after it"} <= set(lines)


def test_a_run_without_a_failure_says_nothing_more(lanes: list[str], tmp_path: Path) -> None:
    done = subprocess.run([*lanes, "good", "after"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "failed" not in done.stdout


def test_each_target_has_a_folder_for_temporary_files_that_is_gone_afterwards(lanes: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [*lanes, "temporary,temporary", "temporary"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    folders = [line.partition(": in ")[2] for line in done.stdout.splitlines() if ": in " in line]
    assert len(set(folders)) == 3
    assert not any(Path(folder).exists() for folder in folders)


def test_verdicts_come_after_the_tails_of_all_targets() -> None:
    one = Failure(target="one", tail=("x",), verdicts=("FAILED t.py::a - b",))
    two = Failure(target="two", tail=("y",) * LAST_LINES, verdicts=())
    words = closing_words([one, two])
    assert words[:2] == ["--- the last lines of one", "one: x"]
    assert words[-3:] == ["--- failed tests", "one: FAILED t.py::a - b", "failed: one, two"]
