"""Who wrote which field, read as the apiserver records it."""

from __future__ import annotations

from typing import Any

import pytest

from imageedit_operator.core.managed_fields import scaled_by


def entry(manager: str, fields: Any, **more: Any) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "time": "2026-11-30T03:00:00Z", "fieldsV1": fields, **more}


REPLICAS: dict[str, Any] = {"f:spec": {"f:replicas": {}}}


@pytest.mark.parametrize(
    ("entries", "manager"),
    [
        ([], ""),
        ([entry("kubectl", REPLICAS)], ""),
        ([entry("kubectl", REPLICAS, subresource="scale")], "kubectl"),
        ([entry("x", {"f:status": {"f:replicas": {}}}, subresource="status")], ""),
        (
            [
                entry("kube-controller-manager", REPLICAS, subresource="scale", time="2026-11-30T04:00:00Z"),
                entry("kubectl", REPLICAS, subresource="scale"),
            ],
            "kube-controller-manager",
        ),
    ],
)
def test_the_writer_of_replicas_is_whoever_used_the_scale_subresource_last(entries: Any, manager: str) -> None:
    assert scaled_by({"managedFields": entries}) == manager


def test_an_object_without_managed_fields_has_no_writer() -> None:
    assert scaled_by({}) == ""
