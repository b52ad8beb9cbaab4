"""Is there a cluster here that the operator can work in? Asked once, before anything is watched."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from imageedit_operator.errors import ApiError, PreflightFailed
from imageedit_operator.kube import access
from imageedit_operator.kube.client import IMAGE_EDIT_DEPLOYMENTS, Kube
from imageedit_operator.supervision import sleep_unless

logger = logging.getLogger(__name__)

PATIENCE_S = 60.0
PAUSE_S = 2.0


async def check(
    kube: Kube, namespaces: tuple[str, ...], stop: asyncio.Event, *, stopwatch: Callable[[], float]
) -> bool:
    """True when all is well, False when `stop` was set before that was known.

    Raises PreflightFailed with what to do; an apiserver that does not answer is waited for a minute.
    """
    started = stopwatch()
    while not stop.is_set():
        try:
            await _check_once(kube, namespaces)
            return True
        except ApiError as error:
            if stopwatch() - started > PATIENCE_S:
                raise PreflightFailed(
                    f"the apiserver does not answer: {error}; check the address and the login"
                ) from error
            logger.warning("preflight: %s; trying again", error)
        await sleep_unless(stop, PAUSE_S)
    return False


async def _check_once(kube: Kube, namespaces: tuple[str, ...]) -> None:
    if not await kube.serves(IMAGE_EDIT_DEPLOYMENTS):
        raise PreflightFailed(
            "the apiserver does not serve imageeditdeployments.imageedit.dev/v1alpha1; "
            "install the resource definition first: kubectl apply --server-side -f crds/"
        )
    for namespace in namespaces or ("",):
        refused = await access.missing(kube, access.REQUIRED, namespace)
        if refused:
            where = f"in namespace {namespace}" if namespace else "in all namespaces"
            verbs = "; ".join(str(right) for right in refused)
            raise PreflightFailed(
                f"the operator's account may not {verbs} {where}; apply the chart's roles, or bind them"
            )
    refused = await access.missing(kube, access.FOR_CARDS, "")
    if refused:
        verbs = "; ".join(str(right) for right in refused)
        logger.warning("free cards are not known, for the account may not %s in all namespaces", verbs)
