"""The queue of one resource as Prometheus saw it last.

Two instant queries, so that every number is a pod's **last** scrape: an average or a maximum over a
window would keep counting a pod that died for as long as the window lasts. An instant query still
returns a vanished pod for up to two scrape intervals, until Prometheus marks its series stale;
series whose `instance` is none of the pods that live now are therefore left out, unless no series
matches at all (then `instance` was relabelled to something else, and staleness has to do).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import QueueSample
from imageedit_operator.http_reading import read_bounded

WAITING = "imageedit_waiting_requests"
RUNNING = "imageedit_running_requests"
ABSURD_REQUESTS = 1e6
TIMEOUT_S = 5.0
_ADDRESS = re.compile(r" \('[0-9A-Fa-f.:%\w]+', \d+(?:, \d+)*\)")
"""One name may have several, and which was tried last would rewrite the status at every look."""
LONGEST_ANSWER_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """One element of an instant vector."""

    labels: Mapping[str, str]
    at: float
    """Prometheus's own time of the evaluation."""
    value: float


async def read_queue(
    http: aiohttp.ClientSession,
    *,
    address: str,
    namespace: str,
    deployment: str,
    live_ips: frozenset[str] = frozenset(),
) -> Known[QueueSample] | Unknown:
    """Waiting and running requests over the pods of one resource; never raises."""
    labels = f'imageedit_namespace="{_escape(namespace)}",imageedit_deployment="{_escape(deployment)}"'
    values = await query(http, address, f'{{__name__=~"{WAITING}|{RUNNING}",{labels}}}')
    if isinstance(values, Unknown):
        return values
    # A query of its own, because the value of an instant vector carries the time of the evaluation, not of the sample.
    times = await query(http, address, f"timestamp({WAITING}{{{labels}}})")
    if isinstance(times, Unknown):
        return times
    return combine(values, times, live_ips=live_ips)


def combine(
    values: Sequence[Series], times: Sequence[Series], *, live_ips: frozenset[str]
) -> Known[QueueSample] | Unknown:
    """The sum over the pods that have both metrics, as old as the oldest sample in it."""
    if not values:
        return Unknown(
            reason="NoSeries",
            message="Prometheus has no series for this deployment: check that it scrapes the server pods "
            "(a PodMonitor, or the prometheus.io annotations) and that pods are running",
        )
    bad = [series for series in values if not _plausible(series.value)]
    if bad:
        pod = bad[0].labels.get("instance", "?")
        # Without the value, which changes with each scrape and would be written to the status each time.
        message = (
            f"{bad[0].labels.get('__name__')} of {pod} is not a number of requests: "
            "do rules or relabelling change the series?"
        )
        return Unknown(reason="InvalidValue", message=message)
    waiting = {_identity(series): series.value for series in values if series.labels.get("__name__") == WAITING}
    running = {_identity(series): series.value for series in values if series.labels.get("__name__") == RUNNING}
    sampled = {_identity(series): series for series in times}
    complete = [identity for identity in waiting if identity in running and identity in sampled]
    needed = [identity for identity in complete if _ip(dict(identity)) in live_ips] or complete
    if not needed:
        return Unknown(
            reason="NoSeries", message=f"no pod has both {WAITING} and {RUNNING}: scraped between two starts?"
        )
    age_s = max(sampled[identity].at - sampled[identity].value for identity in needed)
    sample = QueueSample(
        waiting=sum(waiting[identity] for identity in needed),
        running=sum(running[identity] for identity in needed),
        pods=len(needed),
    )
    return Known(value=sample, age_s=max(0.0, age_s))


async def query(
    http: aiohttp.ClientSession,
    address: str,
    promql: str,
    *,
    timeout_s: float = TIMEOUT_S,
    longest_bytes: int = LONGEST_ANSWER_BYTES,
) -> tuple[Series, ...] | Unknown:
    """One instant query; Unknown says why there is no answer."""
    url = address.rstrip("/") + "/api/v1/query"
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    status = 0
    try:
        async with http.get(url, params={"query": promql}, timeout=timeout) as answer:
            status = answer.status
            return parse_vector(json.loads(await read_bounded(answer, longest_bytes)))
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        why = _ADDRESS.sub("", str(error)) or f"no answer within {timeout_s:g} s"
        advice = "check spec.autoscaling.metrics.prometheus.address, and that the operator's pod reaches it"
        return Unknown(reason="PrometheusUnreachable", message=f"{address} does not answer: {why}; {advice}")
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        return Unknown(
            reason="BadAnswer",
            message=f"{address} answered {status}, which is not a Prometheus vector ({error}); check the address",
        )


def parse_vector(answer: Any) -> tuple[Series, ...]:
    """The series of an instant vector; raises ValueError, KeyError or TypeError on anything else."""
    if answer["status"] != "success":
        raise ValueError(f"{answer.get('errorType')}: {answer.get('error')}")
    if answer["data"]["resultType"] != "vector":
        raise ValueError(f"resultType {answer['data']['resultType']}")
    return tuple(
        Series(labels=dict(entry["metric"]), at=float(entry["value"][0]), value=float(entry["value"][1]))
        for entry in answer["data"]["result"]
    )


def _plausible(value: float) -> bool:
    return math.isfinite(value) and 0.0 <= value <= ABSURD_REQUESTS


def _identity(series: Series) -> tuple[tuple[str, str], ...]:
    """The labels of the pod's target: what its two metrics have in common."""
    return tuple(sorted((name, value) for name, value in series.labels.items() if name != "__name__"))


def _ip(labels: Mapping[str, str]) -> str:
    return labels.get("instance", "").rpartition(":")[0].strip("[]")


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
