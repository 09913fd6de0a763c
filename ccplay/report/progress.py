"""What a headless run tells while it goes: every event as a line, and on a terminal a bar below."""

from __future__ import annotations

from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from ccplay.scenario import Case
from ccplay.state import Entry, LabState
from ccplay.units import format_clock

_STYLES = {"error": "red", "warning": "yellow", "mark": "bold", "applied": "cyan"}


class Teller:
    """Progress on stderr; ``with`` it, so that a terminal is left as it was."""

    def __init__(self, console: Console, cases: int) -> None:
        self._console = console
        self._cases = cases
        self._number = 0
        self._told = 0
        self._case: Case | None = None
        self._task: TaskID | None = None
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begin(self, case: Case) -> None:
        """Say that a case begins."""
        self._number += 1
        self._told = 0
        self._case = case
        many = f"case {self._number} of {self._cases}: " if self._cases > 1 else ""
        self._console.print(Text(f"{many}{case.name}", style="bold"))
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task("starting", total=case.duration_s, left="")

    def update(self, state: LabState) -> None:
        """Tell what has happened since the last time."""
        for entry in state.log[self._told :]:
            self._console.print(_line(entry))
        self._told = len(state.log)
        if self._case is None or self._task is None:
            return
        if state.ready_at is None:
            step = state.building.step if state.building else "starting"
            self._bar.update(self._task, description=step)
            return
        elapsed = state.now - state.ready_at
        limit = "at most " if self._case.until != "duration" else ""
        left = max(self._case.duration_s - elapsed, 0)
        self._bar.update(
            self._task,
            completed=elapsed,
            description=f"{self._number}/{self._cases} {self._case.name}",
            left=f"{limit}{left:.0f} s left",
        )


def _line(entry: Entry) -> Text:
    line = Text(f"  {format_clock(entry.t)}  ", style="dim")
    line.append(entry.text, style=_STYLES.get(entry.kind, "not dim"))
    return line
