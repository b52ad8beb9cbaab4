"""Is our kind served? Its definition may be removed, and applied again, while the operator runs.

Without it there is nothing to do and nothing wrong with the process: it says what is missing and waits. kopf
cannot wait: started without the kind it never watches it. So it is started when the kind is there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import Kube
from imageedit_operator.kube.kinds import IMAGE_EDIT_DEPLOYMENTS
from imageedit_operator.supervision import sleep_unless

logger = logging.getLogger(__name__)

LOOK_S = 2.0
MISSING = (
    "the apiserver does not serve imageeditdeployments.imageedit.dev/v1alpha1 any more; "
    "apply the resource definition again: kubectl apply --server-side -f crds/"
)


class Definition:
    """What is known of the definition; `on_alive` is called while it is waited for."""

    def __init__(self, kube: Kube, *, on_alive: Callable[[], None]) -> None:
        self._kube = kube
        self._on_alive = on_alive
        self._missing = False

    def notice(self) -> str:
        """What to tell people; empty while the kind is served."""
        return MISSING if self._missing else ""

    def gone(self) -> None:
        """A list or the discovery did not find it."""
        if not self._missing:
            logger.error("%s", MISSING)
        self._missing = True

    def found(self) -> None:
        """A list or the discovery found it."""
        if self._missing:
            logger.info("the resource definition is back")
        self._missing = False

    # | the discovery says   | then                                                          |
    # | served               | go on                                                         |
    # | not served           | ask again                                                     |
    # | nothing              | go on: the watches wait for an apiserver better than we could |
    async def wait(self, stop: asyncio.Event) -> bool:
        """Until the kind is served, or `stop`; True when that took a second look."""
        waited = False
        while not stop.is_set():
            self._on_alive()
            try:
                served = await self._kube.serves(IMAGE_EDIT_DEPLOYMENTS)
            except ApiError as error:
                logger.warning("whether the kind is served is not known: %s", error)
                return waited
            if served:
                self.found()
                return waited
            self.gone()
            waited = True
            await sleep_unless(stop, LOOK_S)
        return waited
