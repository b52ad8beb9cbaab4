"""Queue-depth autoscaling from a real Prometheus, its missing data, cards that run out, and the dashboard's queries."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from localcluster.cluster import Cluster
from support.kubectl import condition, wait_for
from support.resources import Resource

pytestmark = pytest.mark.timeout(240)


def autoscaling(address: str, *, hold: str = "10m", maximum: int = 2) -> dict[str, Any]:
    """Between one and `maximum` replicas, two requests each."""
    return {
        "minReplicas": 1,
        "maxReplicas": maximum,
        "queueDepth": {"targetPerReplica": 2},
        "metrics": {"prometheus": {"address": address}, "maxAge": "30s"},
        "hold": hold,
    }


@pytest.fixture
def blind_prometheus(cluster: Cluster, tmp_path: Path) -> Iterator[str]:
    """A real Prometheus that scrapes nothing."""
    with socket.socket() as probe:
        probe.bind((cluster.node_address, 0))
        port = probe.getsockname()[1]
    (tmp_path / "prometheus.yml").write_text("scrape_configs: []\n")
    address = f"{cluster.node_address}:{port}"
    with subprocess.Popen(
        [
            "prometheus",
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address={address}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        wait_for("Prometheus", lambda: answers(f"http://{address}/-/ready"), timeout_s=20)
        yield f"http://{address}"
        process.terminate()


def answers(url: str) -> bool:
    """True when the URL answers 200."""
    try:
        return httpx.get(url, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def test_a_queue_scales_out_and_an_empty_one_scales_in_after_the_hold(cluster: Cluster, resource: Resource) -> None:
    resource.create(autoscaling=autoscaling(cluster.prometheus_url, hold="15s"))
    resource.wait_complete()
    assert resource.read()["status"]["desiredReplicas"] == 1

    async def load() -> None:
        async with resource.load(clients=6) as load:
            await asyncio.to_thread(resource.wait_until, "two ready", lambda: ready_and_desired(resource) == (2, 2))
        assert load.tally.lost_total == 0, load.tally

    asyncio.run(load())
    assert condition(resource.read(), "MetricsAvailable")["status"] == "True"
    assert "requests at 2 a pod" in " ".join(resource.read()["status"]["scaling"]["reasons"])

    resource.wait_until("one ready", lambda: ready_and_desired(resource) == (1, 1))


def test_no_series_is_a_reason_of_its_own_and_holds(blind_prometheus: str, resource: Resource) -> None:
    resource.create(autoscaling=autoscaling(blind_prometheus))

    missing = resource.wait_condition("MetricsAvailable", status="False", reason="NoSeries")

    resource.wait_complete()
    assert "scrap" in missing["message"]
    assert condition(resource.read(), "ScalingActive")["reason"] == "NoSeries"
    assert resource.read()["status"]["desiredReplicas"] == 1


def test_an_unreachable_prometheus_holds(cluster: Cluster, resource: Resource) -> None:
    resource.create(autoscaling=autoscaling(f"http://{cluster.node_address}:9"))

    resource.wait_condition("MetricsAvailable", status="False", reason="PrometheusUnreachable")

    resource.wait_complete()
    assert resource.read()["status"]["desiredReplicas"] == 1


def test_more_replicas_than_cards_wait_with_words_until_a_card_is_there(cluster: Cluster, resource: Resource) -> None:
    resource.create(replicas=3)

    waiting = resource.wait_condition("WaitingForCard", status="True")
    assert "huawei.com/Ascend910" in waiting["message"]
    resource.wait_until("two serve", lambda: resource.read()["status"].get("readyReplicas") == 2)

    cluster.set_cards(3)
    resource.wait_complete()
    assert condition(resource.read(), "WaitingForCard")["status"] == "False"


def test_a_sick_card_is_offered_no_more(cluster: Cluster, resource: Resource) -> None:
    cluster.set_card_health(1, healthy=False)
    try:
        resource.wait_allocatable(1)
        resource.create(replicas=2)
        resource.wait_condition("WaitingForCard", status="True")
    finally:
        cluster.set_card_health(1, healthy=True)
    resource.wait_complete()


def ready_and_desired(resource: Resource) -> tuple[int, int]:
    """Both numbers of the status."""
    status = resource.read().get("status", {})
    return int(status.get("readyReplicas", 0)), int(status.get("desiredReplicas", 0))
