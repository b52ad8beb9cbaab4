"""Nothing of a foreign loop stays behind, even what does not end when it is cancelled once."""

from __future__ import annotations

import asyncio
import logging

import pytest

from imageedit_operator.loop_end import MOST_CANCELS, end_all, say_in_a_line


async def deaf(cancels: int) -> None:
    """Ends at the cancel after so many."""
    for _ in range(cancels):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue
    await asyncio.Event().wait()


@pytest.mark.parametrize("cancels", [0, 1, 3])
def test_a_task_that_swallows_cancels_ends_all_the_same(cancels: int) -> None:
    async def run() -> bool:
        task = asyncio.create_task(deaf(cancels))
        await asyncio.sleep(0)
        await end_all()
        return task.cancelled()

    assert asyncio.run(run())


def test_a_task_that_never_ends_is_told_and_left(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> asyncio.Task[None]:
        task = asyncio.create_task(deaf(MOST_CANCELS + 1))
        await asyncio.sleep(0)
        await end_all()
        return task

    loop = asyncio.new_event_loop()
    try:
        task = loop.run_until_complete(run())
        assert "1 tasks of kopf's loop cannot be ended" in caplog.text
        while not task.done():
            task.cancel()
            loop.run_until_complete(asyncio.sleep(0))
    finally:
        loop.close()


def test_a_failure_that_nobody_waited_for_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> None:
        raise ValueError("of the second watch")

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(say_in_a_line)
        task = asyncio.create_task(fails())
        await asyncio.wait({task})
        del task
        await end_all()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert [record.name for record in caplog.records] == ["imageedit_operator.loop_end"]
    assert "ValueError('of the second watch')" in caplog.text
