"""Draws the moving picture of README and of the site from a recording; ``make picture`` runs it.

``python docs/pictures.py RECORDING OUT.gif`` draws thirty seconds, four frames a second.
"""

from __future__ import annotations

import asyncio
import io
import sys
from pathlib import Path

from PIL import Image

from ccplay.ui.offscreen import PictureOptions, offscreen
from ccplay.ui.pictures import png

LENGTH_S, STEP_S = 33.0, 0.25
"""Recorded seconds that the picture shows, and seconds between two frames."""

SPEED = 1.1
"""Recorded seconds for each second of the picture, which so lasts 30."""

WIDTH = 960
"""Width of the picture in pixels."""

COLOURS = 96
"""Colours of the picture: those of lines and text, and steps between them and the background."""

SIZE = (104, 32)
"""Columns and rows of the screen."""


async def _frames(recording: Path) -> list[Image.Image]:
    found = []
    setting = PictureOptions(size=SIZE, look="dark", window=30.0)
    async with offscreen(recording, "Playground", setting) as shown:
        for number in range(1, int(LENGTH_S / STEP_S) + 1):
            await shown.show(number * STEP_S)
            drawn = Image.open(io.BytesIO(png(shown.frame))).convert("RGB")
            height = round(drawn.height * WIDTH / drawn.width)
            found.append(drawn.resize((WIDTH, height), Image.Resampling.LANCZOS))
    return found


def _palette(frames: list[Image.Image]) -> Image.Image:
    """Return an image with the palette: half of it the commonest colours, exactly as they are."""
    strip = Image.new("RGB", (WIDTH, sum(each.height for each in frames)))
    for number, each in enumerate(frames):
        strip.paste(each, (0, number * each.height))
    found = sorted(strip.getcolors(strip.width * strip.height) or [], reverse=True)
    common = [colour for _, colour in found[: COLOURS // 2]]
    between = strip.quantize(COLOURS // 2, Image.Quantize.MAXCOVERAGE).getpalette() or []
    values = [level for colour in common for level in colour] + between[: COLOURS // 2 * 3]
    palette = Image.new("P", (1, 1))
    palette.putpalette(values)
    return palette


def write(recording: Path, out: Path) -> None:
    """Draw ``recording`` as an animated GIF, with the colours of six of its moments."""
    frames = asyncio.run(_frames(recording))
    palette = _palette(frames[:: len(frames) // 6])
    drawn = [each.quantize(palette=palette, dither=Image.Dither.NONE) for each in frames]
    times = [round(STEP_S / SPEED * 100) * 10] * (len(drawn) - 1) + [3000]
    drawn[0].save(out, save_all=True, append_images=drawn[1:], duration=times, loop=0)
    print(f"{out}: {out.stat().st_size / 1e6:.2f} MB, {len(drawn)} frames")


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
