"""One JSON object a line, on standard error."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
NOISY = ("asyncio", "aiohttp.access", "kopf.objects")
"""Loggers that report each step of libraries, not of ours."""


class JsonFormatter(logging.Formatter):
    """`time`, `level`, `logger`, `message`, and what was given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds")
        line = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        extra = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        return json.dumps(line | extra, default=str)


def _without_signals(record: logging.LogRecord) -> bool:
    """kopf regrets that it gets no signals in its thread; that is on purpose."""
    return "OS signals are ignored" not in record.getMessage()


def configure(level: str) -> None:
    """Sends everything from `level` on to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    handler.addFilter(_without_signals)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    if level != "debug":
        for name in NOISY:
            logging.getLogger(name).setLevel(logging.WARNING)
