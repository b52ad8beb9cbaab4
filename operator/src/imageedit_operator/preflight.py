"""Is there a cluster here that the operator can work in? Asked once, before anything is watched."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from imageedit_operator.errors import ApiError, PreflightFailed
from imageedit_operator.kube import access, device_info
from imageedit_operator.kube.client import Kube
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS
from imageedit_operator.supervision import sleep_unless

logger = logging.getLogger(__name__)

PATIENCE_S = 60.0
PAUSE_S = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What the operator is going to do."""

    namespaces: tuple[str, ...]
    """Empty = the whole cluster."""
    lease: tuple[str, str] | None
    """Namespace and name of the Lease; None without leader election."""


async def check(kube: Kube, asked: Asked, stop: asyncio.Event, *, stopwatch: Callable[[], float]) -> bool:
    """True when all is well, False when `stop` was set before that was known.

    Raises PreflightFailed with what to do; an apiserver that does not answer is waited for a minute.
    """
    started = stopwatch()
    while not stop.is_set():
        try:
            await _check_once(kube, asked)
            return True
        except ApiError as error:
            if stopwatch() - started > PATIENCE_S:
                raise PreflightFailed(
                    f"the apiserver does not answer: {error}; check the address and the login"
                ) from error
            logger.warning("preflight: %s; trying again", error)
        await sleep_unless(stop, PAUSE_S)
    return False


async def _check_once(kube: Kube, asked: Asked) -> None:
    if not await kube.serves(IMAGE_EDIT_DEPLOYMENTS):
        raise PreflightFailed(
            "the apiserver does not serve imageeditdeployments.imageedit.dev/v1alpha1; "
            "install the resource definition first: kubectl apply --server-side -f crds/"
        )
    for namespace in asked.namespaces or ("",):
        await _require(kube, access.REQUIRED, namespace)
        await _mention_words(kube, namespace)
    if asked.lease is not None:
        await _require(kube, access.for_lease(asked.lease[1]), asked.lease[0])
    refused = await access.missing(kube, access.FOR_CARDS, "")
    if refused:
        verbs = "; ".join(str(right) for right in refused)
        logger.warning("free cards are not known, for the account may not %s in all namespaces", verbs)
    refused = await access.missing(kube, access.FOR_HEALTH, device_info.NAMESPACE)
    if refused:
        logger.info(
            "device plugins are not asked for sick cards, for the account may not %s in %s",
            refused[0],
            device_info.NAMESPACE,
        )


async def _mention_words(kube: Kube, namespace: str) -> None:
    refused = await access.missing(kube, access.FOR_WORDS, namespace)
    if refused:
        where = f"namespace {namespace}" if namespace else "all namespaces"
        logger.info(
            "what nodes say of volumes that they cannot mount is not read, for the account may not %s in %s",
            refused[0],
            where,
        )


async def _require(kube: Kube, rights: Sequence[access.Right], namespace: str) -> None:
    refused = await access.missing(kube, rights, namespace)
    if refused:
        where = f"in namespace {namespace}" if namespace else "in all namespaces"
        verbs = "; ".join(str(right) for right in refused)
        raise PreflightFailed(f"the operator's account may not {verbs} {where}; apply the chart's roles, or bind them")
