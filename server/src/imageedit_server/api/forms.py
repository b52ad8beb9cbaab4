"""multipart/form-data, from a whole body in memory to its parts. Blocking: call it in a thread.

Starlette's own parser spools to disk, which a read-only container has not.
The body's size is limited before it comes here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from imageedit_server.errors import InvalidInput

MAX_PARTS = 64
CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One field; file name and type that the client gave are of no interest."""

    name: str
    data: bytes = field(repr=False)


def parts_of(body: bytes, content_type: str) -> list[Part]:
    """The parts in their order.

    Raises:
        InvalidInput: not multipart/form-data, malformed, cut off, or too many parts.
    """
    kind, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if kind != b"multipart/form-data" or not boundary:
        raise InvalidInput("Send the request as multipart/form-data, as the OpenAI client does.", code="invalid_form")
    collector = _Collector()
    try:
        parser = MultipartParser(
            boundary,
            {
                "on_part_begin": collector.part_begins,
                "on_part_data": collector.part_data,
                "on_part_end": collector.part_ends,
                "on_header_field": collector.header_name,
                "on_header_value": collector.header_value,
                "on_header_end": collector.header_ends,
                "on_end": collector.form_ends,
            },
        )
        for start in range(0, len(body), CHUNK_BYTES):
            parser.write(body[start : start + CHUNK_BYTES])
        parser.finalize()
    except FormParserError as error:
        raise InvalidInput(f"The form is malformed ({error}).", code="invalid_form") from error
    if not collector.complete:
        raise InvalidInput("The form is cut off: its closing boundary is missing.", code="invalid_form")
    return collector.parts


class _Collector:
    """The parser's callbacks."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.complete = False
        self._name = ""
        self._data = bytearray()
        self._header = b""
        self._value = b""

    def part_begins(self) -> None:
        if len(self.parts) >= MAX_PARTS:
            raise InvalidInput(f"The form has more than {MAX_PARTS} parts.", code="invalid_form")
        self._name = ""
        self._data = bytearray()

    def header_name(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def header_ends(self) -> None:
        if self._header.lower() == b"content-disposition":
            _, options = parse_options_header(self._value)
            self._name = options.get(b"name", b"").decode("utf-8", "replace")
        self._header = self._value = b""

    def part_data(self, data: bytes, start: int, end: int) -> None:
        self._data += data[start:end]

    def part_ends(self) -> None:
        if not self._name:
            raise InvalidInput("A part of the form has no name.", code="invalid_form")
        self.parts.append(Part(name=self._name, data=bytes(self._data)))

    def form_ends(self) -> None:
        self.complete = True
