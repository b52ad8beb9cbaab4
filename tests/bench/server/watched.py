"""Our server, and beside it on the same event loop a clock that notes how late it is woken.

`python -m bench.server.watched FILE <the server's arguments>`; the file gets `[[monotonic seconds, lag in seconds]]`
when the server ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from imageedit_server import logs
from imageedit_server.lifecycle import Ending, serve
from imageedit_server.settings import settings_from

EVERY_S = 0.01


async def _noted(samples: list[tuple[float, float]]) -> None:
    while True:
        due_s = time.monotonic() + EVERY_S
        await asyncio.sleep(EVERY_S)
        now_s = time.monotonic()
        samples.append((round(now_s, 3), max(0.0, now_s - due_s)))


async def _serve(file: Path, arguments: list[str]) -> Ending:
    samples: list[tuple[float, float]] = []
    clock = asyncio.create_task(_noted(samples))
    try:
        return await serve(settings_from(arguments, os.environ))
    finally:
        clock.cancel()
        await asyncio.to_thread(file.write_text, json.dumps(samples))


def main() -> int:
    logs.set_up(level="warning", pod="")
    return asyncio.run(_serve(Path(sys.argv[1]), sys.argv[2:])).code


if __name__ == "__main__":
    sys.exit(main())
