"""The screen of a recording without a terminal: pictures and casts of chosen moments."""

from __future__ import annotations

import io
import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console, RenderableType
from textual.pilot import Pilot
from textual.widget import Widget

from ccplay.errors import RecordingError, UsageError
from ccplay.files import writing
from ccplay.session.archive import read_recording
from ccplay.session.session import Session
from ccplay.share.frames import WINDOW_S, Playhead
from ccplay.stream.sources import ReplaySource
from ccplay.ui.app import CcplayApp
from ccplay.ui.cells import Sheet
from ccplay.ui.pictures import ScreenFrame, frame_of
from ccplay.ui.textual_private import CompositorUpdate, has_undrawn_widgets, must_be_drawn
from ccplay.units import format_clock

# --- the screen of a recording, drawn without a terminal at moments that a program chooses --------

FPS = 10
"""Frames per second, as on a terminal."""

_NUDGE_S = 1e-9
"""Seconds added to a moment, so that float rounding never makes a clock a second slow."""


class PictureOptions(msgspec.Struct, frozen=True):
    """The appearance of the screen in pictures."""

    size: tuple[int, int] = (120, 40)
    """Columns and rows."""
    look: str | None = None
    """Name of a theme; None for the default."""
    ascii: bool = False
    """Whether to draw with plain ASCII only."""
    window: float = WINDOW_S
    """Width of the plots' window in seconds."""
    speed: float = 1.0
    """Speed of playback in recorded seconds per second."""
    ghost: Path | None = None
    """Path of the recording to draw as a ghost; None for no ghost."""


class _App(CcplayApp):
    """An app that records its terminal output."""

    # Textual resolves a relative path against the module of the class.
    CSS_PATH = str(Path(__file__).parent / CcplayApp.CSS_PATH)

    written = ""
    """Terminal output since this text was last emptied."""
    now = 0.0
    """Time of the playhead's clock in seconds."""

    _terminal = Console(file=io.StringIO(), color_system="truecolor", force_terminal=True)

    def adapt_output(self, update: RenderableType | None) -> RenderableType | None:
        """Record what a terminal would receive."""
        adapted = super().adapt_output(update)
        if isinstance(adapted, CompositorUpdate):
            self.written += adapted.render_segments(self._terminal)
        return adapted


class Offscreen:
    """A recording, read completely, on a screen whose clock a program sets; see ``offscreen``."""

    def __init__(self, app: _App, pilot: Pilot[int], options: PictureOptions) -> None:
        self._app = app
        self._pilot = pilot
        self._options = options

    @property
    def end(self) -> float:
        """Last moment of the recording in seconds."""
        return self._app.session.state.now

    @property
    def title(self) -> str:
        """Title of the session."""
        return self._app.session.title

    @property
    def colours(self) -> tuple[str, str, tuple[str, ...]]:
        """Foreground, background and the 16 colours of a terminal with this theme, ``#rrggbb``."""
        theme, ansi = self._app.appearance.look.textual_theme, self._app.ansi_theme
        palette = tuple("#{:02x}{:02x}{:02x}".format(*ansi.ansi_colors[n]) for n in range(16))
        return theme.foreground or "#ffffff", theme.background or "#000000", palette

    @property
    def frame(self) -> ScreenFrame:
        """The present content of the screen."""
        return frame_of(self._app)

    def check(self, t: float) -> None:
        """Raise ``UsageError`` if the recording ends before ``t``."""
        if t > self.end:
            ends = f"the recording ends at {format_clock(self.end)} ({self.end:.1f} s)"
            raise UsageError(f"nothing is recorded at {t:g} s: {ends}; name an earlier moment")

    async def show(self, t: float) -> None:
        """Show the moment ``t``, as ``ccplay replay --at`` does. Raises ``UsageError``."""
        self.check(t)
        main, options = self._app.main, self._options
        head = Playhead(recorded=True, t=t, width=options.window, speed=options.speed)
        head.scrub(0, t)
        head.running = True
        main.seek(head)
        await self._settle()

    async def play(self, start: float, end: float) -> AsyncIterator[tuple[float, str]]:
        """Play from ``start`` to ``end``; yield seconds since the first frame, and terminal output.

        The first output is a whole screen; frames without changes are left out.
        Raises ``UsageError`` as ``show`` does.
        """
        self.check(end)
        await self.show(start)
        self._app.written = ""
        self._app.screen.refresh()
        await self._settle()
        main, begun, length = self._app.main, self._app.now, (end - start) / self._options.speed
        # Rounded, so that rounding errors of floats do not add a last frame.
        last = math.ceil(round(length * FPS, 6))
        for frame in range(last + 1):
            t = min(frame / FPS, length)
            if frame:
                self._app.now = begun + t + _NUDGE_S
                main.draw()
                if frame == last:
                    # Numbers are redrawn less often than plots; the last frame shows its own.
                    main.redraw()
                await self._settle()
            written, self._app.written = self._app.written, ""
            if written:
                yield t, written

    async def _settle(self) -> None:
        """Wait until everything drawn has reached the screen."""
        await self._pilot.pause(0)
        while not is_settled(self._app):
            await self._pilot.pause(0)


def is_settled(app: CcplayApp) -> bool:
    """Return whether no part of the screen waits for layout, which captions change, or drawing."""
    parts = [*app.screen.walk_children(Widget, with_self=True)]
    # A hidden sheet keeps its old size.
    sheets = [each for each in parts if isinstance(each, Sheet) and each.display]
    if app.main.emptied or any((each.width, each.height) != each.size for each in sheets):
        return False
    return not (has_undrawn_widgets(app.screen) or any(map(must_be_drawn, parts)))


@asynccontextmanager
async def offscreen(
    recording: Path, title: str, options: PictureOptions
) -> AsyncIterator[Offscreen]:
    """Read ``recording`` and show it without a terminal.

    Raises ``RecordingError`` if the recording or the ghost can't be read to its end, and
    ``UsageError`` for an unknown theme.
    """
    session = Session(ReplaySource(recording), title=title)
    app = _App(
        session,
        look=options.look,
        ascii=options.ascii,
        speed=options.speed,
        window=options.window,
        ghost=options.ghost,
    )
    app.main.clock = lambda: app.now
    async with app.run_test(size=options.size) as pilot:
        app.main.shown.playhead.running = False
        await app.workers.wait_for_complete()
        if session.failure is not None:
            raise session.failure
        if options.ghost is not None and app.main.ghosts.shown is None:
            read_recording(options.ghost)
            raise RecordingError(
                f"{options.ghost}: it has nothing to draw as a ghost of {recording}"
            )
        yield Offscreen(app, pilot, options)


# --- A replay as an asciinema file, for a terminal or a web page ----------------------------------
# https://docs.asciinema.org/manual/asciicast/v2/

_BEGIN = "\x1b[?25l\x1b[2J"
"""Codes that prepare a terminal: hide the cursor and clear the screen."""


async def write_cast(shown: Offscreen, path: Path, start: float, end: float, speed: float) -> None:
    """Write the terminal output from ``start`` to ``end`` at ``speed`` recorded seconds per second.

    Raises ``UsageError`` for moments outside the recording, and if ``path`` exists or can't be
    written.
    """
    shown.check(start)
    shown.check(end)
    if start >= end:
        raise UsageError(f"--to ({end:g} s) must be later than the start ({start:g} s)")
    with writing.explained(path, UsageError), writing.written(path) as file:

        def put(value: Any) -> None:
            file.write(json.dumps(value, ensure_ascii=False).encode() + b"\n")

        put(_header(shown, (end - start) / speed))
        begin = _BEGIN
        async for t, text in shown.play(start, end):
            put([round(t, 3), "o", begin + text])
            begin = ""


def _header(shown: Offscreen, duration: float) -> dict[str, Any]:
    ink, paper, palette = shown.colours
    frame = shown.frame
    return {
        "version": 2,
        "width": frame.width,
        "height": frame.height,
        "duration": round(duration, 3),
        "title": f"ccplay {shown.title}",
        "env": {"TERM": "xterm-256color"},
        "theme": {"fg": ink, "bg": paper, "palette": ":".join(palette)},
    }
