"""The status is written when it changes, as the smallest patch, and never twice for nothing."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS
from imageedit_operator.kube.status import StatusWriter, merge_diff
from imageedit_operator.workqueue import Key
from unit.operator_shell.builders import MemoryKube, cluster, custom_resource, merge

KEY = Key("team", "edit")
VERSION = "17"
LEAVES = st.one_of(st.integers(0, 3), st.text("ab", max_size=2), st.lists(st.integers(0, 2), max_size=2))
STATUSES = st.recursive(
    st.dictionaries(st.sampled_from("abc"), LEAVES, max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), st.one_of(LEAVES, inner), max_size=3),
    max_leaves=8,
)


@given(STATUSES, STATUSES)
def test_the_patch_turns_one_status_into_the_other(live: dict[str, Any], wanted: dict[str, Any]) -> None:
    patched = copy.deepcopy(live)
    merge(patched, merge_diff(live, wanted))
    assert patched == wanted


@given(STATUSES)
def test_the_same_status_needs_an_empty_patch(status: dict[str, Any]) -> None:
    assert merge_diff(status, status) == {}


def test_what_is_gone_becomes_null_and_lists_are_replaced() -> None:
    live = {"a": 1, "b": {"c": 1, "d": 2}, "l": [1, 2]}
    assert merge_diff(live, {"b": {"c": 1}, "l": [1]}) == {"a": None, "b": {"d": None}, "l": [1]}


def stored(status: dict[str, Any]) -> MemoryKube:
    """A cluster with the resource and this status."""
    return cluster((IMAGE_EDIT_DEPLOYMENTS, custom_resource(status=status)))


async def test_an_equal_status_is_not_written() -> None:
    kube = stored({"phase": "Serving", "conditions": [{"type": "Ready"}]})
    live = {"phase": "Serving", "conditions": [{"type": "Ready"}]}
    wanted = {"phase": "Serving", "conditions": ({"type": "Ready"},), "cards": None}
    assert await StatusWriter(kube).write(KEY, VERSION, live, wanted) is False
    assert kube.writes() == []


async def test_a_change_is_written_for_the_version_that_was_seen() -> None:
    kube = stored({"phase": "Starting", "ready": "0/1"})
    written = await StatusWriter(kube).write(KEY, VERSION, {"phase": "Starting", "ready": "0/1"}, {"phase": "Serving"})
    assert written is True
    assert kube.bodies == [{"metadata": {"resourceVersion": VERSION}, "status": {"phase": "Serving", "ready": None}}]


class PruningKube(MemoryKube):
    """An apiserver whose schema does not know the field `new`."""

    async def patch(self, *args: Any, **options: Any) -> dict[str, Any]:
        found = await super().patch(*args, **options)
        found["status"].pop("new", None)
        return found


async def test_a_field_that_an_older_schema_prunes_is_not_written_for_ever() -> None:
    kube = PruningKube()
    kube.put(IMAGE_EDIT_DEPLOYMENTS, custom_resource(status={}))
    writer = StatusWriter(kube)
    wanted = {"phase": "Serving", "new": 1}
    assert await writer.write(KEY, VERSION, {}, wanted) is True
    assert await writer.write(KEY, VERSION, {"phase": "Serving"}, wanted) is False
    assert await writer.write(KEY, VERSION, {"phase": "Serving"}, {"phase": "Stopped", "new": 1}) is True


async def test_a_pruned_field_is_written_within_the_hour_after_the_definition_was_brought_up_to_date() -> None:
    kube, at_s = PruningKube(), [0.0]
    kube.put(IMAGE_EDIT_DEPLOYMENTS, custom_resource(status={}))
    writer = StatusWriter(kube, clock=lambda: at_s[0])
    live, wanted = {"phase": "Serving"}, {"phase": "Serving", "new": 1}
    await writer.write(KEY, VERSION, {}, wanted)
    tried = []
    for at_s[0] in (0.0, 3599.0, 3600.0, 3601.0, 7200.0):
        tried.append(await writer.write(KEY, VERSION, live, wanted))
    assert tried == [False, False, True, False, True]


async def test_a_status_that_was_pruned_once_and_then_is_kept_whole_is_written_when_it_is_lost() -> None:
    kube = PruningKube()
    kube.put(IMAGE_EDIT_DEPLOYMENTS, custom_resource(status={}))
    writer = StatusWriter(kube)
    assert await writer.write(KEY, VERSION, {}, {"phase": "Serving", "new": 1}) is True
    assert await writer.write(KEY, VERSION, {"phase": "Serving"}, {"phase": "Stopped"}) is True
    assert await writer.write(KEY, VERSION, {"phase": "Serving"}, {"phase": "Serving", "new": 1}) is True


async def test_a_status_that_somebody_else_changed_is_written_again() -> None:
    kube = stored({})
    writer = StatusWriter(kube)
    await writer.write(KEY, VERSION, {}, {"phase": "Serving"})
    assert await writer.write(KEY, VERSION, {"phase": "Broken"}, {"phase": "Serving"}) is True
