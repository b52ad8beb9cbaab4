"""The operator as a process of its own, started and stopped by tests, with or without a proxy before its apiserver."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from apiserver.operator_faults import FaultProxy, faulty
from apiserver.operator_plane import LONG_S, ROOT, eventually, writes_but_leases
from imageedit_operator.wake_ups import WATCHED
from localcluster.controlplane import ControlPlane

SOURCE = ROOT / "operator/src"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE)}
PASSES = "imageedit_operator_reconcile_total"


@dataclass(kw_only=True)
class Operator:
    """A running operator process."""

    process: asyncio.subprocess.Process
    port: int
    log: list[dict[str, Any]]

    def ended(self) -> bool:
        """The process is gone."""
        return self.process.returncode is not None

    async def get(self, path: str) -> tuple[int, str]:
        """Status and body of a GET on its own port."""
        async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{self.port}{path}") as answer:
            return answer.status, await answer.text()

    async def metric(self, name: str) -> float:
        """The sum over the series of a metric."""
        _, text = await self.get("/metrics")
        rows = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
        return sum(float(value) for series, value in rows if series.split("{")[0] == name)

    async def role(self) -> str:
        """`leader` or `standby`."""
        return str(json.loads((await self.get("/healthz"))[1])["role"])

    async def becomes(self, role: str) -> None:
        """Waits for this role."""

        async def look() -> bool | None:
            return True if await self.role() == role else None

        await eventually(look, what=f"role {role}")

    def resident_mib(self) -> float:
        """Resident memory."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("the process is gone")

    def messages(self) -> str:
        """What it logged, for failures."""
        return "\n".join(str(line) for line in self.log)


async def start(kubeconfig: Path, *flags: str, source: Path = SOURCE, env: Mapping[str, str] = ENVIRONMENT) -> Operator:
    """Starts the process from this source tree; its port is known when this returns."""
    arguments = ["--kubeconfig", str(kubeconfig), "--http-port", "0", *flags]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "imageedit_operator", *arguments), stderr=asyncio.subprocess.PIPE, env=env
    )
    running = Operator(process=process, port=0, log=[])
    assert process.stderr is not None
    while line := await process.stderr.readline():
        running.log.append(_parsed(line))
        if "http_port" in running.log[-1]:
            running.port = running.log[-1]["http_port"]
            return running
    raise AssertionError(f"it ended before it listened: {running.messages()}")


@asynccontextmanager
async def operator(kubeconfig: Path, *flags: str, env: Mapping[str, str] = ENVIRONMENT) -> AsyncIterator[Operator]:
    """The operator, stopped at the end however the test ends."""
    running = await start(kubeconfig, *flags, env=env)
    reading = asyncio.create_task(_read(running))
    try:
        yield running
    finally:
        if running.process.returncode is None:
            running.process.terminate()
            try:
                await asyncio.wait_for(running.process.wait(), timeout=LONG_S)
            except TimeoutError:
                running.process.kill()
                await running.process.wait()
        await reading


@asynccontextmanager
async def behind_proxy(plane: ControlPlane, tmp_path: Path, *flags: str) -> AsyncIterator[tuple[FaultProxy, Operator]]:
    """An operator whose way to the apiserver can be disturbed, with its watches open."""
    async with faulty(plane) as proxy, operator(proxy.write_kubeconfig(tmp_path / "kubeconfig"), *flags) as running:

        async def watches() -> bool | None:
            return True if proxy.open_watches() == len(WATCHED) else None

        await eventually(watches, what="open watches")
        yield proxy, running


async def at_rest(plane: ControlPlane, running: Operator, *, passes: int) -> None:
    """Waits until that many passes in a row wrote nothing."""

    async def look() -> bool | None:
        written, done = len(writes_but_leases(plane)), await running.metric(PASSES)

        async def looked() -> bool | None:
            return True if await running.metric(PASSES) >= done + passes else None

        await eventually(looked, what=f"{passes} passes")
        return True if len(writes_but_leases(plane)) == written else None

    await eventually(look, what="rest", within_s=2 * LONG_S)


async def _read(running: Operator) -> None:
    assert running.process.stderr is not None
    while line := await running.process.stderr.readline():
        running.log.append(_parsed(line))


def _parsed(line: bytes) -> dict[str, Any]:
    """A line of its log; what is not its own, such as a traceback of the interpreter, comes as it is."""
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"raw": line.decode(errors="replace")}
