"""A worker never outlives the API process."""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE

import pytest

from imageedit_server.worker.failures import WorkerError
from imageedit_server.worker.framing import read_message
from imageedit_server.worker.phase import WorkerPhase
from imageedit_server.worker.process import describe_exit, end_process, start_process
from imageedit_server.worker.protocol import Loading
from server.workers import edit_job, is_alive, kill, running_worker, stub_settings, until_gone

_PARENT = """
import asyncio, sys
sys.path[:] = {path!r}
from server.workers import edit_job, stub_settings
from imageedit_server.worker.phase import WorkerPhase
from imageedit_server.worker.supervisor import Worker

async def main():
    ready = asyncio.Event()
    worker = Worker(stub_settings(), on_change=lambda phase: phase is WorkerPhase.READY and ready.set())
    await worker.start()
    await ready.wait()
    say = lambda step, steps: step == 1 and print(worker.pid, flush=True)
    await worker.edit(edit_job(steps=100000), on_step=say)

asyncio.run(main())
"""


@pytest.mark.parametrize("hung", [False, True])
async def test_a_worker_in_the_middle_of_an_edit_dies_with_a_killed_parent(hung: bool) -> None:
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", _PARENT.format(path=sys.path), stdout=PIPE)
    try:
        assert parent.stdout is not None
        worker_pid = int(await parent.stdout.readline())
        assert is_alive(worker_pid)
        if hung:
            kill(worker_pid, signal.SIGSTOP)  # it cannot see its pipe close
    finally:
        parent.kill()
        await parent.wait()
    await until_gone(worker_pid)


async def test_a_worker_ends_when_its_pipe_closes() -> None:
    process, areas = await start_process(stub_settings(load_s=60.0))
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        assert isinstance(await read_message(process.stdout), Loading)
        process.stdin.close()
        async with asyncio.timeout(10):
            assert await process.wait() == 0
    finally:
        await end_process(process)
        areas.close()


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
async def test_a_worker_leaves_signals_for_the_group_to_the_api_process(signal_number: int) -> None:
    process, areas = await start_process(stub_settings(load_s=0.3))
    try:
        assert process.stdout is not None
        assert isinstance(await read_message(process.stdout), Loading)
        kill(process.pid, signal_number)
        await read_message(process.stdout)  # it goes on to load and warm
        await read_message(process.stdout)
        assert process.returncode is None
    finally:
        await end_process(process)
        areas.close()


@pytest.mark.parametrize(
    ("returncode", "said"), [(0, "exit code 0"), (2, "exit code 2"), (-9, "signal SIGKILL"), (-63, "signal 63")]
)
def test_an_exit_is_described(returncode: int, said: str) -> None:
    assert describe_exit(returncode) == said


async def test_the_log_of_a_worker_is_json_with_the_job_and_without_the_prompt(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async with running_worker(stub_settings(log_level="debug", pod="qwen-0")) as worker:
        await worker.until(WorkerPhase.READY)
        await worker.edit(edit_job("job-7", prompt="a secret wish"))
        with pytest.raises(WorkerError):
            await worker.edit(edit_job("job-8", prompt="fault: error"))
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    by_event = {line["event"]: line for line in lines if line["logger"] in ("imageedit.worker", "imageedit.warmup")}
    assert by_event["edit_done"]["job_id"] == "job-7"
    assert by_event["edit_failed"]["job_id"] == "job-8"
    assert by_event["edit_failed"]["reason"] == "EditFailed"
    assert by_event["warmed"]["shape"] == "128x128"
    assert {line["pod"] for line in lines} == {"qwen-0"}
    assert "secret" not in json.dumps(lines)
