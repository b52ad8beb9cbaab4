"""The number of pods that the queue asks for."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import QueueSample
from imageedit_operator.core.resource import Autoscaling
from imageedit_operator.core.scaling import Decision, Memory, decide, window

NOW = 10_000.0
SPEC = Autoscaling(
    min_replicas=1,
    max_replicas=8,
    target_per_replica=2,
    prometheus_address="http://prometheus:9090",
    max_age_s=60.0,
    hold_s=300.0,
)
FULL = Memory(good_since=NOW - 1000, last_good=NOW - 5)
"""A window of good data in which nothing was wanted."""

NO_SERIES = Unknown(reason="NoSeries", message="Prometheus has no series for this deployment")


def sample(total: float, *, pods: int = 8, age_s: float = 1.0) -> Known[QueueSample]:
    return Known(value=QueueSample(waiting=total, running=0.0, pods=pods), age_s=age_s)


def decided(
    data: Known[QueueSample] | Unknown,
    *,
    current: int = 2,
    memory: Memory = FULL,
    warm_pods: int = 2,
    card_limit: int | None = None,
    spec: Autoscaling = SPEC,
) -> Decision:
    decision, _ = decide(memory, data, spec, current=current, warm_pods=warm_pods, card_limit=card_limit, now=NOW)
    return decision


@pytest.mark.parametrize(
    ("total", "wanted"), [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (16, 8), (17, 8), (1000, 8)]
)
def test_want_is_requests_over_target_rounded_up_within_bounds(total: float, wanted: int) -> None:
    assert decided(sample(total), current=1, warm_pods=0).desired == wanted


def test_running_requests_count() -> None:
    data = Known(value=QueueSample(waiting=1.0, running=4.0, pods=2))
    assert decided(data).desired == 3


def test_up_is_at_once_without_any_history() -> None:
    assert decided(sample(10), memory=Memory()).desired == 5


def test_scale_down_waits_for_a_full_window() -> None:
    young = Memory(good_since=NOW - 299, last_good=NOW - 5)
    assert decided(sample(0), memory=young).desired == 2
    assert decided(sample(0), memory=young).reason == "HoldWindow"
    old = Memory(good_since=NOW - 300, last_good=NOW - 5)
    assert decided(sample(0), memory=old).desired == 1


def test_scale_down_goes_to_the_most_that_was_wanted_in_the_window() -> None:
    memory = Memory(wants=((NOW - 200, 3),), good_since=NOW - 1000, last_good=NOW - 5)
    assert decided(sample(0), current=5, memory=memory).desired == 3


def test_a_want_before_the_window_is_forgotten() -> None:
    memory = Memory(wants=((NOW - 301, 3),), good_since=NOW - 1000, last_good=NOW - 5)
    assert decided(sample(0), current=5, memory=memory).desired == 1


def test_a_gap_longer_than_max_age_begins_the_window_anew() -> None:
    memory = Memory(good_since=NOW - 1000, last_good=NOW - 61)
    assert decided(sample(0), memory=memory).desired == 2


BAD = [
    (NO_SERIES, "NoSeries"),
    (Unknown(reason="PrometheusUnreachable", message="refused"), "PrometheusUnreachable"),
    (sample(math.nan), "InvalidValue"),
    (sample(math.inf), "InvalidValue"),
    (sample(-1.0), "InvalidValue"),
    (sample(1e9), "InvalidValue"),
    (sample(20, pods=-1), "InvalidValue"),
    (sample(20, age_s=61.0), "Stale"),
    (sample(0, age_s=61.0), "Stale"),
    (sample(0, age_s=math.nan), "Stale"),
]


@pytest.mark.parametrize(("data", "reason"), BAD)
def test_doubtful_data_holds(data: Known[QueueSample] | Unknown, reason: str) -> None:
    found = decided(data, current=3)
    assert (found.desired, found.reason, found.metrics_ok, found.active) == (3, reason, False, False)


def test_doubtful_data_is_not_remembered_as_good() -> None:
    _, memory = decide(FULL, NO_SERIES, SPEC, current=2, warm_pods=2, card_limit=None, now=NOW)
    assert memory == FULL


def test_partial_data_may_grow_and_never_shrink() -> None:
    assert decided(sample(0, pods=1), warm_pods=2).desired == 2
    assert decided(sample(0, pods=1), warm_pods=2).reason == "PartialData"
    assert decided(sample(10, pods=1), warm_pods=2).desired == 5


def test_partial_data_is_no_part_of_the_window() -> None:
    _, memory = decide(FULL, sample(0, pods=1), SPEC, current=2, warm_pods=2, card_limit=None, now=NOW)
    assert memory.last_good == FULL.last_good


def test_cards_limit_growth_and_say_so() -> None:
    found = decided(sample(16), card_limit=3)
    assert (found.desired, found.reason, found.limited) == (3, "CardsExhausted", True)


def test_vanished_cards_remove_nothing() -> None:
    assert decided(sample(16), current=4, card_limit=0).desired == 4


def test_unknown_cards_do_not_limit() -> None:
    assert decided(sample(16), card_limit=None).desired == 8


def test_the_maximum_is_a_reason() -> None:
    assert decided(sample(100), card_limit=100).reason == "AtMaximum"
    assert decided(sample(100), current=8).reason == "AtMaximum"


@pytest.mark.parametrize(("current", "expected"), [(0, 2), (1, 2), (3, 3), (9, 4)])
def test_bounds_hold_even_without_data(current: int, expected: int) -> None:
    spec = Autoscaling(
        min_replicas=2, max_replicas=4, target_per_replica=2, prometheus_address="", max_age_s=60, hold_s=300
    )
    assert decided(NO_SERIES, current=current, spec=spec).desired == expected


numbers = st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.floats(min_value=0, max_value=50), st.just(0.0))
samples = st.one_of(
    st.just(NO_SERIES),
    st.builds(
        lambda waiting, running, pods, age: Known(
            value=QueueSample(waiting=waiting, running=running, pods=pods), age_s=age
        ),
        numbers,
        numbers,
        st.integers(min_value=-1, max_value=10),
        st.floats(min_value=-5, max_value=200),
    ),
)
walks = st.lists(st.tuples(samples, st.floats(min_value=0.5, max_value=120)), max_size=40)


@given(walk=walks, card_limit=st.one_of(st.none(), st.integers(min_value=0, max_value=10)))
def test_on_any_data_the_number_stays_in_bounds_and_falls_only_on_good_data(
    walk: list[tuple[Known[QueueSample] | Unknown, float]], card_limit: int | None
) -> None:
    memory, now, current, warm = Memory(), NOW, 3, 3
    for data, step_s in walk:
        now += step_s
        decision, memory = decide(memory, data, SPEC, current=current, warm_pods=warm, card_limit=card_limit, now=now)
        assert SPEC.min_replicas <= decision.desired <= SPEC.max_replicas
        if decision.desired < current:
            assert decision.metrics_ok
            assert isinstance(data, Known)
            assert data.value.pods >= warm
            assert now - NOW >= SPEC.hold_s
        if decision.desired > current and card_limit is not None:
            assert decision.desired <= card_limit
        current = decision.desired


@given(
    st.lists(
        st.tuples(st.integers(min_value=0, max_value=20), st.floats(min_value=0, max_value=90)), min_size=1, max_size=60
    )
)
def test_the_window_knows_the_true_maximum_in_little_memory(wants: list[tuple[int, float]]) -> None:
    memory, now, history = Memory(), NOW, list[tuple[float, int]]()
    for want, step_s in wants:
        now += step_s
        history.append((now, want))
        memory = window.remember(memory, want, now=now, hold_s=300.0)
    assert window.largest(memory) == max(want for at, want in history if now - 300.0 <= at)
    assert len(memory.wants) <= 21


@given(st.floats(min_value=0, max_value=100), st.floats(min_value=0, max_value=100))
def test_more_requests_never_want_fewer_pods(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert decided(sample(low), current=1).desired <= decided(sample(high), current=1).desired


@pytest.mark.parametrize(
    ("current", "total", "said"),
    [
        (9, 0, ("0 requests at 2 a pod ask for 0; maxReplicas allows 8", "no 300 s of good data yet")),
        (0, 0, ("0 requests at 2 a pod ask for 0; minReplicas asks for 1",)),
        (1, 0, ("0 requests at 2 a pod ask for 0",)),
        (9, 100, ("100 requests at 2 a pod ask for 50", "maxReplicas allows 8")),
    ],
)
def test_a_bound_that_moves_the_number_is_named_once(current: int, total: int, said: tuple[str, ...]) -> None:
    assert decided(sample(total), current=current, memory=Memory()).reasons == said
