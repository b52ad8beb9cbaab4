"""Every panel of the shipped dashboard shows data from the real Prometheus while the service works."""

from __future__ import annotations

import asyncio
import math

import httpx
import pytest

from cluster.dashboard_queries import PanelQuery, panel_queries
from localcluster.cluster import Cluster
from support.kubectl import Kubectl
from support.resources import Resource
from support.system import RELEASE

pytestmark = pytest.mark.timeout(240)

DATA_S = 60.0


def values(address: str, query: PanelQuery) -> list[float]:
    """The present values of a query, one a series."""
    answer = httpx.get(f"{address}/api/v1/query", params={"query": query.expr}, trust_env=False)
    answer.raise_for_status()
    return [float(series["value"][1]) for series in answer.json()["data"]["result"]]


def test_every_panel_has_data_under_load(cluster: Cluster, resource: Resource) -> None:
    metrics = {"prometheus": {"address": cluster.prometheus_url}}
    resource.create(autoscaling={"minReplicas": 1, "maxReplicas": 2, "metrics": metrics, "hold": "10m"})
    resource.wait_complete()
    queries = panel_queries()
    assert len(queries) > 10

    def without_data() -> list[str]:
        return [
            str(query)
            for query in queries
            if not any(math.isfinite(value) for value in values(cluster.prometheus_url, query))
        ]

    async def load() -> None:
        async with resource.load(clients=4):
            await asyncio.to_thread(
                resource.wait_until, "data in every panel", lambda: not without_data(), timeout_s=DATA_S
            )

    try:
        asyncio.run(load())
    except TimeoutError:
        pytest.fail(f"panels without data under load: {without_data()}")


def test_the_chart_provides_the_dashboard_for_grafana_s_sidecar(installed: None, kubectl: Kubectl) -> None:
    found = kubectl.get("configmaps", "-A", "-l", "grafana_dashboard=1")["items"]

    assert any(RELEASE in item["metadata"]["name"] and item["data"] for item in found)
