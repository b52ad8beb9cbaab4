"""What a revision is to a resource now. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


# | first that fits                                          | role      |
# | given up: status.failedRevision                          | failed    |
# | status.currentRevision                                   | serves    |
# | the spec asks for it: status.updateRevision              | comes     |
# | pods of it are there all the same                        | leaves    |
# | status.lastGoodRevision                                  | last good |
# | else                                                     | kept      |
def role(hash_: str, status: Mapping[str, Any], *, pods: int) -> str:
    """One word for a revision."""
    if hash_ == status.get("failedRevision"):
        return "failed"
    if hash_ == status.get("currentRevision"):
        return "serves"
    if hash_ == status.get("updateRevision"):
        return "comes"
    if pods:
        return "leaves"
    return "last good" if hash_ == status.get("lastGoodRevision") else "kept"


TONES = {"failed": "bad", "serves": "good", "comes": "warn", "leaves": "dim", "last good": "", "kept": "dim"}
"""How each role is shown."""
