"""Starts the real server as a process on free ports, and stops it by its process id."""

from __future__ import annotations

import base64
import contextlib
import io
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from PIL import Image

import imageedit_server

# Everything here is plain HTTP; loading the machine's certificates for each call takes longer than the call.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
SOURCE = Path(imageedit_server.__file__).parents[1]


@dataclass(frozen=True, kw_only=True)
class RunningServer:
    """A server process and where to reach it."""

    process: subprocess.Popen[bytes]
    port: int
    probe_port: int
    folder: Path

    @property
    def api(self) -> str:
        """Base address of the API."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def probes(self) -> str:
        """Base address of probes and metrics."""
        return f"http://127.0.0.1:{self.probe_port}"

    def get(self, path: str) -> httpx.Response:
        """GET on the probe port."""
        return httpx.get(self.probes + path, timeout=10, verify=NO_TLS)

    def health(self) -> dict[str, Any]:
        """Body of /healthz."""
        body: dict[str, Any] = self.get("/healthz").json()
        return body

    def edit(self, **fields: object) -> httpx.Response:
        """POST /v1/edit with a small picture and a prompt, unless others are given."""
        body = {"image": png_base64(), "prompt": "make the background blue"} | fields
        return httpx.post(self.api + "/v1/edit", json=body, timeout=50, verify=NO_TLS)

    def metric(self, name: str, **labels: str) -> float:
        """Value of one series; labels that are not named may be anything."""
        for line in self.get("/metrics").text.splitlines():
            series, _, value = line.rpartition(" ")
            if series.split("{")[0] == name and all(f'{key}="{text}"' in series for key, text in labels.items()):
                return float(value)
        raise AssertionError(f"no series {name} {labels}")

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.process.send_signal(signal.SIGTERM)

    def exit_code(self, timeout_s: float = 20) -> int:
        """Wait for the end of the process."""
        return self.process.wait(timeout_s)

    def worker_pid(self) -> int:
        """Process id of the worker that lives now."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        assert len(children) == 1, children
        return int(children[0])

    def log(self) -> str:
        """What the process and its worker have logged."""
        return (self.folder / "log").read_text()

    def termination_message(self) -> str:
        """What Kubernetes would show as the reason of the end."""
        path = self.folder / "termination-log"
        return path.read_text() if path.exists() else ""


@contextlib.contextmanager
def running_server(
    *arguments: str,
    environ: Mapping[str, str] | None = None,
    model_dir: str = "demo",
    sizes: str = "128x128",
    ready: bool = True,
    ready_timeout_s: float = 150,
) -> Iterator[RunningServer]:
    """Run `python -m imageedit_server` with free ports; further arguments win over the defaults here.

    With `ready` the server is waited for until `/readyz` says 200.
    """
    port, probe_port = free_ports(2)
    with tempfile.TemporaryDirectory(prefix="imageedit-server-") as name:
        folder = Path(name)
        command = [sys.executable, "-m", "imageedit_server", "--host", "127.0.0.1"]
        command += ["--port", str(port), "--probe-port", str(probe_port)]
        command += ["--model-dir", model_dir, "--sizes", sizes, "--drain-propagation", "0.5", *arguments]
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("IMAGEEDIT_")}
        environment = inherited | {
            "PYTHONPATH": str(SOURCE),
            "IMAGEEDIT_TERMINATION_LOG": str(folder / "termination-log"),
            **(environ or {}),
        }
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
        server = RunningServer(process=process, port=port, probe_port=probe_port, folder=folder)
        try:
            if ready:
                wait_ready(server, ready_timeout_s)
            yield server
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


def stub_server(
    *arguments: str, edit_s: float = 0.2, environ: Mapping[str, str] | None = None, ready: bool = True
) -> contextlib.AbstractContextManager[RunningServer]:
    """A server whose edits take a known time and no model: for facts about time and load."""
    return running_server("--stub-edit-seconds", str(edit_s), *arguments, environ=environ, ready=ready)


def wait_ready(server: RunningServer, timeout_s: float = 150) -> None:
    """Wait for /readyz, and show the log when the process ends instead."""

    def ready() -> bool:
        if server.process.poll() is not None:
            raise AssertionError(f"the server ended with {server.process.returncode}:\n{server.log()}")
        with contextlib.suppress(httpx.TransportError):
            return server.get("/readyz").status_code == 200
        return False

    until(ready, timeout_s=timeout_s, what="the server is ready")


def answers(server: RunningServer) -> bool:
    """Whether it listens, loaded or not."""
    with contextlib.suppress(httpx.TransportError):
        return server.get("/healthz").status_code == 200
    return False


def until(condition: Callable[[], bool], *, timeout_s: float = 10, what: str) -> None:
    """Poll until the condition holds.

    Raises:
        AssertionError: it does not hold in time.
    """
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            raise AssertionError(f"not within {timeout_s} s: {what}")
        time.sleep(0.02)


class Background:
    """Calls that run in threads of their own."""

    def __init__(self, calls: Sequence[Callable[[], httpx.Response]]) -> None:
        self._pool = ThreadPoolExecutor(max_workers=len(calls))
        self._futures = [self._pool.submit(call) for call in calls]

    def done(self) -> bool:
        """All have ended."""
        return all(future.done() for future in self._futures)

    def results(self, timeout_s: float = 150) -> list[httpx.Response]:
        """Their answers in the order of the calls; the first error is raised."""
        return [future.result(timeout_s) for future in self._futures]


@contextlib.contextmanager
def in_background(*calls: Callable[[], httpx.Response]) -> Iterator[Background]:
    """Run calls beside the test, and wait for their end."""
    background = Background(calls)
    try:
        yield background
    finally:
        background._pool.shutdown(wait=True)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [listening.getsockname()[1] for listening in sockets]


def picture(width_px: int = 128, height_px: int = 128, colour: tuple[int, int, int] = (200, 40, 40)) -> Image.Image:
    """A picture of one colour with a darker square in its middle."""
    drawn = Image.new("RGB", (width_px, height_px), colour)
    side_px = min(width_px, height_px) // 3
    left_px, top_px = (width_px - side_px) // 2, (height_px - side_px) // 2
    drawn.paste((30, 30, 30), (left_px, top_px, left_px + side_px, top_px + side_px))
    return drawn


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    """A picture as the bytes of a file."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def png_base64(image: Image.Image | None = None) -> str:
    """A picture as base64 of a PNG."""
    return base64.b64encode(encoded(image or picture())).decode()


def decoded(text: str) -> Image.Image:
    """A picture from base64."""
    return Image.open(io.BytesIO(base64.b64decode(text)))
