"""Why a copy was not made. The operator shows the message, so it names the file and what to do."""

from __future__ import annotations

import errno
from enum import Enum

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
PASSING = frozenset({errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EINTR, errno.EAGAIN})


class Failure(Enum):
    """The first word of the termination message."""

    SETTINGS_INVALID = "SettingsInvalid"
    MODEL_MISSING = "ModelMissing"
    MODEL_INVALID = "ModelInvalid"
    DISK_FULL = "DiskFull"
    TARGET_UNUSABLE = "TargetUnusable"
    COPY_FAILED = "CopyFailed"


EXIT_CODES = {
    Failure.SETTINGS_INVALID: 64,
    Failure.MODEL_MISSING: 65,
    Failure.MODEL_INVALID: 66,
    Failure.DISK_FULL: 70,
    Failure.TARGET_UNUSABLE: 71,
    Failure.COPY_FAILED: 72,
}
"""The first three are the server's own. Only after CopyFailed does it help to try the same again."""


class CannotCopy(Exception):
    """The copy was not made; what was copied so far stays for the next try."""

    def __init__(self, failure: Failure, message: str) -> None:
        super().__init__(message)
        self.failure = failure
        self.message = message


# | errno            | failure        |
# | no space, quota  | DiskFull       |
# | may pass         | CopyFailed     |
# | others           | TargetUnusable |
def of_target(error: OSError, path: object) -> CannotCopy:
    """What the file system said of a file or folder of ours."""
    why = error.strerror or str(error)
    if error.errno in FULL:
        return CannotCopy(Failure.DISK_FULL, f"{path} cannot be written: {why}; free space on this disk")
    if error.errno in PASSING:
        return CannotCopy(Failure.COPY_FAILED, f"{path} cannot be written: {why}; look at the disk and try again")
    words = f"{path} cannot be written: {why}; let this user write there, or name another folder"
    return CannotCopy(Failure.TARGET_UNUSABLE, words)


def of_source(error: OSError, path: object) -> CannotCopy:
    """The same of a file that is read."""
    words = f"{path} cannot be read: {error.strerror or error}; look at the volume that it lies on, and try again"
    return CannotCopy(Failure.COPY_FAILED, words)
