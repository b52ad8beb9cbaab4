"""How long an edit may be silent before its worker is taken for hung."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from imageedit_server.worker.running_edit import RunningEdit
from support.hand_worker import job
from unit.operator_shell.virtual_time import now, run_virtual, stand_still

LIMIT_S = 30.0
FROZEN_S = 100.0


def hung_at(meanwhile: Callable[[RunningEdit], None], *, after_s: float) -> float:
    """When the edit is called hung, where this happens so long after it was sent."""

    async def main() -> float:
        edit = RunningEdit(job("one"), None, silence_limit_s=LIMIT_S)
        hangs = asyncio.create_task(edit.hangs())
        await asyncio.sleep(after_s)
        meanwhile(edit)
        assert await hangs
        return now()

    return run_virtual(main)


def test_an_edit_hangs_when_nothing_was_heard_of_it_for_the_limit() -> None:
    assert hung_at(lambda _edit: None, after_s=5.0) == LIMIT_S


def test_the_limit_runs_from_the_last_sign_of_life() -> None:
    assert hung_at(lambda edit: edit.heard(), after_s=5.0) == 5.0 + LIMIT_S


def test_no_worker_is_killed_for_the_time_in_which_the_server_itself_stood_still() -> None:
    hung_s = hung_at(lambda _edit: stand_still(FROZEN_S), after_s=5.0)
    assert FROZEN_S + LIMIT_S - 1 <= hung_s <= FROZEN_S + LIMIT_S + 1


def test_a_sign_of_life_behind_a_standstill_counts_from_when_it_came() -> None:
    def go_on(edit: RunningEdit) -> None:
        stand_still(FROZEN_S)
        edit.heard()

    assert hung_at(go_on, after_s=5.0) == 5.0 + FROZEN_S + LIMIT_S
