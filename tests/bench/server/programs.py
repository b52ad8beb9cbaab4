"""Starts one of the servers on a free port, waits until it edits, and stops it and all its processes by their ids."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from imageedit_server.loadtest.asking import CannotBegin, asking, check, sample_picture
from imageedit_server.loadtest.http import Address
from server.running import free_ports
from tools import bootstrap

ROOT = Path(__file__).resolve().parents[3]
PEERS = ("litserve", "bentoml", "rayserve")
START_S = 120.0
STOP_S = 20.0
NO_USAGE_DATA = {
    "BENTOML_DO_NOT_TRACK": "True",
    "RAY_USAGE_STATS_ENABLED": "0",
    "DO_NOT_TRACK": "1",
    "RAY_DEDUP_LOGS": "0",
}


class DoesNotStart(Exception):
    """A server that does not edit in time; the message has the end of its log."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A server that runs, and what it leaves in its folder."""

    process: subprocess.Popen[bytes]
    address: Address
    probe_port: int
    folder: Path

    @property
    def lag_file(self) -> Path:
        """Where our server writes its lags when it ends."""
        return self.folder / "lag.json"

    def cpu_s(self) -> float:
        """Processor seconds that all its processes have used."""
        top = psutil.Process(self.process.pid)
        used = (one.cpu_times() for one in (top, *top.children(recursive=True)))
        return sum(float(times.user + times.system) for times in used)


@contextlib.contextmanager
def ours(edit_s: float, *arguments: str, size: str = "768x768") -> Iterator[Program]:
    """Our server, watched."""
    port, probe_port = free_ports(2)
    with _folder() as folder:
        command = [sys.executable, "-m", "bench.server.watched", str(folder / "lag.json"), "--host", "127.0.0.1"]
        command += ["--port", str(port), "--probe-port", str(probe_port), "--model-dir", "demo", "--sizes", size]
        command += ["--steps", "16", "--stub-edit-seconds", str(edit_s), "--drain-propagation", "0", *arguments]
        with _running(command, folder, port, probe_port) as program:
            yield program


@contextlib.contextmanager
def peer(name: str, edit_s: float) -> Iterator[Program]:
    """One of the peers."""
    python = bootstrap.venv_dir("peers") / "bin" / "python"
    with _module(str(python), f"bench.server.peers.{name}", edit_s) as program:
        yield program


@contextlib.contextmanager
def plain_queue(edit_s: float) -> Iterator[Program]:
    """The plain queue of fifty."""
    with _module(sys.executable, "bench.server.plain_queue", edit_s) as program:
        yield program


@contextlib.contextmanager
def _module(python: str, module: str, edit_s: float) -> Iterator[Program]:
    (port,) = free_ports(1)
    with _folder() as folder, _running([python, "-m", module, str(port), str(edit_s)], folder, port, 0) as program:
        yield program


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="imageedit-bench-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextlib.contextmanager
def _running(command: Sequence[str], folder: Path, port: int, probe_port: int) -> Iterator[Program]:
    temporary = folder / "tmp"
    temporary.mkdir()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("IMAGEEDIT_")}
    environment = {
        **inherited,
        **NO_USAGE_DATA,
        "PYTHONPATH": os.pathsep.join((str(ROOT / "server" / "src"), str(ROOT / "tests"))),
        "TMPDIR": str(temporary),
        "HOME": str(temporary),
        "BENTOML_HOME": str(temporary),
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=temporary)
    address = Address(host="127.0.0.1", port=port, tls=False, prefix="")
    program = Program(process=process, address=address, probe_port=probe_port, folder=folder)
    try:
        _wait_for_an_edit(program)
        yield program
    finally:
        _stop(process)


def _wait_for_an_edit(program: Program) -> None:
    asked = asking(
        program.address, picture=sample_picture(), prompt="-", size=None, steps=None, api_key=None, timeout_s=60
    )
    deadline_s = time.monotonic() + START_S
    while True:
        try:
            asyncio.run(check(asked))
            return
        except CannotBegin as error:
            if program.process.poll() is not None or time.monotonic() > deadline_s:
                tail = (program.folder / "log").read_text(errors="replace")[-3000:]
                raise DoesNotStart(f"{error}\n{tail}") from error
        time.sleep(0.3)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end, then kill what is left of it and of the processes that it started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        started = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S)
        if process.poll() is None:
            process.kill()
        for child in started:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        psutil.wait_procs(started, timeout=STOP_S)
    process.wait()
