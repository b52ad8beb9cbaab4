"""What a plan found, for tests about the words that follow from it."""

from __future__ import annotations

from imageedit_operator.core.progress import Situation
from unit.operator_core.builders import CARD


def two_that_serve(hash_: str) -> Situation:
    """Two pods of the revision `hash_` are wanted, and both serve."""
    return Situation(
        name="edit",
        wanted=2,
        hash=hash_,
        spec_hash=hash_,
        serving=2,
        complete=True,
        rolling=False,
        proven=True,
        failure=None,
        hold=None,
        still=False,
        strategy="Auto",
        mode="Steady",
        outage=False,
        expected_drain_s=0.0,
        expected_handover_s=0.0,
        expected_start_s=None,
        expected_warmup_s=35.4,
        trouble=None,
        cardless=None,
        unschedulable=None,
        lost=None,
        resource_name=CARD,
        holders=(),
        shrinking=False,
        decision=None,
    )
