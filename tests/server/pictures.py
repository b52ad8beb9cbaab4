"""Small product pictures, drawn as the demo model knows them: one object on a plain background."""

from dataclasses import dataclass, replace

from PIL import Image, ImageDraw, ImageStat

Colour = tuple[int, int, int]

RED: Colour = (214, 40, 40)
GREEN: Colour = (46, 160, 67)
BLUE: Colour = (38, 84, 214)
YELLOW: Colour = (246, 208, 40)
WHITE: Colour = (250, 250, 250)

_SIDE_PX = 128
_OVERSAMPLING = 2
_CORNER_PX = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A mug or a box (`kind`) of one colour on a plain background."""

    kind: str = "mug"
    colour: Colour = YELLOW
    background: Colour = GREEN

    def on(self, background: Colour) -> "Scene":
        """The same object on another background: what a perfect edit would give."""
        return replace(self, background=background)

    def draw(self) -> Image.Image:
        """Draw it with soft edges."""
        side_px = _SIDE_PX * _OVERSAMPLING
        image = Image.new("RGB", (side_px, side_px), self.background)
        pen = _Pen(image)
        pen.ellipse(-34, 34, 34, 46, _mix(self.background, (0, 0, 0), 0.3))  # shadow
        {"mug": self._draw_mug, "box": self._draw_box}[self.kind](pen)
        return image.resize((_SIDE_PX, _SIDE_PX), Image.Resampling.BOX)

    def _draw_mug(self, pen: "_Pen") -> None:
        light, dark = _mix(self.colour, (255, 255, 255), 0.35), _mix(self.colour, (0, 0, 0), 0.28)
        pen.ring(17, -17, 41, 16, dark)
        pen.rounded(-25, -29, 25, 40, self.colour)
        pen.ellipse(-25, -34, 25, -24, light)
        pen.ellipse(-21, -32, 21, -26, dark)

    def _draw_box(self, pen: "_Pen") -> None:
        light, dark = _mix(self.colour, (255, 255, 255), 0.35), _mix(self.colour, (0, 0, 0), 0.28)
        pen.polygon([(-27, -20), (-15, -32), (35, -32), (27, -20)], light)
        pen.polygon([(27, -20), (35, -32), (35, 30), (27, 40)], dark)
        pen.polygon([(-27, -20), (27, -20), (27, 40), (-27, 40)], self.colour)


def corner_colour(image: Image.Image) -> Colour:
    """Mean colour of the four corners: the background, wherever the object stands."""
    width, height = image.size
    corners = Image.new("RGB", (2 * _CORNER_PX, 2 * _CORNER_PX))
    for column, left in enumerate((0, width - _CORNER_PX)):
        for row, top in enumerate((0, height - _CORNER_PX)):
            part = image.crop((left, top, left + _CORNER_PX, top + _CORNER_PX))
            corners.paste(part, (column * _CORNER_PX, row * _CORNER_PX))
    red, green, blue = (round(mean) for mean in ImageStat.Stat(corners).mean)
    return red, green, blue


def centre_colour(image: Image.Image) -> Colour:
    """Mean colour of the picture's middle: the object."""
    width, height = image.size
    left, top = width // 2 - 8, height // 2
    red, green, blue = (round(mean) for mean in ImageStat.Stat(image.crop((left, top, left + 16, top + 16))).mean)
    return red, green, blue


def far_apart(one: Colour, other: Colour) -> int:
    """Largest difference of a channel, of 255."""
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


class _Pen:
    """Draws in a coordinate system whose origin is the picture's middle and whose unit is one final pixel."""

    def __init__(self, image: Image.Image) -> None:
        self._draw = ImageDraw.Draw(image)
        self._middle = image.width / 2

    def _at(self, *values: float) -> list[float]:
        return [self._middle + value * _OVERSAMPLING for value in values]

    def ellipse(self, left: float, top: float, right: float, bottom: float, colour: Colour) -> None:
        self._draw.ellipse(self._at(left, top, right, bottom), fill=colour)

    def ring(self, left: float, top: float, right: float, bottom: float, colour: Colour) -> None:
        self._draw.ellipse(self._at(left, top, right, bottom), outline=colour, width=6 * _OVERSAMPLING)

    def rounded(self, left: float, top: float, right: float, bottom: float, colour: Colour) -> None:
        self._draw.rounded_rectangle(self._at(left, top, right, bottom), radius=7 * _OVERSAMPLING, fill=colour)

    def polygon(self, points: list[tuple[float, float]], colour: Colour) -> None:
        self._draw.polygon([(self._at(x)[0], self._at(y)[0]) for x, y in points], fill=colour)


def _mix(one: Colour, other: Colour, share: float) -> Colour:
    red, green, blue = (round(a * (1 - share) + b * share) for a, b in zip(one, other, strict=True))
    return red, green, blue
