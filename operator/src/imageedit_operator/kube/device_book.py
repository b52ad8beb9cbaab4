"""Reads what the device plugin says of the nodes' cards, seldom, and one ConfigMap at a time.

RBAC knows no patterns of names, and a list would show every ConfigMap of `kube-system`: with `get` alone the
operator sees only what it can name. So it asks for each node with cards, and remembers long where there is nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import Kube
from imageedit_operator.kube.device_info import NAMESPACE, DeviceInfo, name_of, parse
from imageedit_operator.kube.kinds import CONFIG_MAPS

logger = logging.getLogger(__name__)

FRESH_S = 15.0
ABSENT_S = 300.0
"""Where a node has no such ConfigMap, or nobody may read it, it is asked for again after this time."""
AT_ONCE = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answer:
    info: DeviceInfo
    until: float


class DeviceBook:
    """Sick cards by node; `clock` is monotonic and `wall` UTC epoch, both in seconds."""

    def __init__(self, kube: Kube, *, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        self._kube = kube
        self._clock = clock
        self._wall = wall
        self._answers: dict[str, _Answer] = {}
        self._forbidden_until = float("-inf")
        self._unread = ""
        self._at_once = asyncio.Semaphore(AT_ONCE)

    @property
    def unread(self) -> str:
        """Why the last look could not read all that the plugins say; empty when it could."""
        return self._unread

    async def sick(self, nodes: Collection[str]) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
        """By node and resource name the sick cards with their reasons; never raises ApiError."""
        if self._clock() >= self._forbidden_until:
            self._unread = ""
        self._answers = {node: answer for node, answer in self._answers.items() if node in nodes}
        await asyncio.gather(*(self._refresh(node) for node in nodes))
        now = self._wall()
        return {node: found for node, answer in self._answers.items() if (found := answer.info.at(now))}

    async def _refresh(self, node: str) -> None:
        known = self._answers.get(node)
        if known is not None and self._clock() < known.until:
            return
        async with self._at_once:
            if self._clock() >= self._forbidden_until:
                self._answers[node] = await self._ask(node, known)

    # | answer                    | what counts                   | asked again after |
    # | the ConfigMap             | it                            | 15 s              |
    # | there is none             | nothing                       | 5 min             |
    # | forbidden                 | nothing, of all nodes         | 5 min             |
    # | any other error, or none  | the last, while it is not old | 15 s              |
    async def _ask(self, node: str, known: _Answer | None) -> _Answer:
        nothing = DeviceInfo()
        try:
            found = await self._kube.get(CONFIG_MAPS, NAMESPACE, name_of(node))
        except ApiError as error:
            if error.not_found:
                return _Answer(info=nothing, until=self._clock() + ABSENT_S)
            self._unread = error.message
            if error.forbidden:
                self._forbidden_until = self._clock() + ABSENT_S
                return _Answer(info=nothing, until=self._forbidden_until)
            logger.warning("ConfigMap %s/%s could not be read: %s", NAMESPACE, name_of(node), error)
            return _Answer(info=known.info if known is not None else nothing, until=self._clock() + FRESH_S)
        return _Answer(info=parse(found), until=self._clock() + FRESH_S)
