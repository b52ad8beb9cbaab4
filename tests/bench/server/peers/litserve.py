"""LitServe: decode, predict and encode of one LitAPI, in one worker process, a batch of one."""

from __future__ import annotations

import sys
from typing import Any

import litserve

from bench.server import engine
from imageedit_server.api.geometry import Plan
from imageedit_server.worker.protocol import EditJob, EditResult


class Edits(litserve.LitAPI):  # type: ignore[misc]
    """`setup` runs once in the worker, the others in turn for each request."""

    def __init__(self, edit_s: float) -> None:
        super().__init__(max_batch_size=1, api_path="/v1/edit")
        self._edit_s = edit_s

    def setup(self, device: str) -> None:
        self._engine = engine.fixed_engine(self._edit_s)

    # Without types: LitServe reads them, and gives the parsed JSON only where it finds none.
    def decode_request(self, request):  # type: ignore[no-untyped-def]
        return engine.decoded(request)

    def predict(self, x: tuple[EditJob, Plan]) -> tuple[EditResult, Plan]:
        job, plan = x
        return engine.edited(self._engine, job), plan

    def encode_response(self, output: tuple[EditResult, Plan]) -> dict[str, Any]:
        return engine.encoded(*output)


def main() -> None:
    port, edit_s = int(sys.argv[1]), float(sys.argv[2])
    server = litserve.LitServer(Edits(edit_s), accelerator="cpu", workers_per_device=1, timeout=False)
    server.run(host="127.0.0.1", port=port, generate_client_file=False, log_level="warning")


if __name__ == "__main__":
    main()
