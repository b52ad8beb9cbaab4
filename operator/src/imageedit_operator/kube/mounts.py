"""Why a pod hangs before its first container: the kubelet tells of volumes that it cannot mount in Events alone.

Events are listed for a pod that has been on its node for a minute and runs nothing, and kept for half a minute: a
list of Events is no cheap question, and such a pod is looked at every few seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from imageedit_operator.core.observed_pod import ObservedPod
from imageedit_operator.core.pods import is_active
from imageedit_operator.errors import ApiError
from imageedit_operator.kube.client import Kube
from imageedit_operator.kube.kinds import EVENTS
from imageedit_operator.kube.parsing import epoch_s

logger = logging.getLogger(__name__)

PATIENCE_S = 60.0
FRESH_S = 30.0
FORBIDDEN_S = 300.0
OLDEST_S = 360.0
"""A kubelet tries again every two minutes at least, and repeats itself every five."""
LONGEST_WORDS = 600
MOST_PODS = 512
"""Answers that are kept."""

FAILURES = frozenset({"FailedMount", "FailedAttachVolume"})
MOUNTED = frozenset({"Pulling", "Pulled", "Created", "Started"})
SUMMARY = "Unable to attach or mount volumes"
"""Begins the kubelet's summary, which repeats names and not the reason."""

Raw = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answer:
    words: str
    until: float


class MountBook:
    """What nodes say of the volumes of pods that hang; `clock` is monotonic and `wall` UTC epoch, both in seconds."""

    def __init__(self, kube: Kube, *, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        self._kube = kube
        self._clock = clock
        self._wall = wall
        self._answers: dict[str, _Answer] = {}
        self._forbidden: dict[str, float] = {}

    async def words(self, pods: Iterable[ObservedPod], namespace: str) -> Mapping[str, str]:
        """By uid what nodes say of pods that hang; at most one is asked about at a time. Never raises ApiError."""
        now = self._wall()
        hanging = sorted((pod for pod in pods if hangs(pod, now)), key=lambda pod: pod.name)
        stale = next((pod for pod in hanging if not self._is_fresh(pod)), None)
        if stale is not None:
            words = await self._ask(stale, namespace)
            self._answers.pop(stale.uid, None)
            self._answers[stale.uid] = _Answer(words=words, until=self._clock() + FRESH_S)
            while len(self._answers) > MOST_PODS:
                del self._answers[next(iter(self._answers))]
        said = ((pod.uid, self._answers[pod.uid].words) for pod in hanging if pod.uid in self._answers)
        return {uid: words for uid, words in said if words}

    def _is_fresh(self, pod: ObservedPod) -> bool:
        known = self._answers.get(pod.uid)
        return known is not None and self._clock() < known.until

    # | answer                      | what counts | asked again after               |
    # | Events                      | they        | 30 s                            |
    # | forbidden                   | nothing     | 5 min, of the whole namespace   |
    # | any other error, or none    | nothing     | 30 s                            |
    async def _ask(self, pod: ObservedPod, namespace: str) -> str:
        if self._clock() < self._forbidden.get(namespace, float("-inf")):
            return ""
        try:
            async for page in self._kube.pages(EVENTS, namespace, fields=f"regarding.uid={pod.uid}"):
                return why(page, self._wall())  # the first page is far more than one pod has
        except ApiError as error:
            if error.forbidden:
                self._forbidden[namespace] = self._clock() + FORBIDDEN_S
            else:
                logger.warning("events of pod %s/%s could not be read: %s", namespace, pod.name, error)
        return ""


async def with_words(book: MountBook | None, pods: Sequence[ObservedPod], namespace: str) -> tuple[ObservedPod, ...]:
    """The pods with what their nodes say of volumes; as they are where nobody is to be asked."""
    said = {} if book is None else await book.words(pods, namespace)
    return tuple(replace(pod, mount_words=said[pod.uid]) if pod.uid in said else pod for pod in pods)


# | the pod                                                          | hangs |
# | is over, leaving, without a node, or runs                        | no    |
# | has a container that tells why it waits: an image, a setting     | no    |
# | has exited before                                                | no    |
# | has been on its node for less than a minute                      | no    |
# | else                                                             | yes   |
def hangs(pod: ObservedPod, now: float) -> bool:
    """Whether only Events can tell what the pod waits for."""
    if not is_active(pod) or not pod.node or pod.started or pod.waiting_reason or pod.last_exit_code is not None:
        return False
    return pod.scheduled_at > 0 and now - pod.scheduled_at >= PATIENCE_S


# | Events of the pod                                   | what counts                                        |
# | no failure within six minutes                       | nothing                                            |
# | an image is pulled, or a container made, after it   | nothing: the volumes are there                     |
# | failures that name a volume, and the summary        | the first of the former by their words             |
# | the summary alone                                   | it                                                 |
def why(events: Iterable[Raw], now: float) -> str:
    """The words of a failure, the same ones as long as the same failures last."""
    known = list(events)
    mounted_at = max((_last(event) for event in known if event.get("reason") in MOUNTED), default=0.0)
    since = max(mounted_at, now - OLDEST_S)
    failures = (event for event in known if event.get("reason") in FAILURES and _last(event) > since)
    said = sorted({_words(event) for event in failures}, key=lambda words: (words.startswith(SUMMARY), words))
    return said[0] if said else ""


def _words(event: Raw) -> str:
    return " ".join(str(event.get("note") or event.get("reason")).split())[:LONGEST_WORDS]


def _last(event: Raw) -> float:
    """When it was seen last, however its recorder writes that."""
    times = (
        (event.get("series") or {}).get("lastObservedTime"),
        event.get("deprecatedLastTimestamp"),
        event.get("eventTime"),
        event["metadata"].get("creationTimestamp"),
    )
    return max(epoch_s(text) for text in times)
