"""Colour profiles made by hand, and what their colours are in sRGB by the formulas of the standards."""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass

Triple = tuple[float, float, float]

D50: Triple = (0.9642, 1.0, 0.8249)
# From XYZ at D50 to linear sRGB.
TO_SRGB = (
    (3.1338561, -1.6168667, -0.4906146),
    (-0.9787684, 1.9161415, 0.0334540),
    (0.0719453, -0.2289914, 1.4052427),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Primaries:
    """A space of red, green and blue: XYZ at D50 of each, and the exponent of its values; 0 is the curve of sRGB."""

    red: Triple
    green: Triple
    blue: Triple
    gamma: float

    def srgb(self, colour: tuple[int, int, int]) -> tuple[int, ...]:
        """A colour of this space in sRGB."""
        linear = [self._linear(value / 255) for value in colour]
        columns = (self.red, self.green, self.blue)
        xyz = [sum(column[row] * part for column, part in zip(columns, linear, strict=True)) for row in range(3)]
        return _srgb_of_xyz(xyz)

    def _linear(self, value: float) -> float:
        return float(value**self.gamma) if self.gamma else _linear_of_srgb(value)

    def curve(self) -> bytes:
        """The curve as a table."""
        table = [round(65535 * self._linear(index / 1023)) for index in range(1024)]
        return b"curv" + bytes(4) + struct.pack(">I1024H", 1024, *table)


SRGB = Primaries(
    red=(0.43607, 0.22249, 0.01392), green=(0.38515, 0.71687, 0.09708), blue=(0.14307, 0.06061, 0.71410), gamma=0
)
DISPLAY_P3 = Primaries(
    red=(0.51512, 0.24120, -0.00105), green=(0.29198, 0.69225, 0.04189), blue=(0.15710, 0.06657, 0.78407), gamma=0
)
ADOBE_RGB = Primaries(
    red=(0.60974, 0.31111, 0.01947), green=(0.20528, 0.62567, 0.06087), blue=(0.14919, 0.06322, 0.74457), gamma=2.19922
)
# Lightness and colour of each mixture of cyan, magenta and yellow at full strength, as of some press.
INKS: dict[tuple[int, int, int], Triple] = {
    (0, 0, 0): (100, 0, 0),
    (1, 0, 0): (58, -30, -45),
    (0, 1, 0): (50, 65, -4),
    (0, 0, 1): (90, -5, 80),
    (0, 1, 1): (50, 55, 40),
    (1, 0, 1): (52, -55, 25),
    (1, 1, 0): (30, 20, -40),
    (1, 1, 1): (25, 0, 0),
}


def rgb_profile(space: Primaries) -> bytes:
    """A profile of a screen."""
    points = {b"rXYZ": space.red, b"gXYZ": space.green, b"bXYZ": space.blue, b"wtpt": D50}
    tags = {name: b"XYZ " + bytes(4) + _fixed(*point) for name, point in points.items()}
    curve = space.curve()
    return _profile(b"mntr", b"RGB ", b"XYZ ", tags | {b"rTRC": curve, b"gTRC": curve, b"bTRC": curve})


def grey_profile(gamma: float) -> bytes:
    """A profile of grey values."""
    space = Primaries(red=D50, green=D50, blue=D50, gamma=gamma)
    point = b"XYZ " + bytes(4) + _fixed(*D50)
    return _profile(b"mntr", b"GRAY", b"XYZ ", {b"wtpt": point, b"kTRC": space.curve()})


def cmyk_profile() -> bytes:
    """A profile of the press of `INKS`, with the corners of its space alone; black is black."""
    table = bytearray()
    for cyan, magenta, yellow, black in itertools.product((0, 1), repeat=4):
        lightness, a, b = INKS[(cyan, magenta, yellow)]
        lightness, a, b = (part * (1 - black) for part in (lightness, a, b))
        table += bytes((round(lightness * 2.55), round(a + 128), round(b + 128)))
    line = bytes(range(256))
    head = b"mft1" + bytes(4) + bytes((4, 3, 2, 0)) + _fixed(1, 0, 0, 0, 1, 0, 0, 0, 1)
    return _profile(b"prtr", b"CMYK", b"Lab ", {b"A2B0": head + 4 * line + bytes(table) + 3 * line})


def srgb_of_lab(lab: Triple) -> tuple[int, ...]:
    """A colour of CIELAB at D50 in sRGB."""
    y = (lab[0] + 16) / 116
    parts = (y + lab[1] / 500, y, y - lab[2] / 200)
    return _srgb_of_xyz(
        [
            white * (part**3 if part > 6 / 29 else 3 * (6 / 29) ** 2 * (part - 4 / 29))
            for white, part in zip(D50, parts, strict=True)
        ]
    )


def _srgb_of_xyz(xyz: list[float]) -> tuple[int, ...]:
    linear = [sum(weight * part for weight, part in zip(row, xyz, strict=True)) for row in TO_SRGB]
    return tuple(round(255 * _srgb_of_linear(min(1.0, max(0.0, value)))) for value in linear)


def _linear_of_srgb(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)


def _srgb_of_linear(value: float) -> float:
    return 12.92 * value if value <= 0.0031308 else float(1.055 * value ** (1 / 2.4) - 0.055)


def _fixed(*values: float) -> bytes:
    return b"".join(struct.pack(">i", round(value * 65536)) for value in values)


def _profile(kind: bytes, space: bytes, connection: bytes, tags: dict[bytes, bytes]) -> bytes:
    name = b"made by hand\0"
    tags = {b"desc": b"desc" + bytes(4) + struct.pack(">I", len(name)) + name + bytes(78), **tags}
    index, body = struct.pack(">I", len(tags)), b""
    for tag, data in tags.items():
        index += struct.pack(">4sII", tag, 132 + 12 * len(tags) + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    size = 128 + len(index) + len(body)
    head = struct.pack(">I4sI4s4s4s", size, b"", 0x02400000, kind, space, connection)
    head += struct.pack(">6H4s", 2026, 1, 1, 0, 0, 0, b"acsp")
    head = head.ljust(68, b"\0") + _fixed(*D50)
    return head.ljust(128, b"\0") + index + body
