"""Progress: a function that takes one line of text, and how long steps are told about while they run."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Progress = Callable[[str], None]

TELL_EVERY_S = 15.0


def console(text: str) -> None:
    """Print to standard error at once: standard output stays for results."""
    print(text, file=sys.stderr, flush=True)


def run_told(
    what: str, argv: Sequence[str], *, progress: Progress, env: Mapping[str, str], log: Path, cwd: Path | None = None
) -> int:
    """Run a long command with its output in `log`, saying the seconds now and then; its exit code."""
    began = time.monotonic()
    progress(f"{what} ...")
    with log.open("ab") as output, subprocess.Popen(argv, env=env, cwd=cwd, stdout=output, stderr=output) as process:
        try:
            while True:
                try:
                    code = process.wait(TELL_EVERY_S)
                    break
                except subprocess.TimeoutExpired:
                    progress(f"{what} ... {time.monotonic() - began:.0f} s")
        except BaseException:
            process.kill()
            raise
    progress(f"{what}: {'done' if code == 0 else f'failed ({code})'} in {time.monotonic() - began:.0f} s")
    return code


def tail(file: Path, lines: int = 8) -> str:
    """The last lines of a log, or a word that there are none."""
    if not file.exists():
        return "(no log)"
    text = file.read_text(errors="replace").strip().splitlines()
    return "\n".join(text[-lines:]) or "(empty log)"
