"""The server-sent events of an edit: where it stands, and its picture. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """Where the edit stands; `before` is None once it waits no more."""

    before: int | None
    starts_in_s: float | None
    step: int
    steps: int

    def words(self) -> str:
        """For people."""
        if self.before:
            about = "" if self.starts_in_s is None else f", starts in about {self.starts_in_s:.0f} s"
            return f"waits behind {self.before}{about}"
        return f"step {self.step} of {self.steps}" if self.steps else "starts"


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """A named event with its JSON object."""

    kind: str
    data: Mapping[str, Any]


@dataclass(kw_only=True, slots=True)
class Reader:
    """Cuts bytes, as they come, into standings and events; what it does not know it skips.

    Lines are only looked for in what is new: a picture is one line of many megabytes.
    """

    _line: bytearray = field(default_factory=bytearray)
    _kind: str = ""
    _data: bytes = b""

    def feed(self, chunk: bytes) -> Iterator[Standing | Event]:
        """What became whole with this chunk."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._line += end
            line, self._line = bytes(self._line.rstrip(b"\r")), bytearray()
            found = self._whole(line)
            if found is not None:
                yield found
        self._line += rest

    def _whole(self, line: bytes) -> Standing | Event | None:
        if line.startswith(b":"):
            return standing(line[1:])
        if line.startswith(b"event:"):
            self._kind = line[6:].strip().decode(errors="replace")
        elif line.startswith(b"data:"):
            self._data += line[5:].strip()
        elif not line and self._data:
            kind, data = self._kind, self._data
            self._kind, self._data = "", b""
            body = _object(data)
            return None if body is None else Event(kind=kind, data=body)
        return None


def standing(comment: bytes) -> Standing | None:
    """A comment of the stream; None for a plain sign of life."""
    body = _object(comment)
    if body is None or "queue_position" not in body:
        return None
    before, starts, step, steps = (body.get(name) for name in ("queue_position", "estimated_start_s", "step", "steps"))
    return Standing(
        before=before if isinstance(before, int) else None,
        starts_in_s=float(starts) if isinstance(starts, int | float) else None,
        step=step if isinstance(step, int) else 0,
        steps=steps if isinstance(steps, int) else 0,
    )


def _object(text: bytes) -> Mapping[str, Any] | None:
    try:
        body = json.loads(text)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None
