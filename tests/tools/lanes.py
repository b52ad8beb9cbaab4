"""Runs make targets in lanes: the lanes side by side, the targets of a lane one after the other.

    python3 tests/tools/lanes.py a,b c        runs a then b, beside c

Every line comes out whole and with its target's name. Ends with 1 when a target failed; the other
targets of the same lane still run, so that one run shows everything that is wrong. What matters of a
failure is said again at the very end, for a log that is cut shows only that.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

LAST_LINES = 60
VERDICT = re.compile(r"(FAILED|ERROR) \S+\.py\b")
"""A line of pytest's short summary: the test's name and the reason in a few words."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A target that failed."""

    target: str
    tail: tuple[str, ...]
    """Its last lines."""
    verdicts: tuple[str, ...]
    """What pytest says of each test that failed."""


_ONE_AT_A_TIME = threading.Lock()


def say(line: str) -> None:
    """A whole line: `print` writes its end apart, and another lane can come between."""
    with _ONE_AT_A_TIME:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def run(target: str) -> Failure | None:
    """One target, its output line by line; None when it succeeded.

    Its pytest has a folder of its own for temporary files. In the common one each session cleans up what others left,
    and one that cannot (a run that was broken off leaves mounts) ends with an error after all its tests have passed.
    """
    started = time.monotonic()
    tail, verdicts = deque[str](maxlen=LAST_LINES), list[str]()
    with (
        tempfile.TemporaryDirectory(prefix="lane-", ignore_cleanup_errors=True) as folder,
        subprocess.Popen(
            ["make", "--no-print-directory", target],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=os.environ | {"PYTEST_DEBUG_TEMPROOT": folder},
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            text = line.rstrip()
            say(f"{target}: {text}")
            tail.append(text)
            if VERDICT.match(text):
                verdicts.append(text)
    say(f"{target}: ended with {process.returncode} after {time.monotonic() - started:.0f} s")
    return Failure(target=target, tail=tuple(tail), verdicts=tuple(verdicts)) if process.returncode else None


def closing_words(failures: Sequence[Failure]) -> list[str]:
    """The end of the output: the last lines of what failed, then every failed test, then the targets."""
    lines = []
    for failure in failures:
        lines.append(f"--- the last lines of {failure.target}")
        lines += [f"{failure.target}: {line}" for line in failure.tail]
    if any(failure.verdicts for failure in failures):
        lines.append("--- failed tests")
        lines += [f"{failure.target}: {verdict}" for failure in failures for verdict in failure.verdicts]
    if failures:
        lines.append(f"failed: {', '.join(failure.target for failure in failures)}")
    return lines


def main(arguments: Sequence[str]) -> int:
    failures: list[Failure] = []

    def run_lane(targets: Sequence[str]) -> None:
        failures.extend(failure for target in targets if (failure := run(target)) is not None)

    lanes = [threading.Thread(target=run_lane, args=(lane.split(","),)) for lane in arguments]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    for line in closing_words(failures):
        say(line)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
