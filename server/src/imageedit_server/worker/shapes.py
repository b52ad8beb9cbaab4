"""Sizes of pictures, and the shapes of edits: what a card has kernels for."""

import re
from dataclasses import dataclass
from typing import Self

_SIZE = re.compile(r"([1-9]\d{0,4})x([1-9]\d{0,4})")


@dataclass(frozen=True, slots=True, order=True)
class Size:
    """Width and height of a picture."""

    width_px: int
    height_px: int

    def __str__(self) -> str:
        return f"{self.width_px}x{self.height_px}"

    @property
    def area_px(self) -> int:
        """Number of pixels."""
        return self.width_px * self.height_px

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `768x576`.

        Raises:
            ValueError: the text is not `<width>x<height>` in pixels.
        """
        match = _SIZE.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is not a size; write width and height in pixels, such as 768x576")
        return cls(int(match[1]), int(match[2]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What decides which kernels an edit needs: its size, its number of pictures, and classifier-free guidance.

    `references` counts all pictures, 0 for a picture from text alone. A mask is none of it: a model that takes one
    computes the same with and without.
    """

    size: Size
    references: int = 1
    cfg: bool = False

    def __str__(self) -> str:
        pictures = f" with {self.references} pictures" if self.references > 1 else ""
        if self.references == 0:
            pictures = " from text"
        return f"{self.size}{pictures}{' and a negative prompt' if self.cfg else ''}"
