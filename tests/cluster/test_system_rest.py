"""The operator at rest: it writes nothing but its Lease, and it is small."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from localcluster.cluster import Cluster
from support.containers import resident_bytes
from support.kubectl import Kubectl
from support.resources import Resource
from support.system import OPERATOR_NAMESPACE
from support.watching import container_id

REST_S = 120.0
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
MOST_MEMORY_BYTES = 120 * 1024 * 1024

pytestmark = pytest.mark.timeout(400)


def writes_of_the_operator(audit_log: Path, *, since_byte: int) -> list[dict[str, Any]]:
    """The apiserver's own record of what the operator's service account changed, its Lease apart."""
    with audit_log.open("rb") as file:
        file.seek(since_byte)
        events = [json.loads(line) for line in file if line.strip()]
    return [
        event
        for event in events
        if event["verb"] in WRITES
        and (event.get("objectRef") or {}).get("resource") != "leases"
        and event["user"]["username"].startswith(f"system:serviceaccount:{OPERATOR_NAMESPACE}:")
    ]


def test_the_operator_at_rest_writes_nothing_in_two_minutes_and_stays_small(
    cluster: Cluster, resource: Resource, other_resource: Resource, kubectl: Kubectl
) -> None:
    assert cluster.audit_log is not None
    metrics = {"prometheus": {"address": cluster.prometheus_url}}
    resource.create(autoscaling={"minReplicas": 1, "maxReplicas": 2, "metrics": metrics})
    other_resource.create(replicas=1)
    resource.wait_complete()
    other_resource.wait_complete()
    assert writes_of_the_operator(cluster.audit_log, since_byte=0), (
        "the audit log must show the operator's earlier writes"
    )
    time.sleep(20)  # the last status of the way up, a first sample of Prometheus
    start = cluster.audit_log.stat().st_size

    time.sleep(REST_S)

    written = writes_of_the_operator(cluster.audit_log, since_byte=start)
    assert written == []
    selector = "app.kubernetes.io/name=imageedit-operator"
    pods = kubectl.get("pods", "-n", OPERATOR_NAMESPACE, "-l", selector)["items"]
    assert pods
    assert max(resident_bytes(container_id(pod)) for pod in pods) < MOST_MEMORY_BYTES
