"""The pure part of the load test: percentiles, plateau, what an answer means, tables and charts."""

from __future__ import annotations

import io
import json
import math
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_server.loadtest import report
from imageedit_server.loadtest.chart import HEIGHT_PX, WIDTH_PX, shapes
from imageedit_server.loadtest.drawing import as_picture, as_svg
from imageedit_server.loadtest.http import Address
from imageedit_server.loadtest.outcomes import LONGEST_PAUSE_S, Fate, outcome
from imageedit_server.loadtest.statistics import Level, may_grow, percentile, plateau

latencies = st.lists(st.floats(min_value=0, max_value=1e6), min_size=1, max_size=50)
shares = st.floats(min_value=0, max_value=1)


def level(concurrency: int, throughput_per_s: float, *, latency_s: float = 1.0, refused: int = 0) -> Level:
    """A level of a hundred seconds."""
    count = round(100 * throughput_per_s)
    return Level(
        concurrency=concurrency,
        elapsed_s=100.0,
        latencies_s=[latency_s] * count,
        refused={"queue_full": refused} if refused else {},
    )


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 1.0), (0.05, 1.0), (0.5, 10.0), (0.51, 11.0), (0.95, 19.0), (0.99, 20.0), (1.0, 20.0)]
)
def test_a_percentile_is_the_nearest_rank(share: float, expected: float) -> None:
    assert percentile([float(number) for number in range(20, 0, -1)], share) == expected


@given(latencies, shares)
def test_a_percentile_is_a_value_that_at_least_its_share_does_not_exceed(values: list[float], share: float) -> None:
    found = percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= math.floor(share * len(values))


@given(latencies, shares, shares)
def test_a_larger_share_has_no_smaller_percentile(values: list[float], one: float, other: float) -> None:
    assert percentile(values, min(one, other)) <= percentile(values, max(one, other))


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([1.0], 1.5), ([1.0], -0.1)])
def test_a_percentile_of_nothing_or_beyond_the_ends_is_refused(values: list[float], share: float) -> None:
    with pytest.raises(ValueError, match="percentile"):
        percentile(values, share)


@pytest.mark.parametrize(
    ("throughputs", "at", "capacity"),
    [
        ({}, None, None),
        ({1: 0.0, 2: 0.0}, None, None),
        ({1: 1.0, 2: 2.0, 4: 4.0}, 4, 4.0),
        ({1: 1.0, 2: 1.9, 4: 2.0, 8: 2.0}, 2, 2.0),
        ({1: 1.0, 2: 1.89, 4: 2.0, 8: 2.0}, 4, 2.0),
        ({1: 2.0, 2: 2.0, 4: 1.0}, 1, 2.0),
    ],
)
def test_the_plateau_is_the_fewest_clients_with_nearly_the_best_throughput(
    throughputs: dict[int, float], at: int | None, capacity: float | None
) -> None:
    found = plateau([level(concurrency, per_s) for concurrency, per_s in throughputs.items()])
    assert (found.concurrency if found else None, found.capacity_per_s if found else None) == (at, capacity)


def test_a_plateau_at_the_most_clients_may_not_be_the_end() -> None:
    assert may_grow([level(1, 1.0), level(2, 2.0)])
    assert not may_grow([level(1, 1.0), level(2, 1.0)])
    assert "larger --concurrency" in report.verdict([level(1, 1.0), level(2, 2.0)])


@pytest.mark.parametrize(
    ("status", "code", "fate", "reason"),
    [
        (200, "", Fate.ANSWERED, ""),
        (429, "queue_full", Fate.REFUSED, "queue_full"),
        (429, "", Fate.REFUSED, "http 429"),
        (503, "draining", Fate.REFUSED, "draining"),
        (503, "worker_lost", Fate.FAILED, "worker_lost"),
        (500, "edit_failed", Fate.FAILED, "edit_failed"),
        (502, "", Fate.FAILED, "http 502"),
        (401, "invalid_api_key", Fate.FAILED, "invalid_api_key"),
    ],
)
def test_an_answer_is_a_picture_a_refusal_or_a_failure(status: int, code: str, fate: Fate, reason: str) -> None:
    body = json.dumps({"error": {"code": code, "message": "..."}}).encode() if code else b"<html>"
    found = outcome(status=status, headers={}, body=body, seconds=1.0)
    assert (found.fate, found.reason) == (fate, reason)


@pytest.mark.parametrize(("given_s", "pause_s"), [("0", 0.0), ("1", 1.0), ("30", LONGEST_PAUSE_S), ("soon", 1.0)])
def test_a_refused_client_waits_as_told_but_not_for_long(given_s: str, pause_s: float) -> None:
    assert outcome(status=429, headers={"retry-after": given_s}, body=b"", seconds=0.1).pause_s == pause_s


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://edits/v1/", "http://edits:80"),
        ("https://edits.example/team/v1", "https://edits.example:443/team"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_an_address_is_read_with_and_without_what_clients_add(url: str, shown: str) -> None:
    assert str(Address.parse(url)) == shown


@pytest.mark.parametrize("url", ["", "ftp://edits", "http://", "http://edits:port", "http://edits:99999"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        Address.parse(url)


def test_the_table_and_the_json_say_the_same() -> None:
    levels = [level(1, 1.0, latency_s=1.0), level(2, 1.0, latency_s=2.0, refused=3)]
    text, said = report.as_text(levels), report.as_json("http://edits:80", levels)
    assert "Plateau at 1 clients: 1 edits/s." in text
    assert "refused: 3 queue_full" in text
    assert said["plateau"] == {"concurrency": 1, "throughput_per_s": 1.0, "may_grow": False}
    assert said["capacity_per_s"] == 1.0
    assert json.loads(json.dumps(said)) == said


def test_a_sweep_without_an_answer_says_so_everywhere() -> None:
    levels = [Level(concurrency=1, elapsed_s=1.0, latencies_s=(), failed={"timeout": 2})]
    assert "no plateau" in report.as_text(levels)
    assert report.as_json("http://edits:80", levels)["capacity_per_s"] is None
    assert as_picture(shapes(levels, title="none")).size == (WIDTH_PX, HEIGHT_PX)


def test_the_chart_is_the_same_as_svg_and_as_picture() -> None:
    levels = [level(1, 1.0), level(2, 2.0, latency_s=3.0, refused=5), level(4, 2.0)]
    drawn = list(shapes(levels, title="a <service> & its plateau"))
    root = ElementTree.fromstring(as_svg(drawn))
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "a <service> & its plateau" in texts
    assert "plateau" in texts
    assert len(root.findall("{http://www.w3.org/2000/svg}polyline")) > 6
    file = io.BytesIO()
    as_picture(drawn).save(file, "PNG")
    assert file.getvalue().startswith(b"\x89PNG")


def test_every_point_of_a_chart_lies_on_the_paper() -> None:
    levels = [level(2**number, 7.3 * number, latency_s=0.013 * 9**number) for number in range(1, 7)]
    for shape in shapes(levels, title="t"):
        for x_px, y_px in getattr(shape, "points", ()):
            assert 0 <= x_px <= WIDTH_PX
            assert 0 <= y_px <= HEIGHT_PX
