"""``ccplay replay --picture`` and ``--cast``: draw a recording into files, without a terminal."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.commands import options
from ccplay.errors import UsageError
from ccplay.visible import put

if TYPE_CHECKING:
    from ccplay.ui.pictures.offscreen import Offscreen

_LEAST, _MOST = (80, 24), (500, 200)
"""Columns and rows of the smallest screen that shows everything, and of the largest accepted."""

_WINDOWS = (0.1, 21600.0)
"""Seconds of the shortest and of the longest time span that the plots can show."""


def add_window(parser: argparse.ArgumentParser) -> None:
    """Add the option for the time span of the plots."""
    parser.add_argument(
        "--window",
        type=window,
        default=30.0,
        metavar="SECONDS",
        help="seconds that the plots show, such as 10s (default 30)",
    )


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options for pictures and casts."""
    files = parser.add_argument_group("files, drawn without a terminal")
    files.add_argument(
        "--picture",
        type=options.seconds,
        action="append",
        default=[],
        metavar="T",
        help="draw the screen at T as SVG and PNG; may be repeated",
    )
    files.add_argument(
        "--out",
        type=_picture_file,
        metavar="FILE",
        help="name of the picture, ending in .svg or .png; of several, each name has its moment "
        "(default: ccplay-MOMENT.svg and .png)",
    )
    files.add_argument(
        "--cast",
        type=Path,
        metavar="FILE",
        help="write the replay in asciinema's format (asciicast v2), from --from to --to",
    )
    files.add_argument(
        "--from",
        dest="at",
        type=options.seconds,
        default=argparse.SUPPRESS,
        metavar="T",
        help="with --cast: begin at T, as --at",
    )
    files.add_argument(
        "--to",
        type=options.seconds,
        metavar="T",
        help="with --cast: end at T (default: at the recording's end)",
    )
    files.add_argument(
        "--size",
        type=_size,
        default=(120, 40),
        metavar="COLUMNSxROWS",
        help="size of the screen in these files (default 120x40)",
    )


def window(text: str) -> float:
    """Return the seconds of a time span such as ``10`` or ``10s``. Raises ``ArgumentTypeError``."""
    from ccplay.units import parse_time_us

    try:
        value = float(text) if text.replace(".", "", 1).isdecimal() else parse_time_us(text) / 1e6
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not _WINDOWS[0] <= value <= _WINDOWS[1]:
        raise argparse.ArgumentTypeError(f"must be from 0.1 s to 6 h, not {text}")
    return value


def wanted(arguments: argparse.Namespace) -> bool:
    """Whether a command line asks for files. Raises ``UsageError`` if an option lacks another."""
    if arguments.out is not None and not arguments.picture:
        raise UsageError("--out names a picture: name its moment too, such as --picture 30")
    if arguments.to is not None and arguments.cast is None:
        raise UsageError("--to ends a cast: name its file too, such as --cast race.cast")
    return bool(arguments.picture or arguments.cast)


def draw(arguments: argparse.Namespace, title: str) -> int:
    """Write the files, print their names and return the exit code.

    Raises ``RecordingError`` and ``UsageError``.
    """
    from ccplay.stream.sources import check_recording

    if arguments.ghost is not None:
        check_recording(arguments.ghost)
    return asyncio.run(_draw(arguments, title))


async def _draw(arguments: argparse.Namespace, title: str) -> int:
    from ccplay.ui.pictures.cast import write_cast
    from ccplay.ui.pictures.offscreen import PictureOptions, offscreen

    setting = PictureOptions(
        size=arguments.size,
        look=arguments.theme,
        ascii=arguments.ascii,
        window=arguments.window,
        speed=arguments.speed,
        ghost=arguments.ghost,
    )
    async with offscreen(arguments.recording, title, setting) as shown:
        for t in arguments.picture:
            shown.check(t)
        for t in arguments.picture:
            await shown.show(t)
            _picture(shown, t, arguments.out, several=len(arguments.picture) > 1)
        if arguments.cast is not None:
            end = shown.end if arguments.to is None else arguments.to
            await write_cast(shown, arguments.cast, arguments.at, end, arguments.speed)
            put(arguments.cast)
    return 0


def _picture(shown: Offscreen, t: float, out: Path | None, *, several: bool) -> None:
    from ccplay.files import writing
    from ccplay.ui.pictures.files import DRAWN, moment, stem, write_new

    frame = shown.frame
    if out is None:
        for suffix in DRAWN:
            with writing.explained(Path(f"{stem(t)}{suffix}"), UsageError):
                put(write_new(frame, stem(t), suffix, Path()))
        return
    path = out.with_name(f"{out.stem}-{moment(t)}{out.suffix}") if several else out
    drawn = DRAWN[out.suffix](frame)
    with writing.explained(path, UsageError):
        writing.write(path, drawn)
    put(path)


def _picture_file(text: str) -> Path:
    path = Path(text)
    if path.suffix not in (".svg", ".png"):
        raise argparse.ArgumentTypeError(f"{text} ends neither in .svg nor in .png")
    return path


def _size(text: str) -> tuple[int, int]:
    columns, _, rows = text.lower().partition("x")
    if not (columns.isdecimal() and rows.isdecimal() and len(text) <= 9):
        raise argparse.ArgumentTypeError(f"{text} is not a size such as 120x40")
    size = int(columns), int(rows)
    if not all(a <= b <= c for a, b, c in zip(_LEAST, size, _MOST, strict=True)):
        bounds = "from {}x{} to {}x{}".format(*_LEAST, *_MOST)
        raise argparse.ArgumentTypeError(f"must be {bounds} cells, not {text}")
    return size
