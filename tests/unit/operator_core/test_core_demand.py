"""What is said of a queue without data, by how long pods had to be scraped; row by row."""

from __future__ import annotations

import pytest

from imageedit_operator.core.demand import words_for_a_start
from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import QueueSample
from imageedit_operator.core.observed_pod import ObservedPod
from unit.operator_core.builders import pending_pod, serving_pod, starting_pod

NOW = 5000.0
CHECK = "Prometheus has no series for this deployment: check that it scrapes the server pods"
NOTHING = Unknown(reason="NoSeries", message=CHECK)
NONE_RUNS = "no server pod runs yet, so there is nothing to scrape"
JUST = "the server pods were only just started: Prometheus had no time to scrape them yet"


def started(age_s: float) -> ObservedPod:
    return starting_pod(f"pod-{age_s}", started_at=NOW - age_s)


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        ((), NONE_RUNS),
        ((pending_pod(),), NONE_RUNS),
        ((started(0.0),), JUST),
        ((started(59.0), pending_pod()), JUST),
        ((started(60.0),), CHECK),
        ((started(60.0), started(1.0)), CHECK),
        ((serving_pod(),), CHECK),
        ((starting_pod(started_at=NOW, terminating=True),), NONE_RUNS),
    ],
)
def test_pods_get_a_minute_to_be_scraped(pods: tuple[ObservedPod, ...], words: str) -> None:
    found = words_for_a_start(NOTHING, pods, now=NOW)
    assert isinstance(found, Unknown)
    assert (found.reason, found.message) == ("NoSeries", words)


@pytest.mark.parametrize(
    "queue",
    [
        Unknown(reason="PrometheusUnreachable", message="no answer"),
        Known(value=QueueSample(waiting=1.0, running=0.0, pods=1), age_s=3.0),
    ],
)
def test_other_answers_stay_as_they_are(queue: Known[QueueSample] | Unknown) -> None:
    assert words_for_a_start(queue, (), now=NOW) == queue
