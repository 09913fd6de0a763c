"""Progress of runs without a screen, printed without waiting for the reader."""

from __future__ import annotations

import contextlib
import io
import os
import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from ccplay.report.terminal.terminal_tables import ReceiverLines
from ccplay.state.lab_state import LabState
from ccplay.traffic.base import LogEntry
from ccplay.units import format_clock
from ccplay.visible import printable

# --- prints in a thread; drops text if too much waits for the reader ------------------------------

_MOST = 1 << 18
"""Largest number of bytes that wait for the reader: a few thousand lines of a run's log."""

_DROPPED = "… some lines are missing here: they were not read in time\n"


class Printer(io.TextIOBase):
    """A text file over the descriptor of a terminal, pipe or file; used in a ``with`` statement.

    A paused terminal or a slow pipe delays nothing before the end of the block.
    """

    def __init__(self, fd: int, encoding: str, patience_s: float | None) -> None:
        """Open the file; ``patience_s`` limits the wait for the reader at the end; None doesn't."""
        self._fd = fd
        self._encoding = encoding
        self._patience_s = patience_s
        self._waiting: list[bytes] = []
        self._size = 0
        self._dropped = False
        self._ending = False
        self._broken = False
        self._changed = threading.Condition()
        # A daemon, because a blocked write can't be cancelled.
        threading.Thread(target=self._write_out, name="printer", daemon=True).start()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Encoding of the characters."""
        return self._encoding

    def isatty(self) -> bool:
        """Return whether the descriptor is a terminal."""
        return os.isatty(self._fd)

    def writable(self) -> bool:
        """Return True: the file can be written to."""
        return True

    def write(self, text: str, /) -> int:
        """Queue a piece of text, or drop it as a whole if too much waits already."""
        data = text.encode(self._encoding, "replace")
        with self._changed:
            if self._size + len(data) > _MOST:
                self._dropped = True
            elif not self._broken:
                self._put(data)
        return len(text)

    def drain(self, within_s: float | None) -> None:
        """Wait until everything is written, up to a timeout; None waits forever."""
        with self._changed:
            self._changed.wait_for(lambda: not self._size, within_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.drain(self._patience_s)
        with self._changed:
            self._ending = True
            self._changed.notify_all()

    def _put(self, data: bytes) -> None:
        self._waiting.append(data)
        self._size += len(data)
        self._changed.notify_all()

    def _write_out(self) -> None:
        """Write the queued text until the end, or until writing fails."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ending)
                if not self._waiting:
                    return
                data = b"".join(self._waiting)
                self._waiting.clear()
            try:
                self._write_whole(data)
            except OSError:
                self._give_up()
                return
            with self._changed:
                self._size -= len(data)
                if self._dropped and not self._waiting:
                    self._dropped = False
                    self._put(_DROPPED.encode(self._encoding, "replace"))
                self._changed.notify_all()

    def _write_whole(self, data: bytes) -> None:
        """Write to the descriptor itself: a stream would hold its lock while the reader stalls."""
        rest = memoryview(data)
        while rest:
            with contextlib.suppress(BlockingIOError):
                rest = rest[os.write(self._fd, rest) :]
                continue
            select.select([], [self._fd], [])

    def _give_up(self) -> None:
        """Drop further output, because the terminal is gone or the disk full; the run continues."""
        with self._changed:
            self._broken = True
            self._waiting.clear()
            self._size = 0
            self._changed.notify_all()


# --- progress of runs without a screen: lines, and bars below them on a terminal ------------------

_STYLES = {"error": "red", "warning": "yellow", "mark": "bold", "applied": "cyan"}
_REFRESH_S = 0.2
_NAME_WIDTH = 38


class ProgressDisplay:
    """Progress on stderr; used in a ``with`` statement, which restores the terminal at its end.

    With ``story``, every event of every run is a line; otherwise only errors and warnings are.
    With ``receiver``, each second of each run is also a line: the bytes of every flow.
    """

    def __init__(
        self, console: Console, runs: int, *, story: bool = True, receiver: bool = False
    ) -> None:
        self._console = console
        self._runs = runs
        self._overall: TaskID | None = None
        self._shown = (0, 0, "")
        self.story = story
        self.receiver = receiver
        name = Column(no_wrap=True, overflow="ellipsis", max_width=_NAME_WIDTH)
        left = Column(no_wrap=True, overflow="ellipsis")
        self.bars = Progress(
            TextColumn("{task.description}", table_column=name, markup=False),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[left]}", table_column=left, markup=False),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )

    @property
    def live(self) -> bool:
        """Whether there are bars, which are shown only on a terminal."""
        return self._console.is_terminal

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Hide the bars and show the cursor while something else uses the terminal."""
        self.bars.stop()
        yield
        self.bars.start()

    def begin(self, name: str, duration_s: float, *, number: int = 1, exact: bool = True) -> Lane:
        """Show that a run begins, and return its line; if not ``exact``, it may end earlier."""
        if self.story:
            many = f"case {number} of {self._runs}: " if self._runs > 1 else ""
            self.print(f"{many}{name}", "bold")
        lane = Lane(self, name, duration_s, exact=exact)
        if self._overall is not None:
            # The bar of all runs is the last one, and bars keep the order in which they were added.
            self.bars.remove_task(self._overall)
            self._overall = None
            self.overall(*self._shown)
        return lane

    def print(self, text: str, style: str = "") -> None:
        """Print a message about all runs above the bars."""
        self.show(Text(printable(text), style=style))

    def show(self, line: Text) -> None:
        """Print a line above the bars."""
        self._console.print(line, soft_wrap=not self._console.is_terminal)

    def overall(self, done: int, total: int, left: str) -> None:
        """Show the progress of all runs."""
        self._shown = (done, total, left)
        if total < 2:
            return
        if self._overall is None:
            self._overall = self.bars.add_task("", left="")
        self.bars.update(
            self._overall,
            description=f"{done} of {total} runs",
            completed=done,
            total=total,
            left=left,
        )


class Lane:
    """A run in progress, with its own line on a terminal."""

    def __init__(
        self, display: ProgressDisplay, name: str, duration_s: float, *, exact: bool
    ) -> None:
        self._display = display
        self._name = name
        self._duration_s = duration_s
        self._limit = "" if exact else "at most "
        self._printed = 0
        self._drawn = 0.0
        self._state: LabState | None = None
        self._receiver = ReceiverLines() if display.receiver else None
        self._task = display.bars.add_task(f"{name}", total=duration_s, left="starting")

    def update(self, state: LabState) -> None:
        """Print the events since the last call, and update the line on the terminal."""
        fresh = state.log[self._printed :]
        self._printed = len(state.log)
        self._state = state
        self._print_receiver(state, at_once=bool(fresh))
        for entry in fresh:
            self._print_entry(entry)
        # Events arrive far more often than the line needs an update.
        if (now := time.monotonic()) - self._drawn < _REFRESH_S:
            return
        self._drawn = now
        if state.ready_at is None:
            left = state.building.step if state.building else "starting"
            self._display.bars.update(self._task, left=left)
            return
        elapsed = state.now - state.ready_at
        remaining = max(self._duration_s - elapsed, 0)
        self._display.bars.update(
            self._task, completed=elapsed, left=f"{self._limit}{remaining:.0f} s left"
        )

    def end(self) -> None:
        """Print the receiver's last lines, and remove the run's line."""
        if self._state is not None:
            self._print_receiver(self._state, at_once=True)
        self._display.bars.remove_task(self._task)

    def _print_receiver(self, state: LabState, *, at_once: bool) -> None:
        if self._receiver is not None:
            whose = "" if self._display.story else f"{self._name}: "
            for line in self._receiver.fresh(state, at_once=at_once):
                self._display.show(Text(whose + line))

    def _print_entry(self, entry: LogEntry) -> None:
        if self._display.story:
            line = Text(f"  {format_clock(entry.t)}  ", style="dim")
            line.append(entry.text, style=_STYLES.get(entry.kind, "not dim"))
            self._display.show(line)
        elif entry.kind in ("error", "warning"):
            line = Text(f"{self._name}, {format_clock(entry.t)}: ", style="dim")
            line.append(entry.text, style=_STYLES[entry.kind])
            self._display.show(line)


def roughly(seconds: float) -> str:
    """Return the remaining time as text, rounded as an estimate: ``about 3 min left``."""
    if seconds < 10:
        return "a few seconds left"
    if seconds < 90:
        return f"about {round(seconds, -1):.0f} s left"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"about {minutes} min left"
    return f"about {minutes // 60} h {minutes % 60:02d} min left"
