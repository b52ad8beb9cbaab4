"""From the text of a setting to its value, or to a refusal that names the argument and what it may be."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping

from PIL import ImageColor

from imageedit_server.errors import SettingsInvalid
from imageedit_server.worker.shapes import Size

SIDE_MULTIPLE_PX = 32
MAX_SIDE_PX = 4096
MAX_SIZES = 64
DEFAULT_STEPS_HIGH = 24
_ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def text(given: Mapping[str, str], name: str) -> str:
    """A text that is not empty."""
    value = given[name].strip()
    if not value:
        raise SettingsInvalid(f"--{name} is empty; give a text")
    return value


def one_of(given: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str:
    """One of the allowed words."""
    value = given[name]
    if value not in allowed:
        raise SettingsInvalid(f"--{name} {value!r} is not one of {', '.join(allowed)}")
    return value


def whole(given: Mapping[str, str], name: str, lowest: int, highest: int) -> int:
    """A whole number within the limits."""
    try:
        value = int(given[name])
    except ValueError:
        value = lowest - 1
    if not lowest <= value <= highest:
        raise SettingsInvalid(f"--{name} {given[name]!r} is not a whole number from {lowest} to {highest}")
    return value


def seconds(given: Mapping[str, str], name: str, highest: int, *, lowest: float = 0) -> float:
    """A number of seconds within the limits."""
    try:
        value = float(given[name])
    except ValueError:
        value = -1.0
    if not lowest <= value <= highest:
        raise SettingsInvalid(f"--{name} {given[name]!r} is not a number of seconds from {lowest:g} to {highest}")
    return value


def colour(given: Mapping[str, str], name: str) -> tuple[int, int, int]:
    """Red, green and blue of an opaque colour."""
    found: tuple[int, ...] = ()
    with contextlib.suppress(ValueError):
        found = ImageColor.getrgb(given[name].strip())
    if len(found) != 3:
        raise SettingsInvalid(
            f"--{name} {given[name]!r} is not a colour; write a name of CSS such as white, or #rrggbb"
        )
    return found[0], found[1], found[2]


def digest(text: str) -> str:
    """A digest as the manifest writes it, or nothing."""
    if text and not _DIGEST.fullmatch(text):
        raise SettingsInvalid(f"--manifest-digest {text!r} is not sha256: and 64 hexadecimal digits in lower case")
    return text


def steps_high(given: Mapping[str, str]) -> int:
    """Steps of `quality=high`: never fewer than `--steps`."""
    steps = whole(given, "steps", 2, 200)
    return whole(given, "steps-high", steps, 200) if given["steps-high"] else max(DEFAULT_STEPS_HIGH, steps)


def origins(text: str) -> tuple[str, ...]:
    """Origins that pages may come from."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    for origin in found:
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise SettingsInvalid(f"--cors-origins: {origin!r} is not an origin; write https://pages.example, or *")
    return found


def traces(environ: Mapping[str, str]) -> bool:
    """Whether OpenTelemetry's own variables ask for traces; all others of them are read by its SDK."""
    endpoints = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    disabled = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    elsewhere = environ.get("OTEL_TRACES_EXPORTER", "otlp").strip() not in ("", "otlp")
    return any(environ.get(name, "").strip() for name in endpoints) and not disabled and not elsewhere


def sizes(text: str) -> tuple[Size, ...]:
    """Candidate sizes, each once."""
    found: list[Size] = []
    for part in text.split(","):
        try:
            size = Size.parse(part)
        except ValueError:
            raise SettingsInvalid(f"--sizes {text!r}: {part.strip()!r} is not a size; write 768x768,768x576") from None
        for side_px in (size.width_px, size.height_px):
            if side_px % SIDE_MULTIPLE_PX or not SIDE_MULTIPLE_PX <= side_px <= MAX_SIDE_PX:
                raise SettingsInvalid(
                    f"--sizes {text!r}: side {side_px} of {size} is not a multiple of {SIDE_MULTIPLE_PX}"
                    f" from {SIDE_MULTIPLE_PX} to {MAX_SIDE_PX}"
                )
        if size in found:
            raise SettingsInvalid(f"--sizes {text!r}: {size} is there twice; name each size once")
        found.append(size)
    if len(found) > MAX_SIZES:
        raise SettingsInvalid(f"--sizes has {len(found)} sizes; at most {MAX_SIZES} are warmed up")
    return tuple(found)
