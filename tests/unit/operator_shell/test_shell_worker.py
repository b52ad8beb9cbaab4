"""How a worker answers each end of a pass."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS, Resource
from unit.operator_shell.builders import (
    MemoryKube,
    custom_resource,
    with_resource,
)
from unit.operator_shell.passes import (
    KEY,
    SERVICE,
    FixedPlan,
    begun,
    metric,
    reconciler,
    worked,
    worker,
)
from unit.operator_shell.virtual_time import run_virtual


def test_a_pass_that_runs_is_seen_with_its_age_until_it_ends() -> None:
    class Slow(MemoryKube):
        async def get(self, resource: Resource, namespace: str, name: str) -> Manifest:
            await asyncio.sleep(40.0)
            return await super().get(resource, namespace, name)

    async def main() -> tuple[float, float]:
        async with aiohttp.ClientSession() as http:
            subject = reconciler(Slow(), FixedPlan(), http)
            slow = worker(subject)
            subject.queue.add(KEY)
            working = asyncio.create_task(slow.work())
            await asyncio.sleep(25.0)
            during = slow.longest_pass_s()
            await asyncio.sleep(25.0)
            after = slow.longest_pass_s()
            subject.queue.close()
            await working
            return during, after

    assert run_virtual(main) == (25.0, 0.0)


def test_a_worker_looks_again_when_the_plan_asks_for_it() -> None:
    planner = FixedPlan(again_s=30.0)
    worked(with_resource(), planner, for_s=100.0)
    assert len(planner.memories) == 4  # at 0, 30, 60 and 90 s


@pytest.mark.parametrize(("random", "passes_seen"), [(0.0, 2), (0.99, 1)])
def test_long_waits_are_spread(random: float, passes_seen: int) -> None:
    planner = FixedPlan(again_s=1200.0)
    worked(with_resource(), planner, for_s=1100.0, random=random)
    assert len(planner.memories) == passes_seen


def test_errors_back_off_and_are_counted() -> None:
    kube = with_resource(status=begun())
    kube.refuse["list pods"] = ApiError(status=500, reason="InternalError", message="etcd")
    subject = worked(kube, FixedPlan(), for_s=10.0)
    assert metric(subject, 'imageedit_operator_reconcile_total{result="error"} 5.0')  # at 0, 0.5, 1.5, 3.5 and 7.5 s


def test_an_error_waits_as_long_as_the_apiserver_asked() -> None:
    kube = with_resource(status=begun())
    kube.refuse["list pods"] = ApiError(status=429, reason="TooManyRequests", message="later", retry_after_s=8.0)
    subject = worked(kube, FixedPlan(), for_s=10.0)
    assert metric(subject, 'imageedit_operator_reconcile_total{result="error"} 2.0')


def test_a_defect_ends_the_pass_and_not_the_worker() -> None:
    subject = worked(with_resource(), FixedPlan(fails_with=ZeroDivisionError()), for_s=1.0)
    assert metric(subject, 'imageedit_operator_reconcile_total{result="error"} 2.0')


class SilentKube(MemoryKube):
    """An apiserver that never answers a list of pods."""

    async def list_all(self, resource: Any, namespace: str = "", *, labels: str = "") -> list[dict[str, Any]]:
        if resource.plural == "pods":
            await asyncio.sleep(1e9)
        return await super().list_all(resource, namespace, labels=labels)


def test_a_pass_that_takes_too_long_is_ended_and_backs_off() -> None:
    kube = SilentKube()
    kube.put(IMAGE_EDIT_DEPLOYMENTS, custom_resource(status=begun()))
    subject = worked(kube, FixedPlan(), for_s=7.0, timeout_s=5.0)
    assert metric(subject, 'imageedit_operator_reconcile_total{result="timeout"} 2.0')  # from 0 and from 5.5 s on


def test_a_refused_write_is_told_to_the_user_by_an_event_and_by_conditions() -> None:
    kube = with_resource()
    kube.refuse["apply"] = ApiError(status=403, reason="Forbidden", message="exceeded quota: services")
    subject = worked(kube, FixedPlan(actions=(SERVICE,)), for_s=0.1)
    assert metric(subject, 'imageedit_operator_reconcile_total{result="error"} 1.0')
    event, status = kube.bodies[-2:]
    assert (event["reason"], event["type"], event["note"]) == ("WriteRefused", "Warning", "exceeded quota: services")
    said = {item["type"]: (item["status"], item["reason"], item["message"]) for item in status["status"]["conditions"]}
    assert said["Progressing"] == said["Ready"]
    assert said["Ready"][:2] == ("False", "WriteRefused")
    assert said["Ready"][2].startswith("exceeded quota: services; ")


def test_a_refusal_that_lasts_is_written_once() -> None:
    kube = with_resource()
    kube.refuse["apply"] = ApiError(status=422, reason="Invalid", message="limit below request")
    worked(kube, FixedPlan(actions=(SERVICE,)), for_s=30.0)
    assert kube.writes().count(("patch", "imageeditdeployments", "edit")) == 1


@pytest.mark.parametrize("status", [0, 429, 500])
def test_an_apiserver_that_does_not_answer_is_no_refusal(status: int) -> None:
    kube = with_resource()
    kube.refuse["apply"] = ApiError(status=status, reason="Trouble", message="later")
    worked(kube, FixedPlan(actions=(SERVICE,)), for_s=0.1)
    assert kube.bodies == []


def test_a_key_that_is_invalid_waits_for_an_event() -> None:
    subject = worked(with_resource(replicas=-1), FixedPlan(), for_s=500.0)
    assert metric(subject, 'imageedit_operator_reconcile_total{result="invalid"} 1.0')
