"""What lies around a picture that does not fill its frame: the picture's own edges, repeated."""

from __future__ import annotations

from PIL import Image

from imageedit_server.api.geometry import Placement


def padded(picture: Image.Image, placement: Placement) -> Image.Image:
    """Repeat the edge pixels outwards: a black or grey border would be content to the model."""
    left, top, right, bottom = placement.box
    width, height = placement.candidate.width_px, placement.candidate.height_px
    if (width, height) == picture.size:
        return picture
    frame = Image.new(picture.mode, (width, height))
    frame.paste(picture, (left, top))
    for edge, strip in (
        ((left, top, left + 1, bottom), (0, top, left, bottom)),
        ((right - 1, top, right, bottom), (right, top, width, bottom)),
    ):
        _stretch(frame, edge, strip)
    for edge, strip in (
        ((0, top, width, top + 1), (0, 0, width, top)),
        ((0, bottom - 1, width, bottom), (0, bottom, width, height)),
    ):
        _stretch(frame, edge, strip)
    return frame


def _stretch(picture: Image.Image, edge: tuple[int, int, int, int], strip: tuple[int, int, int, int]) -> None:
    size = (strip[2] - strip[0], strip[3] - strip[1])
    if size[0] > 0 and size[1] > 0:
        picture.paste(picture.crop(edge).resize(size, Image.Resampling.NEAREST), strip[:2])
