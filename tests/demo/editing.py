"""The demo's edit: an ordinary OpenAI client, a drawn picture, and a check that the answer did what was asked."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from pathlib import Path

import httpx2
import openai
from PIL import Image, ImageDraw

from support.system import BACKGROUND_TOLERANCE

SIDE_PX = 128
PROMPT = "make the background blue"
WANTED_RGB = (38, 84, 214)
"""The blue that the tiny checkpoint was trained to paint."""
CORNER_PX = 20


def draw_picture() -> bytes:
    """A mug on a plain beige ground, as PNG: the kind of picture the tiny checkpoint knows."""
    scale = 2
    image = Image.new("RGB", (SIDE_PX * scale, SIDE_PX * scale), (205, 195, 180))
    draw = ImageDraw.Draw(image)
    draw.ellipse((64, 176, 192, 216), fill=(150, 142, 131))
    draw.ellipse((156, 98, 204, 158), outline=(150, 30, 30), width=12)
    draw.rounded_rectangle((78, 76, 170, 196), radius=14, fill=(200, 40, 40))
    draw.ellipse((78, 66, 170, 90), fill=(225, 120, 110))
    buffer = io.BytesIO()
    image.resize((SIDE_PX, SIDE_PX), Image.Resampling.LANCZOS).save(buffer, "PNG")
    return buffer.getvalue()


@dataclass(frozen=True, kw_only=True, slots=True)
class Edited:
    """What one edit gave."""

    picture: bytes
    revision: str
    background_rgb: tuple[int, int, int]

    @property
    def obeyed(self) -> bool:
        """The corners have the colour that the prompt asked for."""
        return max(abs(a - b) for a, b in zip(self.background_rgb, WANTED_RGB, strict=True)) <= BACKGROUND_TOLERANCE


def edit(*, base_url: str, model: str, picture: bytes) -> Edited:
    """One edit by the `openai` package, retries off."""
    with httpx2.Client(trust_env=False) as transport:
        client = openai.OpenAI(base_url=base_url, api_key="none", max_retries=0, http_client=transport, timeout=120)
        answer = client.images.edit(model=model, image=("mug.png", picture, "image/png"), prompt=PROMPT)
    if not answer.data or not answer.data[0].b64_json:
        raise RuntimeError("the answer holds no picture")
    edited = base64.b64decode(answer.data[0].b64_json)
    return Edited(
        picture=edited,
        revision=str((answer.model_extra or {}).get("revision")),
        background_rgb=corner_colour(edited),
    )


def corner_colour(picture: bytes) -> tuple[int, int, int]:
    """The mean colour of the two upper corners, where the drawing shows nothing but background."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    width = image.width
    pixels = [
        image.getpixel((x, y)) for y in range(CORNER_PX) for x in (*range(CORNER_PX), *range(width - CORNER_PX, width))
    ]
    means = [round(sum(p[channel] for p in pixels) / len(pixels)) for channel in range(3)]  # type: ignore[index, misc]
    return (means[0], means[1], means[2])


def save(folder: Path, name: str, picture: bytes) -> Path:
    """Write a picture, and say where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(picture)
    return folder / name
