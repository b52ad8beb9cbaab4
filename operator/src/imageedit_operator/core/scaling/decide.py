"""How many pods the queue asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass

from imageedit_operator.core.known import Known, Unknown
from imageedit_operator.core.observed import QueueSample
from imageedit_operator.core.resource import Autoscaling
from imageedit_operator.core.scaling import window
from imageedit_operator.core.scaling.window import Memory

ABSURD_REQUESTS = 1_000_000.0
"""More requests than any service of this kind can hold: such a number is a fault of the source."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """The wanted number of pods and why.

    `reason` is the limiting term: QueueDepth, HoldWindow, AtMinimum, AtMaximum,
    CardsExhausted, PartialData, or why there is no data.
    """

    desired: int
    reasons: tuple[str, ...]
    metrics_ok: bool
    reason: str
    message: str
    """About the metrics when they are not good, else about the limit; without numbers that move."""
    active: bool
    """False while missing data holds the number."""
    limited: bool = False
    """True when bounds or cards keep the number below what the queue asks for."""


# | data                                             | up                    | down                             |
# | fresh, every warm pod has a series               | at once, within cards | to the most of a full window     |
# | fresh, fewer series than warm pods (PartialData) | at once, within cards | no                               |
# | older than maxAge (Stale)                        | no                    | no                               |
# | not finite, negative, absurd (InvalidValue)      | no                    | no                               |
# | unknown (NoSeries, PrometheusUnreachable, ...)   | no                    | no                               |
# minReplicas and maxReplicas hold in every row. Cards only limit growth: a device plugin
# that restarts shows no cards for a while, and that must remove nothing.
def decide(
    memory: Memory,
    sample: Known[QueueSample] | Unknown,
    spec: Autoscaling,
    *,
    current: int,
    warm_pods: int,
    card_limit: int | None,
    now: float,
) -> tuple[Decision, Memory]:
    """The decision and the memory for the next one.

    `current` is the last desired number; `card_limit` is the number of pods that the
    cards allow, None when unknown or when no card is asked for.
    """
    held = min(max(current, spec.min_replicas), spec.max_replicas)
    queue = _usable(sample, spec)
    if isinstance(queue, Unknown):
        return _hold(held, queue), memory
    want = math.ceil((queue.waiting + queue.running) / spec.target_per_replica)
    bounded = min(max(want, spec.min_replicas), spec.max_replicas)
    memory = window.remember(memory, bounded, now=now, hold_s=spec.hold_s)
    partial = queue.pods < warm_pods
    if not partial:
        memory = window.mark_good(memory, now=now, max_gap_s=spec.max_age_s)
    said = f"{queue.waiting + queue.running:g} requests at {spec.target_per_replica} a pod ask for {want}"
    if held != current and want <= held:
        said += f"; maxReplicas allows {held}" if held < current else f"; minReplicas asks for {held}"
    if bounded > held:
        return _up(held, bounded, want, spec, card_limit=card_limit, said=said), memory
    if bounded == held:
        return _same(held, want, said, partial=partial), memory
    return _down(memory, held, spec, said, partial=partial, now=now), memory


def _usable(sample: Known[QueueSample] | Unknown, spec: Autoscaling) -> QueueSample | Unknown:
    if isinstance(sample, Unknown):
        return sample
    total = sample.value.waiting + sample.value.running
    numbers = (sample.value.waiting, sample.value.running, float(sample.value.pods))
    if not all(math.isfinite(number) and number >= 0 for number in numbers) or total > ABSURD_REQUESTS:
        return Unknown(reason="InvalidValue", message=_NO_QUEUE)
    if not 0 <= sample.age_s <= spec.max_age_s:
        message = f"the last sample is older than maxAge ({spec.max_age_s:g} s); is Prometheus scraping?"
        return Unknown(reason="Stale", message=message)
    return sample.value


def _hold(held: int, why: Unknown) -> Decision:
    return Decision(
        desired=held,
        reasons=(f"{why.reason}: holds {held}",),
        metrics_ok=False,
        reason=why.reason,
        message=why.message,
        active=False,
    )


def _up(held: int, bounded: int, want: int, spec: Autoscaling, *, card_limit: int | None, said: str) -> Decision:
    # minReplicas is the user's own word and is not cut; what has no card waits, and a condition says so.
    within_cards = bounded if card_limit is None else max(held, min(bounded, card_limit))
    if within_cards < bounded:
        message = "the queue asks for more pods than cards are free: free a card, add a node, or lower maxReplicas"
        return _known(within_cards, (said, f"cards allow {within_cards}"), "CardsExhausted", message, limited=True)
    if want > spec.max_replicas:
        return _known(bounded, (said, f"maxReplicas allows {bounded}"), "AtMaximum", _AT_MAXIMUM, limited=True)
    return _known(bounded, (said,), "QueueDepth", "")


def _same(held: int, want: int, said: str, *, partial: bool) -> Decision:
    if want > held:
        return _known(held, (said, f"maxReplicas allows {held}"), "AtMaximum", _AT_MAXIMUM, limited=True)
    return _known(held, (said,), "PartialData" if partial else "QueueDepth", "")


def _down(memory: Memory, held: int, spec: Autoscaling, said: str, *, partial: bool, now: float) -> Decision:
    if partial:
        return _known(held, (said, "some warm pods have no series yet"), "PartialData", "")
    if not window.is_full(memory, now=now, hold_s=spec.hold_s):
        return _known(held, (said, f"no {spec.hold_s:g} s of good data yet"), "HoldWindow", "")
    desired = min(held, window.largest(memory))
    if desired == held:
        return _known(held, (said, f"as many were wanted during the last {spec.hold_s:g} s"), "HoldWindow", "")
    return _known(desired, (said, f"at most {desired} were wanted during the last {spec.hold_s:g} s"), "QueueDepth", "")


_NO_QUEUE = "Prometheus answered with a number that cannot be a queue: do rules or relabelling change the series?"
_AT_MAXIMUM = "the queue asks for more than maxReplicas"


def _known(desired: int, reasons: tuple[str, ...], reason: str, message: str, *, limited: bool = False) -> Decision:
    return Decision(
        desired=desired,
        reasons=reasons,
        metrics_ok=True,
        reason=reason,
        message=message,
        active=True,
        limited=limited,
    )
