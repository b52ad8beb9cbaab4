"""JSON bodies to objects. Blocking: call it in a thread."""

from __future__ import annotations

import json

from imageedit_server.api.slices import more_than
from imageedit_server.errors import InvalidInput

# The parser builds all values in one call, during which nothing else of this process runs: sixty megabytes of `{},`
# take seconds and gigabytes. A request has some thirty values, and as many of these characters as its texts have.
STRUCTURE = b",:[{"
MAX_STRUCTURE = 50_000
# Each escape is a step of the parser, too. Base64 has one in 64 characters when `/` is escaped, as PHP does, and one in
# 76 from line ends.
CHARACTERS_PER_ESCAPE = 16


def object_of(body: bytes) -> dict[str, object]:
    """The object that a body is.

    Raises:
        InvalidInput: it is not JSON, no object, or has far more values than any request.
    """
    if more_than(body, MAX_STRUCTURE, STRUCTURE):
        raise InvalidInput("The JSON has too many values; send one request in a body.", code="invalid_json")
    if more_than(body, MAX_STRUCTURE + len(body) // CHARACTERS_PER_ESCAPE, b"\\"):
        raise InvalidInput("The JSON has too many escapes; send base64 as it is.", code="invalid_json")
    try:
        parsed = json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The body is not JSON: {error}.", code="invalid_json") from None
    if not isinstance(parsed, dict):
        raise InvalidInput("The body must be a JSON object with image and prompt.", code="invalid_json")
    return parsed


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")
