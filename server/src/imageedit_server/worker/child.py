"""What every process below the API process does first."""

import ctypes
import os
import signal
import sys
from typing import BinaryIO

_PR_SET_PDEATHSIG = 1


def become_child(parent_pid: int) -> None:
    """End with the API process, and leave the signals to it."""
    _end_with_parent(parent_pid)
    _leave_signals_to_the_api_process()


def claim_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Take stdin and stdout for messages; whatever a library prints goes to stderr, into the pod's log."""
    incoming = os.fdopen(os.dup(0), "rb")
    outgoing = os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return incoming, outgoing


def _end_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when the API process dies, whatever this process is doing then."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:  # it died before the line above
        sys.exit(0)


def _leave_signals_to_the_api_process() -> None:
    """A terminal or a container runtime may signal the whole group; the API process drains and then ends the worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
