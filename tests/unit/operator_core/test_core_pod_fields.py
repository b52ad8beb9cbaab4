"""Fields of the pod under `spec.server`: what is read, refused and written."""

from __future__ import annotations

from typing import Any

import pytest

from imageedit_operator.core import manifests
from imageedit_operator.core.fields import InvalidResource
from imageedit_operator.core.pod_fields import PodFields, parse_pod_fields
from unit.operator_core.builders import CARD, resource

MOUNT = {"name": "a", "mountPath": "/data"}
EMPTY = {"name": "a", "emptyDir": {}}


def pod(*, accelerator: dict[str, Any] | None = None, **server: Any) -> dict[str, Any]:
    whole = resource(server={"image": "i", **server}, accelerator=accelerator or {})
    found: dict[str, Any] = manifests.deployment(whole, "abc")["spec"]["template"]["spec"]
    return found


def test_nothing_given_is_nothing_added() -> None:
    assert parse_pod_fields({}) == PodFields()
    assert PodFields().manifest() == {}


def test_amounts_stand_beside_the_card() -> None:
    made = pod(resources={"requests": {"cpu": 8, "memory": "64Gi"}, "limits": {"memory": "96Gi"}})
    assert made["containers"][0]["resources"] == {
        "requests": {"cpu": "8", "memory": "64Gi", CARD: "1"},
        "limits": {"memory": "96Gi", CARD: "1"},
    }


def test_amounts_without_a_card_stand_alone() -> None:
    made = pod(resources={"requests": {"cpu": "500m"}}, accelerator={"device": "cpu", "resourceName": ""})
    assert made["containers"][0]["resources"] == {"requests": {"cpu": "500m"}}


def test_variables_follow_the_operators_own_in_their_order() -> None:
    given = [
        {"name": "B", "value": "$(IMAGEEDIT_POD)"},
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ]
    env = pod(env=given)["containers"][0]["env"]
    assert env[-2:] == given
    assert env[0]["name"] == "IMAGEEDIT_DEPLOYMENT"


def test_the_number_of_threads_can_be_chosen() -> None:
    made = pod(env=[{"name": "OMP_NUM_THREADS", "value": "8"}], accelerator={"device": "cpu"})
    found = [item["value"] for item in made["containers"][0]["env"] if item["name"] == "OMP_NUM_THREADS"]
    assert found == ["8"]


def test_volumes_are_mounted_where_the_user_says() -> None:
    made = pod(volumes=[EMPTY], volumeMounts=[MOUNT])
    assert EMPTY in made["volumes"]
    assert MOUNT in made["containers"][0]["volumeMounts"]


def test_secrets_account_and_priority_reach_the_pod() -> None:
    made = pod(imagePullSecrets=[{"name": "regcred"}], serviceAccountName="edit", priorityClassName="high")
    assert made["imagePullSecrets"] == [{"name": "regcred"}]
    assert (made["serviceAccountName"], made["priorityClassName"]) == ("edit", "high")
    assert made["automountServiceAccountToken"] is False


def test_a_pod_without_these_fields_does_not_name_them() -> None:
    assert {"imagePullSecrets", "serviceAccountName", "priorityClassName"} & set(pod()) == set()


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ({"resources": {"limits": {CARD: 1}}}, "the card is asked for by spec.accelerator"),
        ({"env": "A=1"}, "spec.server.env: give a list of at most 64 objects"),
        ({"env": [{"name": "A-B", "value": ""}]}, "'A-B' must be letters, digits and _"),
        ({"env": [{"name": "ASCEND_VISIBLE_DEVICES", "value": "0"}]}, "ASCEND_VISIBLE_DEVICES is set by the operator"),
        ({"env": [{"name": "IMAGEEDIT_MODEL_DIR", "value": "/m"}]}, "IMAGEEDIT_MODEL_DIR is set by the operator"),
        ({"env": [{"name": "A"}]}, "give A exactly one of value and valueFrom"),
        ({"env": [{"name": "A", "value": "1"}] * 2}, "spec.server.env: A stands there twice"),
        ({"volumes": [{"name": "A_", "emptyDir": {}}]}, "'A_' must be lower-case"),
        ({"volumes": [{"name": "models", "emptyDir": {}}]}, "models is a name that the operator uses"),
        ({"volumes": [{"name": "ascend-x", "emptyDir": {}}]}, "ascend-x is a name that the operator uses"),
        ({"volumes": [{"name": "a"}]}, "give a exactly one of secret"),
        ({"volumes": [EMPTY, EMPTY]}, "spec.server.volumes: a stands there twice"),
        ({"volumeMounts": [MOUNT]}, "a is no volume of spec.server.volumes"),
        ({"volumes": [EMPTY], "volumeMounts": [{**MOUNT, "mountPath": "data"}]}, "must be absolute"),
        ({"volumes": [EMPTY], "volumeMounts": [{**MOUNT, "mountPath": "/tmp/x"}]}, "/tmp/x is the operator's"),
        ({"volumes": [EMPTY], "volumeMounts": [MOUNT, MOUNT]}, "/data stands there twice"),
        ({"imagePullSecrets": [{}]}, "spec.server.imagePullSecrets"),
        ({"serviceAccountName": ""}, "spec.server.serviceAccountName: is required"),
    ],
)
def test_what_the_schema_would_refuse_is_refused_here_too(server: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidResource) as caught:
        parse_pod_fields(server)
    assert words in str(caught.value)
