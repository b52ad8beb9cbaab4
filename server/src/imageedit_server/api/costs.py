"""What edits cost on this card: the one cost model of the process, in terms of jobs."""

from __future__ import annotations

from collections.abc import Callable

from imageedit_server.gate import cost
from imageedit_server.gate.cost import CostModel, EditShape, Measured
from imageedit_server.worker.protocol import EditJob, EditResult, WarmReport
from imageedit_server.worker.shapes import Size


class Costs:
    """Learns from warm-ups and edits.

    Args:
        on_error: called after each edit with the part of its real seconds by which its estimate was off.
    """

    def __init__(self, *, on_error: Callable[[float], None] = lambda _: None) -> None:
        self._model = CostModel()
        self._plain_pictures = 1
        self._on_error = on_error

    def expected_s(self, job: EditJob) -> float:
        """Seconds that a job is expected to take on the card."""
        return cost.estimate_s(self._model, _shape(job))

    def plain_s(self, size: Size, steps: int) -> float:
        """Seconds of an edit of one picture without guidance; from text where the model edits none."""
        shape = EditShape(width_px=size.width_px, height_px=size.height_px, steps=steps, pictures=self._plain_pictures)
        return cost.estimate_s(self._model, shape)

    def warmed(self, report: WarmReport, *, steps: int) -> None:
        """Begin anew with what a warm-up measured."""
        self._plain_pictures = min(1, max((one.shape.references for one in report.served), default=1))
        self._model = cost.fitted(
            [
                Measured(
                    shape=EditShape(
                        width_px=one.shape.size.width_px,
                        height_px=one.shape.size.height_px,
                        steps=steps,
                        cfg=one.shape.cfg,
                        pictures=one.shape.references,
                    ),
                    seconds=one.edit_s,
                )
                for one in report.served
            ]
        )

    def edited(self, job: EditJob, result: EditResult) -> None:
        """Learn from an edit."""
        one = Measured(shape=_shape(job), seconds=result.seconds)
        self._on_error(cost.error_ratio(self.expected_s(job), result.seconds))
        # The second decoding is the rare case, and no reason to expect it of the next edit.
        if not result.retried_in_fp32:
            self._model = cost.corrected(self._model, one)


def _shape(job: EditJob) -> EditShape:
    return EditShape(
        width_px=job.size.width_px,
        height_px=job.size.height_px,
        steps=job.steps,
        cfg=job.cfg,
        pictures=job.shape.references,
    )
