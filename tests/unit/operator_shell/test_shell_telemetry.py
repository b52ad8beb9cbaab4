"""The operator's metrics: documented, and gone with their resource."""

from __future__ import annotations

import re
from pathlib import Path

from imageedit_operator.telemetry import Telemetry
from imageedit_operator.workqueue import Key

DOCUMENT = Path(__file__).parents[3] / "docs/metrics.md"
ROW = re.compile(r"^\| `(imageedit_operator_\w+)(?:\{([\w,]*)\})?` \| (\w+) \|", re.MULTILINE)
KEY = Key("team", "edit")


def full() -> Telemetry:
    """A telemetry that has seen everything once."""
    telemetry = Telemetry()
    telemetry.queue_seen(3, 1.5)
    telemetry.reconciled("ok", 0.2)
    telemetry.requested("get", "200")
    telemetry.watch_restarted()
    telemetry.leads(True)
    telemetry.resynced(5.0)
    telemetry.status_seen(KEY, {"desiredReplicas": 3, "readyReplicas": 2, "updatedReplicas": 1})
    telemetry.cards_seen(KEY, 4)
    telemetry.sample_seen(KEY, 7.0)
    telemetry.decided(KEY, 2, 3)
    telemetry.decided(KEY, 3, 2)
    telemetry.left_sick_cards(KEY, 1)
    telemetry.removed(KEY, "Evicted")
    return telemetry


def exposed(telemetry: Telemetry) -> dict[str, tuple[str, frozenset[str]]]:
    """Name, type and labels of every metric in the exposition."""
    found = {}
    for family in telemetry.registry.collect():
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = frozenset(label for sample in family.samples for label in sample.labels) - {"le"}
        found[name] = (family.type, labels)
    return found


def test_every_metric_stands_in_the_document_and_the_other_way_round() -> None:
    written = {
        name: (kind, frozenset(labels.split(",")) if labels else frozenset[str]())
        for name, labels, kind in ROW.findall(DOCUMENT.read_text())
    }
    assert exposed(full()) == written


def test_the_series_of_a_resource_go_with_it() -> None:
    telemetry = full()
    assert 'imageedit_deployment="edit"' in telemetry.render().decode()
    telemetry.forget(KEY)
    telemetry.forget(KEY)  # a second time does no harm
    assert 'imageedit_deployment="edit"' not in telemetry.render().decode()


def value(telemetry: Telemetry, name: str) -> float | None:
    """The value of a series of the resource."""
    return telemetry.registry.get_sample_value(name, {"imageedit_namespace": "team", "imageedit_deployment": "edit"})


def test_unknown_cards_leave_no_number_behind() -> None:
    telemetry = full()
    assert value(telemetry, "imageedit_operator_free_cards") == 4
    telemetry.cards_seen(KEY, None)
    assert value(telemetry, "imageedit_operator_free_cards") is None
    assert value(telemetry, "imageedit_operator_free_cards_known") == 0


def test_a_missing_sample_leaves_no_age_behind() -> None:
    telemetry = full()
    telemetry.sample_seen(KEY, None)
    assert value(telemetry, "imageedit_operator_queue_sample_age_seconds") is None
    assert value(telemetry, "imageedit_operator_queue_sample_known") == 0


def test_a_resource_that_no_longer_scales_has_no_sample() -> None:
    telemetry = full()
    telemetry.forget_sample(KEY)
    assert value(telemetry, "imageedit_operator_queue_sample_known") is None


def test_an_empty_status_counts_nothing() -> None:
    telemetry = Telemetry()
    telemetry.status_seen(KEY, {})
    assert value(telemetry, "imageedit_operator_desired_replicas") == 0
