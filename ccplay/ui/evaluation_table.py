"""The table of an evaluation, which fills while its runs finish; Enter replays a row's recording.

The evaluation writes into an ``EvaluationBoard``, which the screen reads on its own tick. A replay
is a program of its own, to which the terminal is lent.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec
from rich.console import RenderableType
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Static

from ccplay.ui.cells import ASCII, UNICODE
from ccplay.ui.help import OrderlyApp
from ccplay.ui.keys import Keymap
from ccplay.ui.preferences import Preferences
from ccplay.ui.terminal import Terminal
from ccplay.ui.themes import Appearance, Look, load_looks
from ccplay.visible import printable

# --- what the evaluation writes -------------------------------------------------------------------


class CriterionRow(msgspec.Struct, kw_only=True):
    """A criterion in the table."""

    section: str
    level: str
    question: str
    verdict: str = ""
    """Empty until it is known."""
    figure: str = ""
    bound: str = ""
    runs: tuple[int, int] = (0, 0)
    """Runs done and planned."""
    details: Sequence[str] = ()
    """Lines about the row, shown while it is selected."""
    recording: Path | None = None
    """Recording of the run that decided the verdict."""


class EvaluationBoard(msgspec.Struct, kw_only=True):
    """All that the table shows; ``changed`` is set to draw it again."""

    title: str
    rows: dict[str, CriterionRow]
    """Rows by the name of the criterion, in order."""
    said: Text = msgspec.field(default_factory=Text)
    """Newest message of the runs."""
    left: str = ""
    """Time left, in words."""
    over: bool = False
    """Whether no more runs come."""
    changed: bool = True


# --- the screen -----------------------------------------------------------------------------------

STYLES = {
    "pass": "success",
    "fail": "error",
    "unclear": "warning",
    "not judged": "accent",
    "running": "primary",
}
"""Colours of a theme by verdict; the rest is dim."""
_TICK_S = 0.25
_WIDE, _WIDER = 100, 116
"""Columns from which on the bound is shown, and from which on the whole word of the RFC."""
_DETAILS, _TALL = (6, 10), 30
"""Lines for what is said of the selected row, below and from this many rows of the terminal."""


class EvaluationTable(OrderlyApp[int]):
    """The table of verdicts, with what is known of the selected row below it."""

    TITLE = "ccplay evaluate"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layout: vertical; }
    #head, #said, #keys { height: 1; padding: 0 1; }
    #head, #keys { background: $panel; }
    DataTable { height: 1fr; background: $background; }
    DataTable > .datatable--header { background: $background; color: $text-muted; }
    #details { padding: 0 1; border-top: solid $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "replay", priority=True),
        Binding("q,ctrl+c,ctrl+q", "quit", priority=True),
    ]

    def __init__(
        self,
        board: EvaluationBoard,
        replay: Callable[[Path], Sequence[str]],
        *,
        looks: Mapping[str, Look] | None = None,
        preferences: Preferences | None = None,
        ascii: bool = False,  # noqa: A002
    ) -> None:
        """Show a board; ``replay`` returns the command that replays a recording."""
        super().__init__(driver_class=Terminal)
        mine, looks = preferences or Preferences(), looks or load_looks()
        look = looks.get(mine.theme) or next(iter(looks.values()))
        glyphs = ASCII if ascii or mine.glyphs == "ascii" else UNICODE
        self.no_color = self.no_color or self.console.color_system is None
        self.appearance = Appearance(looks, look, glyphs, Keymap({}), no_color=self.no_color)
        self.register_theme(look.textual_theme)
        self.theme = look.textual_theme.name
        self.board = board
        self._replay = replay
        self._lent = False
        """Whether the terminal is lent to a replay."""
        self._widths: tuple[int, ...] = ()

    def compose(self) -> ComposeResult:
        """Yield head, table, details, the newest message and the keys."""
        yield Static(id="head")
        yield DataTable(cursor_type="row", zebra_stripes=False)
        yield Static(id="details")
        yield Static(id="said")
        yield Static(id="keys")

    def on_mount(self) -> None:
        """Draw the board now, and whenever it has changed."""
        self.set_interval(_TICK_S, self._look)

    def on_resize(self) -> None:
        """Share the columns of the terminal anew."""
        self._widths = ()
        self.query_one("#details").styles.height = 1 + _DETAILS[self.size.height >= _TALL]
        self.board.changed = True
        self.call_after_refresh(self._look)

    def on_data_table_row_highlighted(self) -> None:
        """Show what is known of the row under the cursor."""
        self._describe()

    def _look(self) -> None:
        if self.board.changed and not self._lent:
            self.board.changed = False
            self._draw()

    def _draw(self) -> None:
        board, table = self.board, self.query_one(DataTable)
        widths = self._share(self.size.width)
        if widths != self._widths:
            self._widths, at = widths, table.cursor_row
            table.clear(columns=True)
            heads = ("RFC", "criterion", "verdict", "figure", "bound (ours)", "runs")
            for name, width in zip(heads, widths, strict=True):
                if width:
                    table.add_column(name, width=width, key=name)
            for key in board.rows:
                table.add_row(*("" for each in widths if each), key=key)
            table.move_cursor(row=at)
        for key, row in board.rows.items():
            cells = [cell for cell, width in zip(self._cells(row), widths, strict=True) if width]
            for column, cell in zip(table.columns, cells, strict=True):
                if table.get_cell(key, column) != cell:
                    table.update_cell(key, column, cell)
        left = f"{board.left}  " if board.left else ""
        head = Text.assemble((board.title, "bold"), "  ", left, self._counts())
        self.query_one("#head", Static).update(head)
        self.query_one("#said", Static).update(board.said)
        ends = "leave" if board.over else "stop; the same command resumes"
        self.query_one("#keys", Static).update(f"↑↓ row  enter replay its run  q {ends}")
        self._describe()

    def _share(self, width: int) -> tuple[int, ...]:
        """Return the widths of the columns; 0 leaves one out."""
        section = 12 if width >= _WIDER else 6
        bound = 14 if width >= _WIDE else 0
        rows = self.board.rows.values()
        figure = max([15, *(len(row.figure) for row in rows)])
        runs = max([5, *(2 * len(str(row.runs[1])) + 1 for row in rows)])
        fixed = (section, 0, 13, figure, bound, runs)
        # Each column has a cell of padding on both sides.
        taken = sum(fixed) + 2 * sum(each > 0 for each in fixed) + 2
        return (section, max(width - taken - 2, 12), *fixed[2:])

    def _cells(self, row: CriterionRow) -> Iterable[Text | str]:
        done, planned = row.runs
        dim = "" if row.verdict else "dim"
        section = f"{row.section} {row.level}" if self.size.width >= _WIDER else row.section
        yield Text(section, "dim", no_wrap=True)
        yield Text(printable(row.question), dim, no_wrap=True, overflow="ellipsis")
        yield Text(row.verdict, self._style(row.verdict), no_wrap=True)
        yield Text(printable(row.figure), no_wrap=True, overflow="ellipsis")
        yield Text(printable(row.bound), "dim", no_wrap=True, overflow="ellipsis")
        yield Text(f"{done}/{planned}" if planned else "", dim, justify="right")

    def _style(self, verdict: str) -> str:
        name = STYLES.get(verdict)
        return f"bold {self.theme_variables[name]}" if name else "dim"

    def _counts(self) -> Text:
        """Return how many criteria have each verdict, and how many runs are done."""
        rows = self.board.rows.values()
        text = Text()
        for verdict in (each for each in STYLES if each != "running"):
            if count := sum(each.verdict == verdict for each in rows):
                text.append(f"{count} {verdict}  ", self._style(verdict))
        done, planned = (sum(each.runs[n] for each in rows) for n in (0, 1))
        return text.append(f"{done} of {planned} runs", "dim")

    @property
    def chosen(self) -> CriterionRow | None:
        """The row under the cursor; None before there are any."""
        at = self.query_one(DataTable).cursor_row
        rows = list(self.board.rows.values())
        return rows[at] if 0 <= at < len(rows) else None

    def _describe(self) -> None:
        row = self.chosen
        lines = [] if row is None else [row.question, *row.details]
        text = Text("\n").join(Text(printable(each)) for each in lines)
        if lines:
            text.stylize("bold", 0, len(lines[0]))
        self.query_one("#details", Static).update(text)

    def action_replay(self) -> None:
        """Replay the recording of the selected row."""
        row = self.chosen
        if row is None or self._lent:
            return
        if row.recording is None:
            self.notify("None of its runs is finished yet.", markup=False)
            return
        self._lend(self._replay(row.recording))

    @work(exclusive=True)
    async def _lend(self, argv: Sequence[str]) -> None:
        """Lend the terminal to a program until it ends; the evaluation continues meanwhile."""
        with self.suspend():
            self._lent = True
            program = await asyncio.create_subprocess_exec(*argv)
            try:
                await program.wait()
            finally:
                self._lent = False
                if program.returncode is None:
                    with contextlib.suppress(ProcessLookupError):
                        program.terminate()
                    await program.wait()
        self.board.changed = True
        self.refresh(layout=True)

    def adapt_output(self, update: RenderableType | None) -> RenderableType | None:
        """Write nothing while the terminal is lent, or has not read the last frame yet."""
        driver = self.driver_in_use
        late = isinstance(driver, Terminal) and not driver.takes_frame()
        return None if self._lent or late else update
