"""Writing the resource's status, only when it changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from imageedit_operator.kube.client import Kube
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS
from imageedit_operator.workqueue import Key

Raw = Mapping[str, Any]

TRIED_AGAIN_S = 3600.0
"""A definition that was brought up to date is noticed within this time, at the next look."""


def merge_diff(live: Raw, wanted: Raw) -> dict[str, Any]:
    """The merge patch that turns `live` into `wanted`: what is gone becomes null, lists are replaced whole."""
    patch: dict[str, Any] = {name: None for name in live if name not in wanted}
    for name, value in wanted.items():
        before = live.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            deeper = merge_diff(before, value)
            if deeper:
                patch[name] = deeper
        elif name not in live or before != value:
            patch[name] = value
    return patch


class StatusWriter:
    """Remembers what the apiserver made of the last write, where that is not what was written.

    A CRD that is older than the operator prunes fields from the status. Without this memory each
    pass would find them missing and write again, for ever. `clock` is monotonic, in seconds.
    """

    def __init__(
        self,
        kube: Kube,
        *,
        on_written: Callable[[Raw], None] = lambda _stored: None,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._kube = kube
        self._on_written = on_written
        self._clock = clock
        self._written: dict[Key, tuple[Raw, Raw, float]] = {}
        """What was wanted, what the apiserver left of it, and when."""

    async def write(self, key: Key, resource_version: str, live: Raw, status: Raw) -> bool:
        """True when a write was needed. Raises ApiError; a conflict means that the resource changed meanwhile.

        The version is the precondition, because for custom resources the apiserver overlooks a uid.
        """
        wanted = _normal(status)
        if not self._differs(key, live, wanted):
            return False
        body = {"metadata": {"resourceVersion": resource_version}, "status": merge_diff(live, wanted)}
        stored = await self._kube.patch(IMAGE_EDIT_DEPLOYMENTS, key.namespace, key.name, body, subresource="status")
        self._on_written(stored)
        left = stored.get("status") or {}
        self._written.pop(key, None)
        if left != wanted:
            self._written[key] = (wanted, left, self._clock())
        return True

    def needs_write(self, key: Key, live: Raw, status: Raw) -> bool:
        """Whether `write` would write."""
        return self._differs(key, live, _normal(status))

    # | the status          | the last write of the very same | is written |
    # | is as it is wanted  | any                             | no         |
    # | is not              | left it so, within the hour     | no         |
    # | is not              | left it so, longer ago          | yes        |
    # | is not              | left it otherwise, or was none  | yes        |
    def _differs(self, key: Key, live: Raw, wanted: Raw) -> bool:
        if wanted == live:
            return False
        before, left, at_s = self._written.get(key, ({}, {}, 0.0))
        return (before, left) != (wanted, live) or self._clock() - at_s >= TRIED_AGAIN_S

    def forget(self, key: Key) -> None:
        """The resource is gone."""
        self._written.pop(key, None)


def _normal(status: Raw) -> dict[str, Any]:
    """As the apiserver returns it: lists for tuples, nothing for None."""
    return dict(_without_none(json.loads(json.dumps(status))))


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_none(item) for name, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list) else value
