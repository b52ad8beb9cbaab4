"""How the server edits: `spec.server` as typed values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from imageedit_operator.core.fields import InvalidResource, integer, mapping, seconds, switch, text
from imageedit_operator.core.pod_fields import PodFields, parse_pod_fields

LONGEST_WAIT_S = 86_400.0

_SIZE = re.compile(r"([0-9]{2,4})x([0-9]{2,4})")


@dataclass(frozen=True, kw_only=True, slots=True)
class Server:
    """How the server runs."""

    image: str
    sizes: tuple[str, ...]
    steps: int
    queue_hard_limit: int
    max_wait_s: float | None = None
    """None: what the server takes for bearable."""
    steps_high: int | None = None
    """None: the server's own, or `steps` where that is more."""
    dynamic_steps: bool = False
    references: int = 1
    negative_prompt: bool = False
    pod: PodFields = field(default_factory=PodFields)

    def additions(self) -> dict[str, Any]:
        """The fields that are younger than the first release and not at their default, as they stand in a spec."""
        steps: dict[str, Any] = {} if self.steps_high is None else {"high": self.steps_high}
        steps |= {"dynamic": True} if self.dynamic_steps else {}
        queue = {} if self.max_wait_s is None else {"maxWait": f"{int(self.max_wait_s)}s"}
        return {
            **({"steps": steps} if steps else {}),
            **({"queue": queue} if queue else {}),
            **({"references": self.references} if self.references != 1 else {}),
            **({"negativePrompt": True} if self.negative_prompt else {}),
            **self.pod.manifest(),
        }

    def manifest(self) -> dict[str, Any]:
        """As it stands in a spec."""
        more = self.additions()
        return {
            "image": self.image,
            "sizes": list(self.sizes),
            **more,
            "steps": {"standard": self.steps, **more.get("steps", {})},
            "queue": {"hardLimit": self.queue_hard_limit, **more.get("queue", {})},
        }


def parse_server(server: Mapping[str, Any]) -> Server:
    """Typed values; raises InvalidResource."""
    steps = mapping(server, "steps", "spec.server.steps", optional=True)
    queue = mapping(server, "queue", "spec.server.queue", optional=True)
    standard = integer(steps, "standard", "spec.server.steps.standard", default=16, low=2, high=100)
    return Server(
        image=text(server, "image", "spec.server.image", limit=1024),
        sizes=_sizes(server.get("sizes", ["768x768"])),
        steps=standard,
        queue_hard_limit=integer(queue, "hardLimit", "spec.server.queue.hardLimit", default=50, low=0, high=1000),
        max_wait_s=_max_wait_s(queue),
        steps_high=_steps_high(steps, standard),
        dynamic_steps=switch(steps, "dynamic", "spec.server.steps.dynamic", default=False),
        references=integer(server, "references", "spec.server.references", default=1, low=1, high=4),
        negative_prompt=switch(server, "negativePrompt", "spec.server.negativePrompt", default=False),
        pod=parse_pod_fields(server),
    )


def _sizes(sizes: object) -> tuple[str, ...]:
    if not isinstance(sizes, list | tuple) or not 1 <= len(sizes) <= 16 or len(set(sizes)) != len(sizes):
        raise InvalidResource("spec.server.sizes: give 1 to 16 different sizes such as 768x768")
    for size in sizes:
        match = _SIZE.fullmatch(str(size))
        if match is None or any(int(side) % 32 or not 64 <= int(side) <= 2048 for side in match.groups()):
            raise InvalidResource(f"spec.server.sizes: both sides of {size!r} must be multiples of 32 from 64 to 2048")
    return tuple(str(size) for size in sizes)


def _max_wait_s(queue: Mapping[str, Any]) -> float | None:
    given = queue.get("maxWait", "Auto")
    if given == "Auto":
        return None
    wait_s = seconds(given, "spec.server.queue.maxWait")
    if wait_s > LONGEST_WAIT_S:
        raise InvalidResource("spec.server.queue.maxWait: at most 24h")
    return wait_s


def _steps_high(steps: Mapping[str, Any], standard: int) -> int | None:
    if steps.get("high") is None:
        return None
    high = integer(steps, "high", "spec.server.steps.high", default=None, low=2, high=100)
    if high < standard:
        raise InvalidResource(f"spec.server.steps.high: {high} is below standard {standard}")
    return high
