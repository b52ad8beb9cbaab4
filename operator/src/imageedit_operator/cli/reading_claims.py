"""Reads the claims that a file names, with the rights of whoever plans it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from imageedit_operator.cli.claims import Found, Wanted
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import Kube, Manifest
from imageedit_operator.kube.kinds import CLAIMS


async def read(kube: Kube, wanted: Sequence[Wanted], namespace: str) -> Found:
    """The claims of these names as they are, or why they may not be read. Raises ApiError."""
    try:
        found = await asyncio.gather(*(_claim(kube, namespace, item.name) for item in wanted))
    except ApiError as error:
        if error.forbidden:
            return Found(unread=error.message)
        raise
    return Found(claims=tuple(zip(wanted, found, strict=True)))


async def _claim(kube: Kube, namespace: str, name: str) -> Manifest | None:
    try:
        return await kube.get(CLAIMS, namespace, name)
    except ApiError as error:
        if error.not_found:
            return None
        raise
