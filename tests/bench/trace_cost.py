"""What traces cost a request: `python trace_cost.py [edits]`, with `server/src` and `tests` on the path.

Two servers with an engine that takes no time, one of them with traces to a receiver on loopback. Requests go to one and
the other in turn, so that both see the same machine; what counts is the ratio of the medians.
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import httpx

from server.otlp_receiver import receiver
from server.running import RunningServer, png_base64, stub_server

EDITS = 200
UNCOUNTED = 20


def request_ms(client: httpx.Client, server: RunningServer) -> float:
    """Milliseconds of one small edit, as its client sees them."""
    body = {"image": png_base64(), "prompt": "make the background blue"}
    started_s = time.perf_counter()
    client.post(server.api + "/v1/edit", json=body).raise_for_status()
    return 1000 * (time.perf_counter() - started_s)


def main(edits: int) -> dict[str, float]:
    """Medians with and without, their ratio, and the spans that arrived."""
    with (
        receiver() as collector,
        stub_server(edit_s=0.0) as plain,
        stub_server(edit_s=0.0, environ=collector.environ()) as traced,
        httpx.Client(timeout=60) as client,
    ):
        taken: dict[str, list[float]] = {"without": [], "with": []}
        for number in range(UNCOUNTED + edits):
            for name, server in (("without", plain), ("with", traced)):
                ms = request_ms(client, server)
                if number >= UNCOUNTED:
                    taken[name].append(ms)
        medians = {name: statistics.median(times) for name, times in taken.items()}
        return {
            "without_ms": round(medians["without"], 3),
            "with_ms": round(medians["with"], 3),
            "ratio": round(medians["with"] / medians["without"], 3),
            "spans": len(collector.spans),
        }


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]) if len(sys.argv) > 1 else EDITS)))
