"""The classifier's process: what it says of pictures, and how it fails and is replaced."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from imageedit_server.errors import FailureReason
from imageedit_server.safety.classifier import MAX_RESTARTS, Classifier, ClassifierAway, ClassifierPhase
from imageedit_server.safety.protocol import ClassifierSettings
from server.classifiers import BLUE, RED, tiny_classifier
from server.workers import is_alive, kill

SIDE_PX = 48

# A start imports torch, which takes its time on a busy machine.
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_classifier(tmp_path_factory.mktemp("classifier"))


def settings(folder: Path) -> ClassifierSettings:
    return ClassifierSettings(folder=str(folder), labels=("unsafe",), threshold=0.5)


@asynccontextmanager
async def running(wanted: ClassifierSettings, **options: Any) -> AsyncIterator[Classifier]:
    classifier = Classifier(wanted, **{"start_deadline_s": 100.0} | options)
    classifier.start()
    try:
        yield classifier
    finally:
        await classifier.stop()


async def refuses(classifier: Classifier, colour: tuple[int, int, int]) -> bool:
    return await classifier.refuses(bytes(colour) * SIDE_PX * SIDE_PX, width_px=SIDE_PX, height_px=SIDE_PX)


async def failure_of(wanted: ClassifierSettings, **options: Any) -> tuple[FailureReason, str]:
    async with running(wanted, **options) as classifier:
        await asyncio.wait_for(classifier.failed.wait(), 100)
        assert classifier.phase is ClassifierPhase.FAILED
        assert classifier.failure is not None
        return classifier.failure


async def test_callers_at_once_each_get_their_own_verdict_and_a_look_that_fails_is_none(folder: Path) -> None:
    async with running(settings(folder)) as classifier:
        colours = [RED, BLUE, BLUE, RED, BLUE]
        verdicts = await asyncio.gather(*[refuses(classifier, colour) for colour in colours])
        pid = classifier.pid
        with pytest.raises(ClassifierAway):
            await classifier.refuses(b"too short", width_px=SIDE_PX, height_px=SIDE_PX)

        assert verdicts == [colour == RED for colour in colours]
        assert await refuses(classifier, RED)
        assert classifier.pid == pid
    assert pid is not None
    assert not is_alive(pid)


async def test_a_process_that_is_killed_or_hangs_is_replaced_and_the_look_is_repeated(folder: Path) -> None:
    async with running(settings(folder), silence_s=5.0, patience_s=120.0) as classifier:
        await refuses(classifier, BLUE)
        killed = classifier.pid
        kill(killed, signal.SIGSTOP)
        looking = asyncio.create_task(refuses(classifier, RED))
        await asyncio.sleep(0)
        kill(killed, signal.SIGKILL)
        assert await looking

        hanging = classifier.pid
        assert hanging not in (None, killed)
        kill(hanging, signal.SIGSTOP)
        assert await refuses(classifier, RED)
        assert classifier.pid not in (None, hanging)


async def test_nothing_is_let_through_while_there_is_no_verdict(folder: Path) -> None:
    async with running(settings(folder), patience_s=0.0) as classifier:
        with pytest.raises(ClassifierAway):
            await refuses(classifier, BLUE)


async def test_a_classifier_that_is_lost_again_and_again_is_given_up(folder: Path) -> None:
    async with running(settings(folder)) as classifier:
        killed: list[int] = []
        while not classifier.failed.is_set():
            if classifier.pid is not None and classifier.pid not in killed:
                killed.append(classifier.pid)
                kill(classifier.pid, signal.SIGKILL)
            await asyncio.sleep(0.02)

        assert len(killed) == MAX_RESTARTS + 1
        assert classifier.phase is ClassifierPhase.FAILED
        assert classifier.failure is not None
        assert classifier.failure[0] is FailureReason.WORKER_LOST


@pytest.mark.parametrize(
    ("model", "start_deadline_s", "message"), [("none", 100.0, "holds no config.json"), ("", 0.01, "not loaded within")]
)
async def test_a_start_that_cannot_succeed_is_a_wrong_setting(
    folder: Path, model: str, start_deadline_s: float, message: str
) -> None:
    async with running(settings(folder / model), start_deadline_s=start_deadline_s) as classifier:
        await asyncio.wait_for(classifier.failed.wait(), 100)

        assert classifier.failure is not None
        assert classifier.failure[0] is FailureReason.SETTINGS_INVALID
        assert message in classifier.failure[1]
