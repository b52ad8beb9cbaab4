"""Runs make targets in lanes: the lanes side by side, the targets of a lane one after the other.

    python3 tests/tools/lanes.py a,b c        runs a then b, beside c

Every line comes out whole and with its target's name. Ends with 1 when a target failed; the other
targets of the same lane still run, so that one run shows everything that is wrong.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time


def run(target: str, failed: list[str]) -> None:
    """One target, its output line by line."""
    started = time.monotonic()
    with subprocess.Popen(
        ["make", "--no-print-directory", target], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(f"{target}: {line.rstrip()}", flush=True)
    print(f"{target}: ended with {process.returncode} after {time.monotonic() - started:.0f} s", flush=True)
    if process.returncode:
        failed.append(target)


def run_lane(targets: list[str], failed: list[str]) -> None:
    """The targets of one lane."""
    for target in targets:
        run(target, failed)


def main() -> int:
    failed: list[str] = []
    lanes = [threading.Thread(target=run_lane, args=(lane.split(","), failed)) for lane in sys.argv[1:]]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    if failed:
        print(f"failed: {', '.join(failed)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
