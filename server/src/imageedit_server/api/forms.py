"""multipart/form-data, from a whole body in memory to its parts. Blocking: call it in a thread.

The body's size is limited before it comes here; what it makes this module do is limited here. Parsers that take a
body as it comes look at each byte that could begin a boundary: a crafted body keeps them busy for seconds. With the
whole body at hand a boundary is searched for, as often as there are parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from python_multipart.multipart import parse_options_header

from imageedit_server.api.fields import invalid
from imageedit_server.api.slices import find
from imageedit_server.errors import InvalidInput

MAX_PARTS = 64
MAX_BOUNDARY_BYTES = 200
MAX_PART_HEAD_BYTES = 4096
# Of all fields but files: the longest is a prompt of 4000 characters.
MAX_TEXT_BYTES = 64 * 1024
FILE_FIELDS = ("image", "image[]", "mask")
LINE_END = b"\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One field; file name and type that the client gave are of no interest."""

    name: str
    data: bytes = field(repr=False)


def parts_of(body: bytes, content_type: str) -> list[Part]:
    """The parts in their order.

    Raises:
        InvalidInput: not multipart/form-data, malformed, cut off, too many parts, or one too large.
    """
    parts: list[Part] = []
    for begin, end in _spans(body, b"--" + _boundary(content_type)):
        if len(parts) == MAX_PARTS:
            raise _malformed(f"The form has more than {MAX_PARTS} parts.")
        parts.append(_part(body, begin, end))
    return parts


def _boundary(content_type: str) -> bytes:
    kind, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not 0 < len(boundary) <= MAX_BOUNDARY_BYTES:
        raise _malformed("Send the request as multipart/form-data, as the OpenAI client does.")
    return boundary


def _spans(body: bytes, delimiter: bytes) -> Iterator[tuple[int, int]]:
    """Begin and end of each part, its headers included: what lies between two delimiters, each on its own line."""
    at = 0
    if not body.startswith(delimiter):
        at = find(body, LINE_END + delimiter, 0) + len(LINE_END)
        if at < len(LINE_END):
            raise _cut_off()
    while True:
        at += len(delimiter)
        if body.startswith(b"--", at):
            return
        begin = body.find(LINE_END, at, at + MAX_PART_HEAD_BYTES)
        if begin < 0 or body[at:begin].strip(b" \t"):
            raise _cut_off() if at + len(LINE_END) > len(body) else _malformed("The form is malformed at a boundary.")
        # From the line end itself: the next delimiter's may be the same, in a part that has nothing.
        following = find(body, LINE_END + delimiter, begin)
        if following < 0:
            raise _cut_off()
        yield begin + len(LINE_END), following
        at = following + len(LINE_END)


def _part(body: bytes, begin: int, end: int) -> Part:
    head_end = body.find(LINE_END * 2, begin, begin + MAX_PART_HEAD_BYTES)
    # Without content the empty line ends where the next delimiter's line begins.
    if not 0 <= head_end <= end - len(LINE_END):
        raise _malformed("A part of the form has no end of its headers.")
    name = _name(body[begin:head_end])
    data_begin = head_end + 2 * len(LINE_END)
    if name not in FILE_FIELDS and end - data_begin > MAX_TEXT_BYTES:
        raise invalid(name[:100], f"{name[:100]} is longer than {MAX_TEXT_BYTES} bytes.")
    return Part(name=name, data=body[data_begin:end])


def _name(head: bytes) -> str:
    for line in head.split(LINE_END):
        header, _, value = line.partition(b":")
        if header.strip().lower() == b"content-disposition":
            _, options = parse_options_header(value.strip())
            if options.get(b"name"):
                return options[b"name"].decode("utf-8", "replace")
    raise _malformed("A part of the form has no name.")


def _cut_off() -> InvalidInput:
    return _malformed("The form is cut off: its closing boundary is missing.")


def _malformed(message: str) -> InvalidInput:
    return InvalidInput(message, code="invalid_form")
