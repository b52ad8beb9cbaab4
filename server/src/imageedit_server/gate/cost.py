"""How many seconds will this edit take? Pure: fitted to the warm-up, corrected by every edit that ran.

    seconds = a + steps · runs · (d + b·T + c·T²)

T is the number of tokens that the transformer sees in thousands (the result and each picture alike), `runs` is 2 with
classifier-free guidance and else 1. `a` is text encoder, VAE and copying, `d` what a step costs however small the
picture. No coefficient is negative, so a larger picture, more steps or guidance never look cheaper.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

PIXELS_PER_THOUSAND_TOKENS = 256_000.0

# What is known before anything is measured, as shares of an edit's seconds in the order a, d, b, c.
PRIOR_SHARES = (0.05, 0.05, 0.90, 0.0)
# How firmly each share is held. Edits of one size say nothing of d, b and c apart; with one number of steps nothing
# tells a from d, and text encoder and VAE are known to be a small part of every such model.
PRIOR_WEIGHTS = (3.0, 0.01, 0.01, 0.01)

# A third of each surprise is believed: three edits of a class that changed take half the error away and more.
CORRECTION_WEIGHT = 0.35
# One edit that was held up, by a page fault or a neighbour, may at most look twice as slow.
LARGEST_SURPRISE = math.log(2.0)
# A model that has seen nothing guesses; it is not asked before the warm-up is over.
UNKNOWN_EDIT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EditShape:
    """What an edit's seconds depend on. `pictures` counts all that go in, 0 for an image from text alone."""

    width_px: int
    height_px: int
    steps: int
    cfg: bool = False
    pictures: int = 1

    @property
    def runs(self) -> int:
        """Runs of the transformer in all."""
        return self.steps * (2 if self.cfg else 1)

    @property
    def tokens(self) -> float:
        """Thousands of tokens that the transformer sees at once."""
        return self.width_px * self.height_px * (1 + self.pictures) / PIXELS_PER_THOUSAND_TOKENS

    @property
    def kind(self) -> tuple[int, int, bool, int]:
        """Edits of one kind are off in the same way, so they are corrected together; steps are for the formula."""
        return (self.width_px, self.height_px, self.cfg, self.pictures)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Seconds that an edit took on the card."""

    shape: EditShape
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    """Coefficients in the order a, d, b, c, and the corrections of each kind as logarithms of a factor.

    `overall` corrects the kinds that have not run yet.
    """

    coefficients: tuple[float, float, float, float] | None = None
    corrections: Mapping[tuple[int, int, bool, int], float] = field(default_factory=dict)
    overall: float = 0.0


def estimate_s(model: CostModel, shape: EditShape) -> float:
    """Seconds that an edit is expected to take: always positive."""
    correction = model.corrections.get(shape.kind, model.overall)
    return _formula_s(model, shape) * math.exp(correction)


def fitted(measured: Sequence[Measured]) -> CostModel:
    """The model that fits what a warm-up measured, in relative error; one edit is enough, none leaves a guess."""
    usable = [one for one in measured if one.seconds > 0]
    if not usable:
        return CostModel()
    rows = [[value / one.seconds for value in _terms(one.shape)] for one in usable]
    # In units of "share of an average edit", so that prior and data can be weighed against each other.
    scales = [sum(row[column] for row in rows) / len(rows) for column in range(4)]
    shares = _shares([[value / scale for value, scale in zip(row, scales, strict=True)] for row in rows])
    a, d, b, c = (share / scale for share, scale in zip(shares, scales, strict=True))
    return CostModel(coefficients=(a, d, b, c))


def corrected(model: CostModel, one: Measured) -> CostModel:
    """The model after one more edit, which was off by `surprise`."""
    if one.seconds <= 0:
        return model
    step = CORRECTION_WEIGHT * surprise(model, one)
    kind = one.shape.kind
    known = model.corrections.get(kind, model.overall)
    return replace(
        model, corrections={**model.corrections, kind: known + step}, overall=model.overall + CORRECTION_WEIGHT * step
    )


def surprise(model: CostModel, one: Measured) -> float:
    """Logarithm of real over expected seconds, held within a factor of two either way."""
    off = math.log(one.seconds / estimate_s(model, one.shape))
    return max(-LARGEST_SURPRISE, min(LARGEST_SURPRISE, off))


def error_ratio(expected_s: float, real_s: float) -> float:
    """By what part of the real seconds an estimate was off: 0 is exact, 1 is twice as long as it was."""
    return abs(expected_s - real_s) / real_s if real_s > 0 else 0.0


def _formula_s(model: CostModel, shape: EditShape) -> float:
    if model.coefficients is None:
        return UNKNOWN_EDIT_S
    return sum(value * term for value, term in zip(model.coefficients, _terms(shape), strict=True))


def _terms(shape: EditShape) -> tuple[float, float, float, float]:
    return (1.0, shape.runs, shape.runs * shape.tokens, shape.runs * shape.tokens**2)


def _shares(rows: Sequence[Sequence[float]]) -> list[float]:
    """Least squares of rows · shares = 1, pulled towards the prior, no share below zero.

    The sum of squares is strictly convex, so the best point is the stationary point of one of the fifteen faces.
    """
    weight = 1.0 / len(rows)
    normal = [
        [sum(weight * row[i] * row[j] for row in rows) + (PRIOR_WEIGHTS[i] if i == j else 0.0) for j in range(4)]
        for i in range(4)
    ]
    right = [sum(weight * row[i] for row in rows) + PRIOR_WEIGHTS[i] * PRIOR_SHARES[i] for i in range(4)]

    best, least = list(PRIOR_SHARES), math.inf
    for count in range(1, 5):
        for face in combinations(range(4), count):
            shares = _on_face(normal, right, face)
            if min(shares) < 0:
                continue
            loss = sum(shares[i] * (0.5 * sum(normal[i][j] * shares[j] for j in range(4)) - right[i]) for i in range(4))
            if loss < least:
                best, least = shares, loss
    return best


def _on_face(normal: Sequence[Sequence[float]], right: Sequence[float], face: Sequence[int]) -> list[float]:
    solution = _solve([[normal[i][j] for j in face] for i in face], [right[i] for i in face])
    shares = [0.0] * 4
    for index, value in zip(face, solution, strict=True):
        shares[index] = value
    return shares


def _solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Gaussian elimination; the matrix is positive definite, so no pivot is zero."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for pivot in range(size):
        for below in range(pivot + 1, size):
            factor = rows[below][pivot] / rows[pivot][pivot]
            rows[below] = [value - factor * top for value, top in zip(rows[below], rows[pivot], strict=True)]
    solution = [0.0] * size
    for index in reversed(range(size)):
        rest = sum(rows[index][later] * solution[later] for later in range(index + 1, size))
        solution[index] = (rows[index][size] - rest) / rows[index][index]
    return solution
