"""Starting the worker process and telling how it ended.

A plain subprocess with pickles over its stdin and stdout, rather than `multiprocessing`: asyncio reads and writes the
pipes without threads, the parent's main module is not imported a second time, and no resource tracker stays behind.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence

from imageedit_server.logs import fields
from imageedit_server.worker.framing import pack
from imageedit_server.worker.protocol import EngineSettings
from imageedit_server.worker.shared import Areas, make_descriptors, opened

log = logging.getLogger("imageedit.supervisor")

# The worker finds the package where the parent found it, installed or not.
_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from importlib import import_module; import_module(sys.argv[2]).main(*map(int, sys.argv[3:]))"
)

CARD_WORKER = "imageedit_server.worker.loop"

_KILLED_WITHIN_S = 10.0

_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",  # a model comes from its folder; a typing error must not become a download
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",  # a device is opened on purpose, where a failure can be explained
}
_ENVIRONMENT_DEFAULTS = {
    "OMP_WAIT_POLICY": "PASSIVE",  # threads that spin while they wait: two workers on two cores, six times slower each
}


async def start_process(settings: EngineSettings) -> tuple[Process, Areas]:
    """Start a worker of the card; the areas of shared memory are this side's."""
    to_worker, from_worker = make_descriptors(settings)
    try:
        process = await start_child(settings, module=CARD_WORKER, descriptors=(to_worker, from_worker))
    finally:
        areas = opened(outgoing=to_worker, incoming=from_worker)
    return process, areas


async def start_child(settings: object, *, module: str, descriptors: Sequence[int] = ()) -> Process:
    """Start a process and hand it its settings; it goes on by itself in `main(parent_pid, *descriptors)` of its module.

    Call it from a thread that lives as long as the process: the kernel ends the child with the thread that started it.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _BOOT,
        json.dumps(sys.path),
        module,
        *(str(number) for number in (os.getpid(), *descriptors)),
        stdin=PIPE,
        stdout=PIPE,
        pass_fds=descriptors,
        env={**_ENVIRONMENT_DEFAULTS, **os.environ, **_ENVIRONMENT},
    )
    assert process.stdin is not None
    process.stdin.write(pack(settings))
    return process


async def end_process(process: Process, *, grace_s: float = 0.0) -> None:
    """Kill a worker and wait until it is gone. It holds nothing that outlives it, so there is nothing to ask it for.

    With `grace_s` it may first end by itself: killing a process that just ended would hide its own exit status.
    One that is stuck inside a driver outlives even SIGKILL for a while; it is not waited for then.
    """
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), grace_s)
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    if process.stdin is not None:
        process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), _KILLED_WITHIN_S)
    except TimeoutError:
        log.error("worker_does_not_end", extra=fields(pid=process.pid, why="killed, but stuck in a driver"))


def describe_exit(returncode: int) -> str:
    """Say how a process ended: `signal SIGKILL` or `exit code 2`."""
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        return f"signal {signal.Signals(-returncode).name}"
    except ValueError:
        return f"signal {-returncode}"
