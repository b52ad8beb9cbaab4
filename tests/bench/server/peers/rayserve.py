"""Ray Serve: one replica that takes one request at a time (`max_ongoing_requests=1`), behind one HTTP proxy."""

from __future__ import annotations

import signal
import sys
import threading
from typing import Any

import ray
from ray import serve
from starlette.requests import Request

from bench.server import engine


@serve.deployment(num_replicas=1, max_ongoing_requests=1)
class Edits:
    """Called with each request."""

    def __init__(self, edit_s: float) -> None:
        self._engine = engine.fixed_engine(edit_s)

    async def __call__(self, request: Request) -> dict[str, Any]:
        job, plan = engine.decoded(await request.json())
        return engine.encoded(engine.edited(self._engine, job), plan)


def main() -> None:
    port, edit_s = int(sys.argv[1]), float(sys.argv[2])
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    ray.init(address="local", include_dashboard=False, num_cpus=2, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    application = Edits.bind(edit_s)  # type: ignore[attr-defined]  # the decorator makes another class of it
    serve.run(application, route_prefix="/v1/edit")
    ended.wait()
    serve.shutdown()
    ray.shutdown()


if __name__ == "__main__":
    main()
