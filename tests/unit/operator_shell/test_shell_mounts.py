"""What nodes say of the volumes of a pod that hangs: asked seldom, and repeated in the same words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.kinds import EVENTS
from imageedit_operator.kube.mounts import FORBIDDEN_S, FRESH_S, MOST_PODS, PATIENCE_S, MountBook, hangs, why
from imageedit_operator.kube.parsing import timestamp

NOW = 1_796_007_600.0
SLOW = ObservedPod(name="p", uid="u", revision_hash="a", node="npu-1", scheduled_at=NOW - PATIENCE_S)
FOLDER = 'MountVolume.SetUp failed for volume "ascend-driver" : hostPath type check failed: /d is not a directory'
SUMMARY = "Unable to attach or mount volumes: unmounted volumes=[ascend-driver]: timed out"


def event(reason: str, note: str = "", *, age_s: float = 10.0, **times: Any) -> Manifest:
    """As events.k8s.io shows what a kubelet wrote."""
    seen = times or {"deprecatedLastTimestamp": timestamp(NOW - age_s)}
    return {"metadata": {"creationTimestamp": timestamp(NOW - 3000)}, "reason": reason, "note": note, **seen}


MICROS = timestamp(NOW).replace("Z", ".000000Z")


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([], ""),
        ([event("Scheduled", "assigned")], ""),
        ([event("FailedMount", FOLDER)], FOLDER),
        ([event("FailedMount", SUMMARY), event("FailedMount", FOLDER, age_s=200)], FOLDER),
        ([event("FailedMount", SUMMARY)], SUMMARY),
        ([event("FailedAttachVolume", "Multi-Attach error\n  for volume")], "Multi-Attach error for volume"),
        ([event("FailedMount", FOLDER, age_s=400)], ""),
        ([event("FailedMount", FOLDER, age_s=30), event("Pulling", "image")], ""),
        ([event("FailedMount", FOLDER), event("Pulled", "image", age_s=30)], FOLDER),
        ([event("FailedMount", FOLDER, eventTime=MICROS)], FOLDER),
        ([event("FailedMount", FOLDER, series={"count": 9, "lastObservedTime": MICROS})], FOLDER),
        ([event("FailedMount")], "FailedMount"),
        ([event("FailedMount", "w" * 5000)], "w" * 600),
    ],
)
def test_the_words_of_a_failure_that_lasts_are_told(events: list[Manifest], words: str) -> None:
    assert why(events, NOW) == words
    assert why(reversed(events), NOW) == words


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (SLOW, True),
        (replace(SLOW, scheduled_at=NOW - PATIENCE_S + 1), False),
        (replace(SLOW, scheduled_at=0.0), False),
        (replace(SLOW, node=""), False),
        (replace(SLOW, started=True), False),
        (replace(SLOW, waiting_reason="ImagePullBackOff"), False),
        (replace(SLOW, last_exit_code=1), False),
        (replace(SLOW, terminating=True), False),
        (replace(SLOW, phase="Failed"), False),
    ],
)
def test_only_a_pod_of_which_nothing_else_tells_hangs(pod: ObservedPod, expected: bool) -> None:
    assert hangs(pod, NOW) is expected


@dataclass
class Told:
    """Events as the apiserver lists them, by the uid that was asked for; or a refusal."""

    events: dict[str, list[Manifest]] = field(default_factory=dict)
    refusal: ApiError | None = None
    asked: list[str] = field(default_factory=list)
    now: float = 0.0

    async def pages(self, resource: Any, namespace: str = "", *, fields: str = "", **_: Any) -> AsyncIterator[Any]:
        assert (resource, namespace) == (EVENTS, "team")
        uid = fields.removeprefix("regarding.uid=")
        self.asked.append(uid)
        if self.refusal is not None:
            raise self.refusal
        yield self.events.get(uid, [])

    def book(self) -> MountBook:
        return MountBook(self, clock=lambda: self.now, wall=lambda: NOW)  # type: ignore[arg-type]


async def test_a_node_s_words_are_kept_for_half_a_minute() -> None:
    told = Told(events={"u": [event("FailedMount", FOLDER)]})
    book = told.book()
    assert [await book.words([SLOW], "team") for _ in range(3)] == [{"u": FOLDER}] * 3
    told.events.clear()
    told.now += FRESH_S
    assert await book.words([SLOW], "team") == {}
    assert told.asked == ["u", "u"]


async def test_of_many_pods_one_is_asked_about_at_a_time_and_each_in_its_turn() -> None:
    pods = [replace(SLOW, name=f"p{number}", uid=f"u{number}") for number in range(3)]
    told = Told(events={"u2": [event("FailedMount", FOLDER)]})
    book = told.book()
    assert [await book.words(pods, "team") for _ in pods] == [{}, {}, {"u2": FOLDER}]
    assert told.asked == ["u0", "u1", "u2"]


async def test_a_pod_that_starts_in_time_asks_nothing() -> None:
    told = Told()
    assert await told.book().words([replace(SLOW, started=True)], "team") == {}
    assert told.asked == []


@pytest.mark.parametrize(("status", "again"), [(403, FORBIDDEN_S), (0, FRESH_S)])
async def test_a_refusal_is_silence_and_is_not_met_at_every_look(status: int, again: float) -> None:
    told = Told(refusal=ApiError(status=status, reason="Forbidden" if status else "Unreachable", message="no"))
    book = told.book()
    for number in range(3):
        assert await book.words([replace(SLOW, uid="u" if status == 0 else f"u{number}")], "team") == {}
    assert len(told.asked) == 1
    told.now += again
    await book.words([SLOW], "team")
    assert len(told.asked) == 2


async def test_what_is_kept_is_bounded() -> None:
    told = Told()
    book = told.book()
    for number in range(MOST_PODS + 1):
        await book.words([replace(SLOW, uid=f"u{number}")], "team")
    await book.words([replace(SLOW, uid="u0")], "team")
    assert told.asked.count("u0") == 2
