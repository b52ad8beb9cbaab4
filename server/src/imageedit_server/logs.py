"""JSON lines on stderr: the event's name first, then what belongs to it. Prompts and pictures never."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType

_BOUND: ContextVar[Mapping[str, object]] = ContextVar("bound", default=MappingProxyType({}))


class _JsonLines(logging.Formatter):
    def __init__(self, pod: str) -> None:
        super().__init__()
        self._pod = pod

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "event": record.getMessage(),
            "level": record.levelname.lower(),
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "logger": record.name,
        }
        if self._pod:
            line["pod"] = self._pod
        line |= {**_BOUND.get(), **getattr(record, "fields", {})}
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def set_up(*, level: str, pod: str) -> None:
    """Send every logger of this process to stderr as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines(pod))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # Pillow remarks on damaged metadata by warnings; as lines of their own they would be no JSON.
    logging.captureWarnings(capture=True)
    # Its start and stop messages repeat ours; its access log is off.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def fields(**values: object) -> dict[str, object]:
    """`log.info("edit_finished", extra=fields(request_id=...))`."""
    return {"fields": values}


def bind(**values: object) -> None:
    """Add fields to every further line of this task and of those that it starts."""
    _BOUND.set({**_BOUND.get(), **values})
