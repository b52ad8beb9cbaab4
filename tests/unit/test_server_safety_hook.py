"""Facts about the safety hook while its classifier cannot look: nothing passes, and nothing is lost by it."""

from __future__ import annotations

import json

import pytest

from imageedit_server.api.job_edits import ServiceEditor
from imageedit_server.api.job_runner import NotNow
from imageedit_server.api.service import Service
from imageedit_server.errors import Unavailable
from imageedit_server.gate.jobs import Job
from imageedit_server.safety.classifier import Classifier
from imageedit_server.safety.protocol import ClassifierSettings
from imageedit_server.settings import settings_from
from imageedit_server.worker.protocol import EditJob
from imageedit_server.worker.shapes import Size
from server.running import encoded, picture, png_base64

SIZE = Size(64, 64)
JOB = EditJob(job_id="j", picture=bytes(3 * SIZE.area_px), size=SIZE, prompt="x", steps=2, seed=1)
WITH_CLASSIFIER = ("--safety-classifier", "/models/classifier", "--safety-labels", "unsafe")


def service(*arguments: str) -> Service:
    return Service(settings_from(["--model-dir", "demo", "--sizes", str(SIZE), *arguments], {}))


def blind() -> Service:
    """Its classifier is never started, and nobody waits for it."""
    made = service(*WITH_CLASSIFIER)
    settings = ClassifierSettings(folder="/models/classifier", labels=("unsafe",), threshold=0.5)
    made.safety.classifier = Classifier(settings, start_deadline_s=1.0, patience_s=0.0)
    return made


async def test_without_a_classifier_nothing_is_looked_at() -> None:
    made = service()
    await made.safety.check_inputs(JOB)
    await made.safety.check_result(b"no picture at all")

    assert made.safety.ready
    assert made.safety.state() == {"denylist": "off", "classifier": "off"}


async def test_a_picture_that_cannot_be_looked_at_does_not_pass() -> None:
    with pytest.raises(Unavailable) as raised:
        await blind().safety.check_inputs(JOB)

    assert (raised.value.code, raised.value.retry_after_s) == ("safety_unavailable", 5)


async def test_a_result_that_cannot_be_looked_at_is_not_sent() -> None:
    with pytest.raises(Unavailable) as raised:
        await blind().safety.check_result(encoded(picture(64, 64)))

    assert raised.value.code == "safety_unavailable"


async def test_a_service_is_not_ready_before_its_classifier_is() -> None:
    made = service(*WITH_CLASSIFIER)

    assert not made.safety.ready
    assert made.safety.why_not_ready() == "safety classifier loading"
    assert made.safety.state()["classifier"] == "loading"


async def test_a_job_whose_pictures_cannot_be_looked_at_now_waits_on() -> None:
    job = Job(job_id="job_1", number=1, created_s=0.0, body_bytes=1, digest="d", seed=1)
    body = json.dumps({"image": png_base64(picture(64, 64)), "prompt": "x"}).encode()

    with pytest.raises(NotNow):
        await ServiceEditor(blind()).prepared(job, body)
