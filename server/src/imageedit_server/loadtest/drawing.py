"""The shapes of a chart as SVG or PNG."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import escape

from PIL import Image, ImageDraw, ImageFont

from imageedit_server.loadtest.chart import HEIGHT_PX, WIDTH_PX, Label, Line, Shape

FONT_PX = 13
# Drawn larger and scaled down, because Pillow's lines have no soft edges.
OVERSAMPLED = 2


def save(path: Path, shapes: Iterable[Shape]) -> None:
    """Write the file that its name asks for.

    Raises:
        ValueError: neither .svg nor .png.
        OSError: it cannot be written.
    """
    if path.suffix == ".svg":
        path.write_text(as_svg(shapes), encoding="utf-8")
    elif path.suffix == ".png":
        as_picture(shapes).save(path, "PNG")
    else:
        raise ValueError(f"{path} is neither .svg nor .png")


def as_svg(shapes: Iterable[Shape]) -> str:
    """A stand-alone SVG."""
    size = f'width="{WIDTH_PX}" height="{HEIGHT_PX}" viewBox="0 0 {WIDTH_PX} {HEIGHT_PX}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="{FONT_PX}">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *(_svg(shape) for shape in shapes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def as_picture(shapes: Iterable[Shape]) -> Image.Image:
    """The same as pixels."""
    picture = Image.new("RGB", (WIDTH_PX * OVERSAMPLED, HEIGHT_PX * OVERSAMPLED), "#ffffff")
    drawing = ImageDraw.Draw(picture)
    font = ImageFont.load_default(FONT_PX * OVERSAMPLED)
    for shape in shapes:
        if isinstance(shape, Line):
            _draw_line(drawing, shape)
        else:
            place = (shape.x_px * OVERSAMPLED, shape.y_px * OVERSAMPLED)
            anchor = {"start": "ls", "middle": "ms", "end": "rs"}[shape.anchor]
            drawing.text(place, shape.text, fill=shape.colour, font=font, anchor=anchor)
    return picture.resize((WIDTH_PX, HEIGHT_PX), Image.Resampling.LANCZOS)


def _svg(shape: Shape) -> str:
    match shape:
        case Line(points=((x_px, y_px),)):
            return f'<circle cx="{x_px:.1f}" cy="{y_px:.1f}" r="{shape.width_px / 2:g}" fill="{shape.colour}"/>'
        case Line():
            points = " ".join(f"{x_px:.1f},{y_px:.1f}" for x_px, y_px in shape.points)
            return (
                f'<polyline points="{points}" fill="none" stroke="{shape.colour}" stroke-width="{shape.width_px:g}"/>'
            )
        case Label():
            return (
                f'<text x="{shape.x_px:.1f}" y="{shape.y_px:.1f}" fill="{shape.colour}"'
                f' text-anchor="{shape.anchor}">{escape(shape.text)}</text>'
            )


def _draw_line(drawing: ImageDraw.ImageDraw, line: Line) -> None:
    points = [(x_px * OVERSAMPLED, y_px * OVERSAMPLED) for x_px, y_px in line.points]
    width_px = round(line.width_px * OVERSAMPLED)
    if len(points) > 1:
        drawing.line(points, fill=line.colour, width=width_px, joint="curve")
        return
    ((x_px, y_px),) = points
    radius_px = width_px / 2
    drawing.ellipse((x_px - radius_px, y_px - radius_px, x_px + radius_px, y_px + radius_px), fill=line.colour)
