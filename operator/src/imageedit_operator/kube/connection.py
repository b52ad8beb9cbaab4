"""A client with a login, for as long as somebody needs it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from imageedit_operator.kube.client import PAGE_SIZE, KubeClient
from imageedit_operator.kube.clock import ClusterClock
from imageedit_operator.kube.login import Login
from imageedit_operator.kube.patience import Patience
from imageedit_operator.kube.requests import RequestDone


@asynccontextmanager
async def connect(
    kubeconfig: str,
    *,
    timeout_s: float,
    on_request: RequestDone,
    page_size: int = PAGE_SIZE,
    clock: ClusterClock | None = None,
    patience: Patience | None = None,
) -> AsyncIterator[KubeClient]:
    """A client for as long as the context lasts, with a login that is read again when it is refused.

    `clock` hears the time of every answer; without `patience` every failure is final.
    """
    async with AsyncExitStack() as stack:
        login = Login(kubeconfig, stack)
        yield KubeClient(
            await login.begin(),
            timeout_s=timeout_s,
            on_request=on_request,
            page_size=page_size,
            renew=login.renew,
            clock=clock,
            patience=patience,
        )
