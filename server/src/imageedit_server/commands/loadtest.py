"""`imageedit-server loadtest URL`: sweep the number of clients against a running service and find its plateau."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from imageedit_server.loadtest import report
from imageedit_server.loadtest.asking import Asking, CannotBegin, asking, check, sample_picture
from imageedit_server.loadtest.chart import shapes
from imageedit_server.loadtest.drawing import save
from imageedit_server.loadtest.http import Address
from imageedit_server.loadtest.statistics import Level
from imageedit_server.loadtest.sweep import Bounds, sweep

MAX_CLIENTS = 512
MAX_SECONDS = 3600.0
NOTHING_ANSWERED = 1
CANNOT_BEGIN = 2


def run(arguments: Sequence[str]) -> int:
    """Print what was measured; return 1 when no edit was answered, 2 when it could not begin, else 0."""
    asked = parser().parse_args(list(arguments))
    try:
        levels = asyncio.run(_measured(asked, _asking(asked)))
        print(_shown(asked, levels))
        if asked.plot is not None:
            save(asked.plot, shapes(levels, title=f"{asked.address}, {asked.seconds:g} s a level"))
    except CannotBegin as error:
        print(f"error: {error}", file=sys.stderr)
        return CANNOT_BEGIN
    except OSError as error:
        print(f"error: {error.filename} cannot be read or written: {error.strerror}", file=sys.stderr)
        return CANNOT_BEGIN
    return 0 if any(level.answered for level in levels) else NOTHING_ANSWERED


async def _measured(asked: argparse.Namespace, what: Asking) -> list[Level]:
    seconds = await check(what)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end_early() -> None:
        # What was measured is still shown; the second Ctrl-C ends the program.
        loop.remove_signal_handler(signal.SIGINT)
        stop.set()

    loop.add_signal_handler(signal.SIGINT, end_early)
    _progress(f"The first edit took {seconds:.3g} s.\n{report.COLUMNS}")
    return await sweep(
        what,
        asked.concurrency,
        Bounds(seconds=asked.seconds, max_requests=asked.max_requests),
        stop=stop,
        on_level=lambda level: _progress(report.row(level)),
    )


def _shown(asked: argparse.Namespace, levels: Sequence[Level]) -> str:
    return (
        json.dumps(report.as_json(str(asked.address), levels), indent=1)
        if asked.output == "json"
        else report.as_text(levels)
    )


def _progress(text: str) -> None:
    """To stderr, so that stdout holds the result alone."""
    print(text, file=sys.stderr, flush=True)


def _asking(asked: argparse.Namespace) -> Asking:
    return asking(
        asked.address,
        picture=sample_picture() if asked.image is None else asked.image.read_bytes(),
        prompt=asked.prompt,
        size=asked.size,
        steps=asked.steps,
        api_key=None if asked.api_key_file is None else _first_key(asked.api_key_file),
        timeout_s=asked.timeout,
    )


def _first_key(path: Path) -> str:
    lines = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8-sig").splitlines())
    key = next((line for line in lines if line), "")
    if not key:
        raise CannotBegin(f"{path} holds no key; write one into its first line.")
    return key


def parser() -> argparse.ArgumentParser:
    """The options; `docs/reference/loadtest.md` describes each."""
    offered = argparse.ArgumentParser(
        prog="imageedit-server loadtest",
        description="Sends edits to a running service from more and more clients, each of which asks again as soon as"
        " it has its answer, and tells throughput, latency, refusals and the plateau. Ctrl-C shows what was measured.",
    )
    add = offered.add_argument
    add("address", type=_address, metavar="URL", help="address of the API, such as http://127.0.0.1:8000")
    add("--concurrency", type=_clients, default=[1, 2, 4, 8], help="clients of each level (default 1,2,4,8)")
    add("--seconds", type=_seconds, default=30.0, help="how long each level sends requests (default 30)")
    add("--max-requests", type=_count, default=10_000, help="most requests of a level (default 10000)")
    add("--image", type=Path, metavar="FILE", help="the picture to send (default: a made one of 768x768)")
    add("--prompt", default="make the background blue", help="what to change in it")
    add("--size", help="size of the result, as in the API (default: the API's)")
    add("--steps", type=_count, help="denoising steps (default: the service's)")
    add("--api-key-file", type=Path, metavar="FILE", help="file whose first line is the API key")
    add("--timeout", type=_seconds, default=120.0, help="seconds after which a client gives up (default 120)")
    add("-o", "--output", choices=("text", "json"), default="text", help="what to print (default text)")
    add("--plot", type=_plot_file, metavar="FILE", help="draw it, too; a name in .svg or .png")
    return offered


def _address(text: str) -> Address:
    try:
        return Address.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _clients(text: str) -> list[int]:
    numbers = [_count(part) for part in text.split(",")]
    if max(numbers) > MAX_CLIENTS or numbers != sorted(set(numbers)):
        raise argparse.ArgumentTypeError(f"{text!r} is no rising list of at most {MAX_CLIENTS} clients, such as 1,2,4")
    return numbers


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds up to {MAX_SECONDS:g}")
    return seconds


def _plot_file(text: str) -> Path:
    path = Path(text)
    if path.suffix not in (".svg", ".png"):
        raise argparse.ArgumentTypeError(f"{text!r} ends neither in .svg nor in .png")
    return path
