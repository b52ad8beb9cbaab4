"""Which part of a message a connection reads, and how much of it has come. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from imageedit_server.api.doors import Bounds


class Reading:
    """The message that is read now, measured by the bounds of its door; what the parser says moves it on."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.in_head = False
        self.in_body = False
        self._headers = 0
        self._head_bytes = 0
        # Of the line of the head that has not come to its end: `_head_bytes` gets it when it has.
        self._line_bytes = 0
        # Since the parser last said something: trailers and chunk extensions can be endless.
        self._silent_bytes = 0
        self._body_bytes = 0
        self._chunks = 0

    @property
    def head_is_too_large(self) -> bool:
        """Whether more has come of a head, or of trailers, than it may have."""
        too_long = self._head_bytes + self._line_bytes > self._bounds.head_bytes
        return too_long or self._headers > self._bounds.headers

    @property
    def body_is_silent(self) -> bool:
        """Whether what comes is no body for too long."""
        return self.in_body and self._silent_bytes > self._bounds.head_bytes

    @property
    def chunks_are_tiny(self) -> bool:
        """Whether each chunk, which is a step of this process, brings too little."""
        return self._chunks > self._bounds.tiny_chunks + self._body_bytes // self._bounds.chunk_bytes

    @contextlib.contextmanager
    def segment(self, size_bytes: int) -> Iterator[None]:
        """Around the parsing of one segment."""
        began_in_head, head_bytes = self.in_head, self._head_bytes
        self._silent_bytes += size_bytes
        yield
        if self.in_head and began_in_head and self._head_bytes == head_bytes:
            self._line_bytes += size_bytes

    def begin(self) -> None:
        """The head of a message."""
        self.in_head = True
        self._headers = self._head_bytes = self._line_bytes = 0

    def header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer."""
        self._headers += 1
        self._head_bytes, self._line_bytes = self._head_bytes + len(name) + len(value), 0

    def end_head(self, target: bytes) -> None:
        """All of the head; it began with this target."""
        self._head_bytes, self._line_bytes = self._head_bytes + len(target), 0

    def begin_body(self) -> None:
        """From here on it is a request."""
        self.in_head, self.in_body = False, True
        self._head_bytes = self._line_bytes = self._silent_bytes = self._body_bytes = self._chunks = 0

    def chunk(self) -> None:
        """One more chunk."""
        self._chunks += 1

    def body(self, size_bytes: int) -> None:
        """A part of the body."""
        self._silent_bytes, self._body_bytes = 0, self._body_bytes + size_bytes

    def end(self) -> None:
        """All of the message."""
        self.in_body, self._head_bytes, self._silent_bytes = False, 0, 0
