"""The definition of our kind is waited for, and said to be missing once."""

from __future__ import annotations

import asyncio

from imageedit_operator.definition import LOOK_S, MISSING, Definition
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.kinds import Resource
from unit.operator_shell.builders import MemoryKube
from unit.operator_shell.virtual_time import now, run_virtual


class Discovery(MemoryKube):
    """Answers of the discovery, one after the other; the last one stays."""

    def __init__(self, *answers: bool | ApiError) -> None:
        super().__init__()
        self._answers = list(answers)

    async def serves(self, resource: Resource) -> bool:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, ApiError):
            raise answer
        return answer


def waited(*answers: bool | ApiError, stop_after_s: float = 1e6) -> tuple[bool, float, str, int]:
    """What a wait says, when it ends, the notice then, and how often it was alive."""

    async def main() -> tuple[bool, float, str, int]:
        stop, alive = asyncio.Event(), list[float]()
        asyncio.get_running_loop().call_later(stop_after_s, stop.set)
        definition = Definition(Discovery(*answers), on_alive=lambda: alive.append(now()))
        found = await definition.wait(stop)
        return found, now(), definition.notice(), len(alive)

    return run_virtual(main)


SILENT = ApiError(status=0, reason="Unreachable", message="no answer")


def test_a_kind_that_is_served_is_not_waited_for() -> None:
    assert waited(True) == (False, 0, "", 1)


def test_a_kind_that_is_gone_is_waited_for_while_the_process_counts_as_alive() -> None:
    assert waited(False, False, True) == (True, 2 * LOOK_S, "", 3)


def test_an_apiserver_that_does_not_answer_is_left_to_the_watches() -> None:
    assert waited(SILENT) == (False, 0, "", 1)


def test_a_stop_ends_the_wait_at_once() -> None:
    assert waited(False, stop_after_s=3.0) == (True, 3.0, MISSING, 2)
