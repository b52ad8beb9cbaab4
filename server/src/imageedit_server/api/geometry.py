"""Which candidate size a picture is edited at, and where it lies inside it. Pure arithmetic on pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from imageedit_server.worker.protocol import Size


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A picture scaled to `working` and placed at (`left_px`, `top_px`) inside `candidate`; the rest is padding."""

    candidate: Size
    working: Size
    left_px: int
    top_px: int

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Left, top, right, bottom of the picture inside the candidate."""
        return (
            self.left_px,
            self.top_px,
            self.left_px + self.working.width_px,
            self.top_px + self.working.height_px,
        )


def closest(picture: Size, candidates: Sequence[Size]) -> Size:
    """The candidate with the closest aspect ratio; among equals the closest area, then the first in the list.

    Distances are logarithms, so that 2:1 is as far from 1:1 as 1:2 is; rounded, so that 4:3 is 4:3 at every size.
    """

    def distance(candidate: Size) -> tuple[float, float]:
        ratio = math.log(candidate.width_px * picture.height_px) - math.log(candidate.height_px * picture.width_px)
        area = math.log(candidate.width_px * candidate.height_px) - math.log(picture.width_px * picture.height_px)
        return round(abs(ratio), 6), round(abs(area), 6)

    return min(candidates, key=distance)


def place(picture: Size, candidates: Sequence[Size]) -> Placement:
    """Scale the picture to fit the closest candidate, whole and undistorted, in its middle."""
    candidate = closest(picture, candidates)
    scale = min(candidate.width_px / picture.width_px, candidate.height_px / picture.height_px)
    working = Size(
        _side(picture.width_px * scale, candidate.width_px),
        _side(picture.height_px * scale, candidate.height_px),
    )
    return Placement(
        candidate=candidate,
        working=working,
        left_px=(candidate.width_px - working.width_px) // 2,
        top_px=(candidate.height_px - working.height_px) // 2,
    )


def _side(length: float, limit_px: int) -> int:
    return max(1, min(limit_px, round(length)))
