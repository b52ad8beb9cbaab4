"""What the steps of an edit tell about its stages."""

import time

from imageedit_server.worker.protocol import Stages


class Stopwatch:
    """Notes the start of an edit, each of its steps, and its end."""

    def __init__(self) -> None:
        self._started_s = time.monotonic()
        self._steps_s: list[float] = []

    def step(self) -> None:
        """Note the end of a step."""
        self._steps_s.append(time.monotonic())

    def stop(self) -> tuple[float, Stages]:
        """Return the seconds in all, and by stage.

        The start of the first step is not seen: it is taken to last as long as the others do on average.
        """
        ended_s = time.monotonic()
        seconds = ended_s - self._started_s
        if not self._steps_s:
            return seconds, Stages(prepare_s=seconds)
        first_s, last_s = self._steps_s[0], self._steps_s[-1]
        until_first_s = first_s - self._started_s
        gaps = len(self._steps_s) - 1
        step_s = min((last_s - first_s) / gaps, until_first_s) if gaps else until_first_s
        return seconds, Stages(
            prepare_s=until_first_s - step_s, denoise_s=last_s - first_s + step_s, finish_s=ended_s - last_s
        )
