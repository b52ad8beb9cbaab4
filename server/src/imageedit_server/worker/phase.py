"""Where the worker stands, whichever process it is now.

start ─▶ STARTING ─▶ LOADING ─▶ WARMING ─▶ READY
            ▲                                │ the process is gone, hangs, or has a sticky fault
            └────────── RESTARTING ◀─────────┘
the model or the device is unusable, or too many losses ─▶ FAILED (for good)
"""

from enum import Enum


class WorkerPhase(Enum):
    """The values are the words of `/healthz`."""

    STARTING = "starting"
    LOADING = "loading"
    WARMING = "warming"
    READY = "ready"
    RESTARTING = "restarting"
    FAILED = "failed"
