"""The safety hook as the server asks it: the prompt, the pictures before the card, the result before it is sent.

What is refused is answered 400 `content_policy_violation`, and what could not be looked at 503: nothing passes unseen.
Neither answer nor log says which line or score it was.
"""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from PIL import Image

from imageedit_server.errors import ContentRefused, Unavailable
from imageedit_server.logs import fields
from imageedit_server.safety.classifier import Classifier, ClassifierAway, ClassifierPhase
from imageedit_server.safety.denylist_file import DenylistFile
from imageedit_server.safety.protocol import ClassifierSettings
from imageedit_server.settings import Settings
from imageedit_server.telemetry import Telemetry
from imageedit_server.worker.protocol import EditJob
from imageedit_server.worker.shapes import Size

log = logging.getLogger("imageedit.safety")

RETRY_AFTER_S = 5
# Classifiers look at 224 to 512 pixels a side; more would only cross the pipe.
LONGEST_SIDE_PX = 512


class Safety:
    """The hook of one serving process; all off unless set. All methods but `check_prompt` belong to its event loop.

    Args:
        stage: times a stage, as the service does.
        on_change: called when `ready` may have changed.

    Raises:
        SettingsInvalid: the list cannot be read.
    """

    def __init__(
        self,
        settings: Settings,
        telemetry: Telemetry,
        *,
        stage: Callable[[str], AbstractContextManager[None]],
        on_change: Callable[[], None],
    ) -> None:
        wanted = settings.safety
        self._telemetry = telemetry
        self._stage = stage
        self._on_change = on_change
        self.denylist = (
            DenylistFile(Path(wanted.denylist), on_stale=telemetry.denylist_stale.set) if wanted.denylist else None
        )
        self.classifier = (
            Classifier(
                ClassifierSettings(
                    folder=wanted.classifier,
                    labels=wanted.labels,
                    threshold=wanted.threshold,
                    log_level=settings.log_level,
                    pod=settings.pod,
                ),
                start_deadline_s=settings.start_deadline_s,
                on_change=self._changed,
            )
            if wanted.classifier
            else None
        )

    @property
    def ready(self) -> bool:
        """All that is set can look."""
        return self.classifier is None or self.classifier.phase is ClassifierPhase.READY

    def state(self) -> dict[str, str]:
        """What is set and how it is, in the words of `/healthz`."""
        denylist = "off" if self.denylist is None else "stale" if self.denylist.stale else "on"
        return {"denylist": denylist, "classifier": "off" if self.classifier is None else self.classifier.phase.value}

    def why_not_ready(self) -> str | None:
        """For `/readyz` and for who is refused meanwhile."""
        return None if self.ready or self.classifier is None else f"safety classifier {self.classifier.phase.value}"

    def check_prompt(self, prompt: str) -> None:
        """Look at a prompt. Blocking.

        Raises:
            ContentRefused: the list refuses it.
        """
        if self.denylist is not None and self.denylist.refuses(prompt):
            raise self._refused(
                "prompt", "The prompt is not allowed by the policy of this service; change it.", "prompt"
            )

    async def check_inputs(self, job: EditJob) -> None:
        """Look at the pictures as the model would see them.

        Raises:
            ContentRefused: one of them is refused.
            Unavailable: the classifier is away.
        """
        if self.classifier is None:
            return
        pictures = [picture for picture in (job.picture, *job.references) if picture]
        for number, picture in enumerate(pictures):
            param = "image" if number == 0 else f"image[{number}]"
            small = await asyncio.to_thread(_small, _of_raw(picture, job.size))
            if await self._refuses(small):
                message = "The picture is not allowed by the policy of this service; send another one."
                raise self._refused("picture", message, param)

    async def check_result(self, file: bytes) -> None:
        """Look at a result as it would be sent.

        Raises:
            ContentRefused: it is refused.
            Unavailable: the classifier is away.
        """
        if self.classifier is None:
            return
        small = await asyncio.to_thread(_of_file, file)
        if await self._refuses(small):
            message = "The result is withheld by the policy of this service; change the prompt or the picture."
            raise self._refused("result", message, None)

    def start(self) -> None:
        """Start the classifier, if there is one; it loads in the background."""
        if self.classifier is not None:
            self.classifier.start()

    async def stop(self) -> None:
        """End the classifier's process."""
        if self.classifier is not None:
            await self.classifier.stop()

    async def _refuses(self, picture: Image.Image) -> bool:
        assert self.classifier is not None
        with self._stage("safety"):
            try:
                return await self.classifier.refuses(
                    picture.tobytes(), width_px=picture.width, height_px=picture.height
                )
            except ClassifierAway:
                raise Unavailable(
                    "The safety classifier could not look at a picture, and nothing passes without it;"
                    f" try again in {RETRY_AFTER_S} s.",
                    code="safety_unavailable",
                    retry_after_s=RETRY_AFTER_S,
                ) from None

    def _refused(self, reason: str, message: str, param: str | None) -> ContentRefused:
        self._telemetry.safety_refused.labels(reason).inc()
        log.info("content_refused", extra=fields(reason=reason))
        return ContentRefused(message, code="content_policy_violation", param=param)

    def _changed(self) -> None:
        self._telemetry.classifier_up.set(self.ready)
        self._on_change()


def _of_raw(rgb: bytes, size: Size) -> Image.Image:
    return Image.frombytes("RGB", (size.width_px, size.height_px), rgb)


def _of_file(file: bytes) -> Image.Image:
    """One of our own files, so its header is no stranger's."""
    with Image.open(io.BytesIO(file)) as opened:
        opened.draft("RGB", (LONGEST_SIDE_PX, LONGEST_SIDE_PX))
        return _small(opened.convert("RGB"))


def _small(picture: Image.Image) -> Image.Image:
    picture.thumbnail((LONGEST_SIDE_PX, LONGEST_SIDE_PX), Image.Resampling.BICUBIC)
    return picture
