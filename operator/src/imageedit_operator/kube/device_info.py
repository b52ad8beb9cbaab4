"""What the Ascend device plugin says of a node's cards: the ConfigMap `mindx-dl-deviceinfo-<node>`.

It names sick cards that the kubelet still gives out, and why a card is sick. It is a courtesy of one vendor's
plugin: absent, forbidden, old or broken, it says nothing, and nothing else depends on it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from imageedit_operator.kube.card_names import names

NAMESPACE = "kube-system"
PREFIX = "mindx-dl-deviceinfo-"
KEY = "DeviceInfoCfg"
OLDEST_S = 600.0
"""The plugin writes every five minutes at least: what is older comes from a plugin that is gone."""

FAR_FUTURE_S = 1e11

IGNORED_CODES = frozenset({"200001002"})
"""Hangs as the plugin guesses them from an idle card with a process: an image server that waits for work."""

HARD_LEVELS = frozenset(
    {"RestartBusiness", "FreeRestartNPU", "RestartNPU", "PreSeparateNPU", "SeparateNPU", "ManuallySeparateNPU"}
)
"""Levels at which the work must leave the card. Milder ones are notes, or pass within a minute."""

MOST_FAULTS = 1024
_CODE = re.compile(r"[0-9A-Za-z]{1,32}")

Raw = Mapping[str, Any]
Sick = dict[str, dict[str, str]]
"""By resource name: each sick card with the reason in words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceInfo:
    """The sick cards of one node, and when its plugin said so."""

    updated_at: float = 0.0
    """UTC epoch seconds; 0 when it does not say."""
    sick: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def at(self, now: float) -> Mapping[str, Mapping[str, str]]:
        """The sick cards, or none when this is too old to act on, or from a clock that is far off."""
        return self.sick if abs(now - self.updated_at) <= OLDEST_S else {}


def name_of(node: str) -> str:
    """The ConfigMap of a node."""
    return PREFIX + node


def parse(config_map: Raw) -> DeviceInfo:
    """Never raises: what cannot be read is not there."""
    info = _mapping(_mapping(_json(_mapping(config_map.get("data")).get(KEY))).get("DeviceInfo"))
    updated = info.get("UpdateTime")
    if isinstance(updated, bool) or not isinstance(updated, int | float) or not 0 < updated < FAR_FUTURE_S:
        return DeviceInfo()
    devices = _mapping(info.get("DeviceList"))
    sick: Sick = {}
    for resource in _resources(devices):
        found = _sick(devices, resource)
        if found:
            sick[resource] = found
    return DeviceInfo(updated_at=float(updated), sick=sick)


# | the card stands in           | its faults                                  | sick |
# | `-Unhealthy` or `-Recovering`| none named, or any code that is not ignored | yes  |
# | `-Unhealthy` or `-Recovering`| only ignored codes                          | no   |
# | `-Fault` alone               | a code that is not ignored, of a hard level | yes  |
# | `-Fault` alone               | milder, ignored, or of the network          | no   |
# | `-NetworkUnhealthy`          | any                                         | no   |
# Network faults do not matter to a server that talks to no other card.
def _sick(devices: Raw, resource: str) -> dict[str, str]:
    faults: dict[str, list[tuple[str, str]]] = {}
    for card, code, level in _faults(devices.get(f"{resource}-Fault")):
        faults.setdefault(card, []).append((code, level))
    sick: dict[str, str] = {}
    for kind, words in (("Unhealthy", "the device plugin calls it unhealthy"), ("Recovering", "it is being reset")):
        for card in names(devices.get(f"{resource}-{kind}")):
            real = [fault for fault in faults.get(card, ()) if fault[0] not in IGNORED_CODES]
            if real or card not in faults:
                sick[card] = _words(real) or words
    for card, found in faults.items():
        hard = [fault for fault in found if fault[0] not in IGNORED_CODES and fault[1] in HARD_LEVELS]
        if hard:
            sick.setdefault(card, _words(hard))
    return sick


def _words(faults: list[tuple[str, str]]) -> str:
    return ", ".join(sorted({f"fault {code} of level {level}" for code, level in faults})[:4])


def _resources(devices: Raw) -> set[str]:
    suffixes = ("-NetworkUnhealthy", "-Unhealthy", "-Recovering", "-Fault")
    return {key.removesuffix(suffix) for key in devices for suffix in suffixes if key.endswith(suffix)}


def _faults(text: object) -> Iterator[tuple[str, str, str]]:
    """Card, code and level of each fault that is not one of the network."""
    listed = _json(text)
    for entry in listed[:MOST_FAULTS] if isinstance(listed, list) else ():
        fault = _mapping(entry)
        if fault.get("fault_type") == "CardNetworkUnhealthy":
            continue
        levels = _mapping(fault.get("fault_time_and_level_map"))
        overall = str(fault.get("fault_level") or fault.get("fault_handling") or "")
        codes = _CODE.findall(str(fault.get("fault_code") or "")) or list(levels)
        for card in names(fault.get("npu_name")):
            for code in codes[:MOST_FAULTS]:
                level = str(_mapping(levels.get(code)).get("fault_level") or overall)
                yield card, code, level


def _json(text: object) -> Any:
    if not isinstance(text, str):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _mapping(value: object) -> Raw:
    return value if isinstance(value, Mapping) else {}
