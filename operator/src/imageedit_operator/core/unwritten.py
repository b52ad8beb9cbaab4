"""A status that is left to the next plan, because that one writes it anyway.

A pod whose gate opens is Ready within moments, and that is looked at at once. Of all that a pass asks of the
apiserver, writing the status of a custom resource is the most expensive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from imageedit_operator.core.actions import Action, PostEvent, SetGate


# The first row that fits decides.
# | the plan                                              | its status is written by |
# | comes after one whose status was not written          | itself                   |
# | is of a generation that the stored status is not of   | itself                   |
# | comes to name what the next plan acts on              | itself                   |
# | tells an event, or does anything but to open gates    | itself                   |
# | opens gates                                           | the next                 |
# | does nothing                                          | itself                   |
def left_to_the_next(
    actions: Sequence[Action | PostEvent],
    previous: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    remembers: bool,
    again: bool,
) -> bool:
    """Whether the status may wait; `again` says that the one before waited."""
    if again or remembers or previous.get("observedGeneration") != after["observedGeneration"]:
        return False
    return bool(actions) and all(isinstance(action, SetGate) and action.value for action in actions)
