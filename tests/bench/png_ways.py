"""How long PNG takes at 768x768, and how large the files get: Pillow by zlib level and strategy, and our own writer.

    PYTHONPATH=server/src python tests/bench/png_ways.py [FIGURES.json]

Three pictures stand for what a model gives: textured like a photograph, smooth with a sharp object, and flat as a
drawing. Each row is the median of several runs of one thread; files are compared with those of Pillow's default.
"""

from __future__ import annotations

import io
import json
import random
import statistics
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from PIL import Image, ImageChops, ImageDraw, ImageFilter, __version__, features

from imageedit_server.api import png_writer

SIDE_PX = 768
RUNS = 7
DEFAULT_LEVEL = 6
STRATEGIES = {"default": zlib.Z_DEFAULT_STRATEGY, "filtered": zlib.Z_FILTERED, "rle": zlib.Z_RLE}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One way to write one picture."""

    picture: str
    level: int
    strategy: str
    encode_ms: float
    size_kib: float
    of_default: float


def textured() -> Image.Image:
    """Noise at several scales, as grass, cloth and skin have it, under a slow change of light."""
    random.seed(1)
    total = Image.linear_gradient("L").resize((SIDE_PX, SIDE_PX))
    for scale, share in ((1, 0.06), (2, 0.1), (8, 0.2), (32, 0.4)):
        noise = Image.frombytes("L", (SIDE_PX // scale,) * 2, random.randbytes((SIDE_PX // scale) ** 2))
        total = Image.blend(total, noise.resize(total.size, Image.Resampling.BICUBIC), share)
    tints = [total.point(lambda value, gain=gain: int(value * gain)) for gain in (1.0, 0.9, 0.75)]
    return Image.merge("RGB", tints)


def smooth() -> Image.Image:
    """A product on a seamless ground: gradients, one sharp outline, the slight noise of a decoder."""
    ground = Image.linear_gradient("L").resize((SIDE_PX, SIDE_PX)).convert("RGB")
    ImageDraw.Draw(ground).ellipse((200, 150, 560, 640), fill=(190, 60, 40))
    ground = ground.filter(ImageFilter.GaussianBlur(1))
    random.seed(2)
    grain = Image.frombytes("RGB", ground.size, bytes(random.choices((0, 0, 1, 2), k=3 * SIDE_PX * SIDE_PX)))
    return ImageChops.add(ground, grain)


def drawn() -> Image.Image:
    """Few colours in flat fields."""
    picture = Image.new("RGB", (SIDE_PX, SIDE_PX), "white")
    ImageDraw.Draw(picture).rectangle((200, 150, 560, 640), fill=(40, 80, 200), outline="black", width=6)
    return picture


def rows() -> Iterator[Row]:
    """Measure everything."""
    for name, picture in (("textured", textured()), ("smooth", smooth()), ("drawn", drawn())):
        default_bytes = len(written(picture, DEFAULT_LEVEL, zlib.Z_DEFAULT_STRATEGY))
        for strategy, number in STRATEGIES.items():
            for level in (1, 2, 3, 4, 6, 9):
                size_bytes = len(written(picture, level, number))
                yield Row(
                    picture=name,
                    level=level,
                    strategy=strategy,
                    encode_ms=round(median_ms(partial(written, picture, level, number)), 1),
                    size_kib=round(size_bytes / 1024, 1),
                    of_default=round(size_bytes / default_bytes, 3),
                )
        for level in (0, 1, 2, 3):
            size_bytes = len(png_writer.written(picture, level=level))
            yield Row(
                picture=name,
                level=level,
                strategy="ours",
                encode_ms=round(median_ms(partial(png_writer.written, picture, level=level)), 1),
                size_kib=round(size_bytes / 1024, 1),
                of_default=round(size_bytes / default_bytes, 3),
            )


def written(picture: Image.Image, level: int, strategy: int) -> bytes:
    """The file."""
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=level, compress_type=strategy)
    return file.getvalue()


def median_ms(write: Callable[[], bytes]) -> float:
    """Median of several runs."""
    times_ms = []
    for _ in range(RUNS):
        started_s = time.perf_counter()
        write()
        times_ms.append((time.perf_counter() - started_s) * 1000)
    return statistics.median(times_ms)


def main() -> int:
    """Print the table; with a path as argument, write it there as JSON too."""
    print(f"Pillow {__version__}, zlib {features.version('zlib')}, zlib-ng {features.version('zlib_ng')}")
    print(f"{'picture':<10}{'strategy':<10}{'level':>5}{'ms':>8}{'KiB':>9}{'of default':>12}")
    measured = []
    for row in rows():
        measured.append(row)
        print(
            f"{row.picture:<10}{row.strategy:<10}{row.level:>5}{row.encode_ms:>8}{row.size_kib:>9}{row.of_default:>12}"
        )
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps([asdict(row) for row in measured], indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
