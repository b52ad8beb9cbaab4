"""BentoML: one service with one worker; a synchronous method, of which one runs at a time (`threads=1`)."""

from __future__ import annotations

import os
import sys
from typing import Any

import bentoml

from bench.server import engine

EDIT_S = "BENCH_EDIT_S"


@bentoml.service(workers=1, threads=1, traffic={"timeout": 3600}, logging={"access": {"enabled": False}})
class Edits:
    """The methods are routes; arguments are the fields of the JSON."""

    def __init__(self) -> None:
        self._engine = engine.fixed_engine(float(os.environ[EDIT_S]))

    @bentoml.api(route="/v1/edit")  # type: ignore[untyped-decorator]
    def edit(self, image: str, prompt: str, seed: int = 0) -> dict[str, Any]:
        job, plan = engine.decoded({"image": image, "prompt": prompt, "seed": seed})
        return engine.encoded(engine.edited(self._engine, job), plan)


def main() -> None:
    port, edit_s = sys.argv[1:]
    # In this place: the program that the tests started is the server itself, and can be stopped by its id.
    command = [sys.executable, "-m", "bentoml", "serve", "bench.server.peers.bentoml:Edits"]
    os.execve(sys.executable, [*command, "--host", "127.0.0.1", "--port", port], {**os.environ, EDIT_S: edit_s})


if __name__ == "__main__":
    main()
