"""`make bench-server`: take every figure, print it, write build/bench/server.json, end with 1 when a target is missed.

`--quick` takes them all in a few minutes, for a look; only what runs in full counts. `--only busy,added` takes a part.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.figures import Figure, machine, write
from bench.server import added, busy, overload, soak
from bench.server.programs import DoesNotStart
from tools import bootstrap

OUTPUT = Path(__file__).resolve().parents[3] / "build" / "bench" / "server.json"


def parts(quick: bool) -> dict[str, Callable[[], Iterator[Figure]]]:
    """What there is to measure, by name, in the order in which it runs; about a quarter of an hour in full."""
    if quick:
        return {
            "busy": lambda: busy.figures(slow_s=45, fast_s=6, repeats=1),
            "added": lambda: added.figures(rounds=1, seconds=5, tell=tell),
            "overload": lambda: overload.figures(before_s=8, during_s=40, after_s=30),
            "soak": lambda: soak.figures(requests=1500),
        }
    return {
        "busy": lambda: busy.figures(slow_s=120, fast_s=15, repeats=3),
        "added": lambda: added.figures(rounds=3, seconds=8, tell=tell),
        "overload": lambda: overload.figures(before_s=15, during_s=90, after_s=70),
        "soak": lambda: soak.figures(requests=10_000),
    }


def tell(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.server", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="parts, such as busy,added")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    asked = parser.parse_args()
    chosen = parts(asked.quick)
    names = asked.only.split(",") if asked.only else list(chosen)
    if "added" in names:
        bootstrap.ensure("peers")
    # As Ctrl-C does: the servers that run are stopped on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    began_s, facts, taken = time.monotonic(), machine("pillow", "uvicorn"), list[Figure]()
    tell(f"machine: {facts}")
    try:
        for name in names:
            tell(f"[{time.monotonic() - began_s:4.0f} s] {name} ...")
            for figure in chosen[name]():
                taken.append(figure)
                print(figure, flush=True)
    except DoesNotStart as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        write(asked.output, facts, taken, quick=asked.quick)
    missed = [figure.name for figure in taken if not figure.passed]
    tell(f"{len(taken)} figures in {time.monotonic() - began_s:.0f} s, {len(missed)} missed; see {asked.output}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
