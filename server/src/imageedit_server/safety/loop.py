"""What runs inside the classifier's process: load, look at one picture, then at one after the other."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import BinaryIO, NoReturn

from imageedit_server import logs
from imageedit_server.engine.classifier import ImageClassifier, UnusableClassifier
from imageedit_server.logs import fields
from imageedit_server.safety.protocol import CannotClassify, ClassifierReady, ClassifierSettings, Look, ToApi, Verdict
from imageedit_server.worker.child import become_child, claim_pipes
from imageedit_server.worker.framing import pack, read_message_blocking

log = logging.getLogger("imageedit.safety")

EXIT_CANNOT_SERVE = 1
# Behind the process that feeds the card, where both want a processor.
NICENESS = 5
FIRST_LOOK_SIDE_PX = 64


def main(parent_pid: int) -> NoReturn:
    """Run until the pipe closes or nothing can be classified."""
    become_child(parent_pid)
    os.nice(NICENESS)
    exit_code = _load_and_serve(*claim_pipes())
    sys.stderr.flush()
    os._exit(exit_code)


def _load_and_serve(incoming: BinaryIO, outgoing: BinaryIO) -> int:
    def send(message: ToApi) -> None:
        outgoing.write(pack(message))
        outgoing.flush()

    settings = read_message_blocking(incoming)
    assert isinstance(settings, ClassifierSettings)
    logs.set_up(level=settings.log_level, pod=settings.pod)
    try:
        classifier = ImageClassifier(Path(settings.folder), settings.labels)
        side_px = FIRST_LOOK_SIDE_PX
        classifier.highest(bytes([127]) * (3 * side_px * side_px), side_px, side_px)
    except UnusableClassifier as error:
        send(CannotClassify(message=str(error)))
        return EXIT_CANNOT_SERVE
    except Exception as error:  # the first look shows what later ones would do
        log.exception("classifier_unusable")
        send(CannotClassify(message=f"its first look failed: {type(error).__name__}"))
        return EXIT_CANNOT_SERVE
    send(ClassifierReady())
    while True:
        try:
            look = read_message_blocking(incoming)
        except EOFError:
            return 0
        send(_verdict(classifier, look, settings.threshold))


def _verdict(classifier: ImageClassifier, look: Look, threshold: float) -> Verdict:
    try:
        refused = classifier.highest(look.rgb, look.width_px, look.height_px) >= threshold
    except Exception as error:  # one picture must not end the process, and is not let through
        log.error("look_failed", extra=fields(error=type(error).__name__))
        return Verdict(number=look.number, refused=None)
    return Verdict(number=look.number, refused=refused)
