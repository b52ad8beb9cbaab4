"""Which candidate size a picture is edited at, where it lies inside it, and how large its result is. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from imageedit_server.worker.shapes import Size

SizeWish = Literal["auto", "original"] | Size


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """From a picture to its result, through three frames of the same shape.

    The result has the size `output`. What the model edits is `placement.working`, which lies in `placement.candidate`.
    `in_working` and `in_output` say where the picture lies in both: all over them, unless another shape was asked for.
    """

    picture: Size
    placement: Placement
    in_working: Placement
    output: Size
    in_output: Placement


# | wish     | shape of the frames | working size            | output size      |
# | -------- | ------------------- | ----------------------- | ---------------- |
# | auto     | the picture's       | fits closest candidate  | the working size |
# | original | the picture's       | fits closest candidate  | the picture's    |
# | WxH      | W:H                 | fits closest candidate  | WxH              |
def plan(picture: Size, candidates: Sequence[Size], wish: SizeWish) -> Plan:
    """Choose the candidate by the shape of the result; the picture lies whole and undistorted in its middle."""
    placement = place(wish if isinstance(wish, Size) else picture, candidates)
    if isinstance(wish, Size):
        in_working, in_output = place(picture, [placement.working]), place(picture, [wish])
        return Plan(picture=picture, placement=placement, in_working=in_working, output=wish, in_output=in_output)
    output = picture if wish == "original" else placement.working
    in_working, in_output = _all_over(placement.working), _all_over(output)
    return Plan(picture=picture, placement=placement, in_working=in_working, output=output, in_output=in_output)


def _all_over(size: Size) -> Placement:
    """Not by `place`: it keeps the picture's exact shape, which rounding has changed by a fraction of a pixel."""
    return Placement(candidate=size, working=size, left_px=0, top_px=0)


def _side(length: float, limit_px: int) -> int:
    return max(1, min(limit_px, round(length)))
