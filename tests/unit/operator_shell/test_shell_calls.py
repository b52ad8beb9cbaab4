"""No change goes by unseen, in whatever order lists, events and looks meet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imageedit_operator.calls import Calls
from imageedit_operator.errors import ApiError
from imageedit_operator.hearing import Hearing
from imageedit_operator.kube.first_look import nothing_shown
from imageedit_operator.kube.kept import nothing_kept
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS, SERVICES, Resource
from imageedit_operator.wake_ups import WATCHED, Told
from imageedit_operator.workqueue import Key, WorkQueue
from unit.operator_shell.term_scene import AT_REST_S, CHILDREN, NAMES, PERIOD_S, Scene, breathe, serving
from unit.operator_shell.virtual_time import run_virtual

Step: TypeAlias = tuple[Any, ...]
Script: TypeAlias = tuple[int, list[Step]]
"""The answers that come first, and the steps after them."""

REFUSED = ApiError(status=500, reason="InternalError", message="etcd")
LIST_ANSWERS = 10
"""The first list has come to its end after so many."""

numbers = st.integers(0, 3)
names = st.sampled_from(NAMES)
anything = st.sampled_from((IMAGE_EDIT_DEPLOYMENTS, *CHILDREN))
steps = st.one_of(
    st.tuples(st.just("answer"), st.sampled_from([1, 1, 2, 4]), numbers),
    st.tuples(st.just("refuse"), numbers),
    st.tuples(st.just("hear"), st.sampled_from(WATCHED), st.sampled_from([1, 9])),
    st.tuples(st.just("create"), names),
    st.tuples(st.just("add"), names, st.sampled_from(CHILDREN)),
    st.tuples(st.just("change"), names, anything, numbers),
    st.tuples(st.just("delete"), names, anything, numbers),
    st.tuples(st.just("wait"), st.sampled_from([0.3, 1.0, 5.0, 70.0])),
)
scripts = st.tuples(st.integers(0, LIST_ANSWERS + 3), st.lists(steps, max_size=25))


async def take(scene: Scene, step: Step) -> None:
    """Something is done to the cluster, or happens between it and the operator."""
    match step:
        case ("answer", times, which):
            for _ in range(times):
                scene.kube.answer(which)
                await breathe()
        case ("refuse", which):
            scene.kube.answer(which, error=REFUSED)
        case ("hear", kind, times):
            scene.watch(kind)
            for _ in range(times):
                scene.hear(kind)
        case ("wait", seconds):
            await asyncio.sleep(seconds)
        case (name, *arguments):
            getattr(scene, name)(*arguments)
    await breathe()


def played(script: Script, then: Callable[[Scene], None], *, for_s: float = AT_REST_S) -> None:
    """The script, then a time in which everything is answered and told."""

    async def main() -> None:
        answers, steps = script
        async with serving() as scene:
            for step in [("answer", answers, 0), *steps]:
                await take(scene, step)
            await scene.rest(for_s)
            then(scene)

    run_virtual(main)


def nothing_is_missed(scene: Scene) -> None:
    """The last look at each resource saw all of it as it is."""
    for name in NAMES:
        there = scene.there(name)
        assert there is None or scene.looks.last[name] == there


@given(script=scripts)
@settings(max_examples=100, deadline=None)
def test_what_the_watches_told_and_what_went_before_they_began_is_seen_by_the_last_look(script: Script) -> None:
    played(script, nothing_is_missed)


@given(script=scripts)
@settings(max_examples=100, deadline=None)
def test_what_nobody_told_is_seen_after_the_next_list(script: Script) -> None:
    played(script, nothing_is_missed, for_s=AT_REST_S + PERIOD_S)


@pytest.mark.parametrize("kind", WATCHED)
def test_what_is_told_while_a_first_look_waits_is_seen_by_it(kind: Resource) -> None:
    """The resource is in the queue already, behind the other: an event adds nothing to it."""
    changes = [("change", name, kind, 0) for name in NAMES]
    played((LIST_ANSWERS, [*changes, ("hear", kind, 9)]), nothing_is_missed)


@pytest.mark.parametrize(
    ("told", "looked_at"),
    [
        pytest.param({"version": "7"}, False, id="the version that a pass read or wrote"),
        pytest.param({"version": "8"}, True, id="another version"),
        pytest.param({"version": "7", "uid": "uid-of-another"}, True, id="another Service"),
        pytest.param({"version": "8", "gone": True}, True, id="its end"),
        pytest.param({"version": "8", "delay_s": None}, False, id="a version that shows nothing else"),
    ],
)
def test_what_a_pass_wrote_into_a_service_asks_for_no_look(told: dict[str, Any], looked_at: bool) -> None:
    hearing, queue = Hearing(), WorkQueue(clock=lambda: 0.0, random=lambda: 0.0)
    calls = Calls(queue=queue, hearing=hearing, first=nothing_shown(), kept=nothing_kept())
    hearing.read({"metadata": {"uid": "uid-s", "resourceVersion": "7"}})
    event = Told(key=Key("team", "edit"), kind=SERVICES, uid="uid-s", version="", gone=False, delay_s=0.0)
    calls.told(event._replace(**told))
    assert queue.depth() == int(looked_at)
