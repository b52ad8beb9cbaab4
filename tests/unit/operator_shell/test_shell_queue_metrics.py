"""Prometheus's answers as a queue sample: known with its age, or unknown with one reason."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import QueueSample
from imageedit_operator.queue_metrics import RUNNING, WAITING, Series, combine, query, read_queue
from unit.operator_shell.loopback import answering

NOW = 1000.0


def both(ip: str, waiting: float, running: float, **labels: str) -> list[Series]:
    """The two series of one pod."""
    labels = {"instance": f"{ip}:8080", **labels}
    return [
        Series(labels={"__name__": WAITING, **labels}, at=NOW, value=waiting),
        Series(labels={"__name__": RUNNING, **labels}, at=NOW, value=running),
    ]


def scraped(ip: str, age_s: float) -> Series:
    """When a pod was scraped."""
    return Series(labels={"instance": f"{ip}:8080"}, at=NOW, value=NOW - age_s)


def known(answer: Known[QueueSample] | Unknown) -> tuple[float, float, int, float]:
    """Waiting, running, pods and age of a known sample."""
    assert isinstance(answer, Known), answer
    return answer.value.waiting, answer.value.running, answer.value.pods, answer.age_s


def unknown(answer: object) -> str:
    """The reason why something is unknown."""
    assert isinstance(answer, Unknown), answer
    return answer.reason


def test_the_sample_is_the_sum_over_pods_and_as_old_as_its_oldest_scrape() -> None:
    values = both("10.0.0.1", 3, 1) + both("10.0.0.2", 2, 0)
    times = [scraped("10.0.0.1", 4), scraped("10.0.0.2", 9)]
    assert known(combine(values, times, live_ips=frozenset({"10.0.0.1", "10.0.0.2"}))) == (5, 1, 2, 9)


def test_a_dead_pod_that_prometheus_still_remembers_does_not_count() -> None:
    values = both("10.0.0.1", 3, 1) + both("10.0.0.9", 40, 1)
    times = [scraped("10.0.0.1", 4), scraped("10.0.0.9", 29)]
    assert known(combine(values, times, live_ips=frozenset({"10.0.0.1"}))) == (3, 1, 1, 4)


def test_relabelled_instances_count_all() -> None:
    values, times = both("pod-a", 3, 1) + both("pod-b", 4, 0), [scraped("pod-a", 1), scraped("pod-b", 2)]
    assert known(combine(values, times, live_ips=frozenset({"10.0.0.1"}))) == (7, 1, 2, 2)


def test_an_address_of_version_six_is_recognised() -> None:
    values, times = (
        both("[fd00::1]", 3, 1) + both("[fd00::9]", 4, 0),
        [scraped("[fd00::1]", 1), scraped("[fd00::9]", 2)],
    )
    assert known(combine(values, times, live_ips=frozenset({"fd00::1"}))) == (3, 1, 1, 1)


def test_no_series_is_a_reason_of_its_own_that_says_what_to_check() -> None:
    answer = combine([], [], live_ips=frozenset())
    assert unknown(answer) == "NoSeries"
    assert isinstance(answer, Unknown)
    assert "PodMonitor" in answer.message
    assert "annotations" in answer.message


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 1e9])
def test_a_number_that_cannot_be_a_queue_makes_the_sample_unknown(value: float) -> None:
    values = both("10.0.0.1", value, 1) + both("10.0.0.2", 2, 0)
    assert unknown(combine(values, [scraped("10.0.0.1", 1)], live_ips=frozenset())) == "InvalidValue"


def test_the_words_about_an_invalid_value_do_not_change_with_it() -> None:
    answers = {str(combine(both("10.0.0.1", -value, 0), [], live_ips=frozenset())) for value in (1.0, 2.0)}
    assert len(answers) == 1


def test_a_pod_with_half_of_its_series_does_not_count() -> None:
    values, times = (
        both("10.0.0.1", 3, 1) + both("10.0.0.2", 2, 0)[:1],
        [scraped("10.0.0.1", 1), scraped("10.0.0.2", 1)],
    )
    assert known(combine(values, times, live_ips=frozenset())) == (3, 1, 1, 1)


def test_only_halves_are_no_series() -> None:
    assert unknown(combine(both("10.0.0.1", 3, 1)[:1], [scraped("10.0.0.1", 1)], live_ips=frozenset())) == "NoSeries"


def test_an_age_is_never_negative() -> None:
    assert known(combine(both("10.0.0.1", 0, 0), [scraped("10.0.0.1", -3)], live_ips=frozenset()))[3] == 0.0


def vector(*entries: tuple[dict[str, str], str]) -> dict[str, Any]:
    """A successful answer of Prometheus."""
    result = [{"metric": labels, "value": [NOW, value]} for labels, value in entries]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


async def test_the_two_queries_select_by_the_labels_that_the_pods_set() -> None:
    seen: list[str] = []

    async def prometheus(request: web.Request) -> web.Response:
        assert request.path == "/prefix/api/v1/query"
        seen.append(request.query["query"])
        pod = {"instance": "10.0.0.1:8080"}
        if seen[-1].startswith("timestamp"):
            return web.json_response(vector((pod, str(NOW - 7))))
        return web.json_response(vector(({**pod, "__name__": WAITING}, "2"), ({**pod, "__name__": RUNNING}, "1")))

    async with answering(prometheus) as (http, port):
        address = f"http://127.0.0.1:{port}/prefix/"
        answer = await read_queue(http, address=address, namespace="team", deployment="edit")
    assert known(answer) == (2, 1, 1, 7)
    labels = 'imageedit_namespace="team",imageedit_deployment="edit"'
    assert seen == [
        f'{{__name__=~"{WAITING}|{RUNNING}",{labels}}}',
        f"timestamp({WAITING}{{{labels}}})",
    ]


def fixed(body: str, status: int = 200) -> Callable[[web.Request], Awaitable[web.Response]]:
    """A server that always says the same."""

    async def handler(_: web.Request) -> web.Response:
        return web.Response(text=body, status=status)

    return handler


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("", 200),
        ("<html>login</html>", 200),
        ("[]", 200),
        ("null", 200),
        ("{}", 200),
        (json.dumps({"status": "error", "errorType": "bad_data", "error": "parse error"}), 400),
        (json.dumps({"status": "success", "data": {"resultType": "matrix", "result": []}}), 200),
        (json.dumps(vector(({}, "many"))), 200),
        (
            json.dumps(
                {"status": "success", "data": {"resultType": "vector", "result": [{"metric": {}, "value": []}]}}
            ),
            200,
        ),
        ("[" * 200_000, 200),
        ("bad gateway", 502),
    ],
)
async def test_anything_but_a_vector_is_a_bad_answer(body: str, status: int) -> None:
    async with answering(fixed(body, status)) as (http, port):
        assert unknown(await query(http, f"http://127.0.0.1:{port}", "up")) == "BadAnswer"


async def test_prometheus_own_words_reach_the_user() -> None:
    body = json.dumps({"status": "error", "errorType": "bad_data", "error": "parse error at 1"})
    async with answering(fixed(body, 400)) as (http, port):
        answer = await query(http, f"http://127.0.0.1:{port}", "up")
    assert isinstance(answer, Unknown)
    assert "bad_data: parse error at 1" in answer.message


async def test_an_answer_without_end_is_a_bad_answer() -> None:
    async with answering(fixed("[" + "1," * 1000)) as (http, port):
        assert unknown(await query(http, f"http://127.0.0.1:{port}", "up", longest_bytes=1000)) == "BadAnswer"


async def test_a_closed_port_is_unreachable() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound and not listening: nobody else can take it
        async with answering(fixed("")) as (http, _):
            answer = await query(http, f"http://127.0.0.1:{held.getsockname()[1]}", "up")
    assert unknown(answer) == "PrometheusUnreachable"


async def test_words_about_a_closed_port_do_not_change_with_the_address_that_a_name_has() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        async with answering(fixed("")) as (http, _):
            answer = await query(http, f"http://localhost:{port}", "up")
    assert isinstance(answer, Unknown)
    assert f"localhost:{port}" in answer.message
    assert "Connect call failed" in answer.message
    assert not any(address in answer.message for address in ("127.0.0.1", "::1"))


async def test_silence_is_unreachable() -> None:
    released = asyncio.Event()

    async def silent(_: web.Request) -> web.Response:
        await released.wait()
        return web.Response()

    async with answering(silent) as (http, port):
        answer = await query(http, f"http://127.0.0.1:{port}", "up", timeout_s=0.05)
        released.set()
    assert unknown(answer) == "PrometheusUnreachable"
    assert isinstance(answer, Unknown)
    assert "no answer within 0.05 s; check spec.autoscaling.metrics.prometheus.address" in answer.message


async def test_an_address_that_is_none_is_unreachable() -> None:
    async with answering(fixed("")) as (http, _):
        assert unknown(await query(http, "http://[", "up")) in {"PrometheusUnreachable", "BadAnswer"}
