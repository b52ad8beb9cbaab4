"""The device plugin's ConfigMap: what it calls sick, and nothing where it cannot be read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imageedit_operator.errors import ApiError
from imageedit_operator.kube.card_names import held_cards, names, unhealthy_cards
from imageedit_operator.kube.client import Manifest
from imageedit_operator.kube.device_book import ABSENT_S, FRESH_S, DeviceBook
from imageedit_operator.kube.device_info import OLDEST_S, parse
from imageedit_operator.kube.kinds import CONFIG_MAPS
from unit.operator_shell.builders import CARD, MemoryKube, pod

WALL = 1_796_007_600.0


def fault(code: str = "80E01801", level: str = "RestartNPU", **more: Any) -> dict[str, Any]:
    return {"fault_type": "CardUnhealthy", "npu_name": "Ascend910-1", "fault_level": level, "fault_code": code, **more}


def config_map(*, node: str = "node-1", updated: Any = WALL, **devices: Any) -> Manifest:
    """With the keys of DeviceList given without the resource name, `_` for `-`."""
    listed = {f"{CARD}-{key}": value if isinstance(value, str) else json.dumps(value) for key, value in devices.items()}
    body = {"DeviceInfo": {"DeviceList": listed, "UpdateTime": updated}, "CheckCode": "c"}
    return {
        "metadata": {"name": f"mindx-dl-deviceinfo-{node}", "namespace": "kube-system"},
        "data": {"DeviceInfoCfg": json.dumps(body)},
    }


def sick(**devices: Any) -> set[str]:
    return set(parse(config_map(**devices)).at(WALL).get(CARD, {}))


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ({"Unhealthy": "Ascend910-1,Ascend910-4"}, {"Ascend910-1", "Ascend910-4"}),
        ({"Unhealthy": "Ascend910-1", "Fault": [fault()]}, {"Ascend910-1"}),
        ({"Unhealthy": "Ascend910-1", "Fault": [fault("200001002", "SeparateNPU")]}, set()),
        ({"Unhealthy": "Ascend910-1", "Fault": [fault("200001002"), fault()]}, {"Ascend910-1"}),
        ({"Unhealthy": "Ascend910-1", "Fault": [fault("200001002,80E01801")]}, {"Ascend910-1"}),
        ({"Recovering": "Ascend910-2"}, {"Ascend910-2"}),
        ({"NetworkUnhealthy": "Ascend910-1"}, set()),
        ({"Fault": [fault(level="RestartBusiness")]}, {"Ascend910-1"}),
        ({"Fault": [fault(level="ManuallySeparateNPU")]}, {"Ascend910-1"}),
        ({"Fault": [fault(level="", fault_handling="SeparateNPU")]}, {"Ascend910-1"}),
        ({"Fault": [fault(level="RestartRequest")]}, set()),
        ({"Fault": [fault(level="NotHandleFault")]}, set()),
        ({"Fault": [fault("200001002", "RestartNPU")]}, set()),
        ({"Fault": [fault(fault_type="CardNetworkUnhealthy")]}, set()),
        (
            {"Fault": [fault(fault_type="PublicFault", npu_name="Ascend910-1,Ascend910-2")]},
            {"Ascend910-1", "Ascend910-2"},
        ),
        ({"Fault": [fault("", "", fault_time_and_level_map={"81": {"fault_level": "RestartNPU"}})]}, {"Ascend910-1"}),
        ({}, set()),
    ],
)
def test_a_card_is_sick_by_the_table(devices: dict[str, Any], expected: set[str]) -> None:
    assert sick(**devices) == expected


def test_the_reason_names_code_and_level_but_no_ignored_code() -> None:
    found = parse(config_map(Unhealthy="Ascend910-1", Fault=[fault(), fault("200001002")])).at(WALL)
    assert found == {CARD: {"Ascend910-1": "fault 80E01801 of level RestartNPU"}}


@pytest.mark.parametrize("age_s", [OLDEST_S + 1, -OLDEST_S - 1])
def test_what_a_plugin_that_is_gone_said_last_does_not_count(age_s: float) -> None:
    assert parse(config_map(Unhealthy="Ascend910-1")).at(WALL + age_s) == {}


@pytest.mark.parametrize("updated", [None, "1796007600", True, 0, -1, float("nan"), float("inf"), 10**400])
def test_without_a_time_that_can_be_read_nothing_counts(updated: Any) -> None:
    assert parse(config_map(updated=updated, Unhealthy="Ascend910-1")).at(WALL) == {}


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {"DeviceInfoCfg": None},
        {"DeviceInfoCfg": "{"},
        {"DeviceInfoCfg": "[" * 100_000},
        {"DeviceInfoCfg": "7"},
        {"DeviceInfoCfg": '{"DeviceInfo": []}'},
        {"DeviceInfoCfg": '{"DeviceInfo": {"UpdateTime": 1796007600, "DeviceList": "x"}}'},
        {"Other": "x"},
    ],
)
def test_a_broken_config_map_says_nothing(data: Any) -> None:
    assert parse({"data": data}).sick == {}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


@given(faults=json_values, unhealthy=json_values, updated=json_values)
def test_no_content_at_all_breaks_the_reader(faults: Any, unhealthy: Any, updated: Any) -> None:
    devices = {f"{CARD}-Fault": json.dumps(faults), f"{CARD}-Unhealthy": unhealthy}
    body = json.dumps({"DeviceInfo": {"DeviceList": devices, "UpdateTime": updated}})
    for cards in parse({"data": {"DeviceInfoCfg": body}}).sick.values():
        assert all(card and words for card, words in cards.items())


# --- whose card it is


def annotated(**annotations: str) -> Manifest:
    return pod(metadata={"annotations": {f"huawei.com/{key}": value for key, value in annotations.items()}})


def told(name: str = CARD, **health: str) -> list[dict[str, Any]]:
    resources = [{"resourceID": card.replace("_", "-"), "health": state} for card, state in health.items()]
    return [{"name": "server", "allocatedResourcesStatus": [{"name": name, "resources": resources}]}]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (pod(), ()),
        (annotated(AscendReal="Ascend910-3"), ("Ascend910-3",)),
        (annotated(AscendReal="Ascend910-4, Ascend910-3"), ("Ascend910-3", "Ascend910-4")),
        (annotated(AscendReal="", kltDev="Ascend910-5"), ("Ascend910-5",)),
        (annotated(AscendReal="Ascend910-3", kltDev="Ascend910-5"), ("Ascend910-3",)),
        (annotated(AscendReal="{}; rm -rf,,Ascend910-1"), ("Ascend910-1",)),
        (pod(containerStatuses=told(Ascend910_7="Healthy")), ("Ascend910-7",)),
        (pod(containerStatuses=told("claim:card/npu", Ascend910_7="Healthy")), ()),
    ],
)
def test_a_pods_cards_are_those_that_the_first_who_says_names(raw: Manifest, expected: tuple[str, ...]) -> None:
    assert held_cards(raw) == expected


def test_only_unhealthy_is_unhealthy() -> None:
    raw = pod(containerStatuses=told(a_1="Unhealthy", a_2="Unknown", a_3="Healthy"))
    assert unhealthy_cards(raw) == ("a-1",)


@given(text=st.none() | st.integers() | st.text())
def test_a_list_of_cards_has_only_names(text: Any) -> None:
    assert all(name and "," not in name and name.isascii() for name in names(text))


# --- reading them


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def book(kube: MemoryKube, clock: Clock) -> DeviceBook:
    return DeviceBook(kube, clock=clock, wall=lambda: WALL)


async def test_each_node_is_asked_by_name_and_seldom() -> None:
    kube, clock = MemoryKube(), Clock()
    kube.put(CONFIG_MAPS, config_map(Unhealthy="Ascend910-1"))
    devices = book(kube, clock)
    for _ in range(3):
        assert set(await devices.sick(["node-1", "node-2"])) == {"node-1"}
        clock.now += FRESH_S / 2
    asked = [name for _, _, name in kube.calls]
    assert asked == ["mindx-dl-deviceinfo-node-1", "mindx-dl-deviceinfo-node-2", "mindx-dl-deviceinfo-node-1"]


async def test_a_node_without_one_is_asked_again_after_minutes() -> None:
    kube, clock = MemoryKube(), Clock()
    devices = book(kube, clock)
    assert await devices.sick(["node-1"]) == {}
    kube.put(CONFIG_MAPS, config_map(Unhealthy="Ascend910-1"))
    clock.now += ABSENT_S - 1
    assert await devices.sick(["node-1"]) == {}
    clock.now += 1
    assert set(await devices.sick(["node-1"])) == {"node-1"}


async def test_a_refusal_is_silence_and_is_not_met_again_for_each_node() -> None:
    kube, clock = MemoryKube(refuse={"get": ApiError(status=403, reason="Forbidden", message="no")}), Clock()
    devices = book(kube, clock)
    for _ in range(3):
        assert await devices.sick([f"node-{number}" for number in range(50)]) == {}
        clock.now += FRESH_S
    assert len(kube.calls) == 1


async def test_whether_all_could_be_read_is_told() -> None:
    kube, clock = MemoryKube(refuse={"get": ApiError(status=403, reason="Forbidden", message="no")}), Clock()
    devices = book(kube, clock)
    assert devices.unread == ""
    await devices.sick(["node-1"])
    await devices.sick(["node-1", "node-2"])
    assert devices.unread == "no"
    kube.refuse.clear()
    clock.now += ABSENT_S
    await devices.sick(["node-1"])
    assert devices.unread == ""


async def test_an_apiserver_that_is_away_takes_back_nothing_that_is_young() -> None:
    kube, clock = MemoryKube(), Clock()
    kube.put(CONFIG_MAPS, config_map(Unhealthy="Ascend910-1"))
    devices = book(kube, clock)
    await devices.sick(["node-1"])
    kube.refuse["get"] = ApiError(status=0, reason="Unreachable", message="no answer")
    clock.now += FRESH_S
    assert set(await devices.sick(["node-1"])) == {"node-1"}


async def test_a_node_that_is_gone_is_forgotten() -> None:
    kube, clock = MemoryKube(), Clock()
    kube.put(CONFIG_MAPS, config_map(Unhealthy="Ascend910-1"))
    devices = book(kube, clock)
    await devices.sick(["node-1"])
    assert await devices.sick([]) == {}
