"""The panel of a lesson: at the side of a wide screen, at the bottom of a narrow one."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Container, Vertical, VerticalScroll
from textual.widgets import Markdown, Static

from ccplay.lesson.words import markdown
from ccplay.ui.lesson.words import Line, Written

_WIDE = 116
"""Smallest width in columns of a screen with the panel at its side."""

_BESIDE = 80
"""Width in columns that the rest of the screen keeps when the panel at its side gets wider."""

_LEAST, _MOST = 40, 64
"""Smallest and largest width in columns of the panel at the side."""

_BELOW = 10
"""Smallest height in lines of the panel at the bottom."""


class LessonPanel(Vertical):
    """The widget that shows a page of a lesson: its text, its question, and the keys."""

    DEFAULT_CSS: ClassVar[str] = """
    LessonPanel {
        background: $surface; color: $foreground; padding: 0 1;
        & > .line { height: 1; width: 100%; }
        & > #lesson-head { color: $primary; text-style: bold; }
        & > #lesson-foot { color: $text-muted; }
        & > #lesson-verdict { margin: 0 0 1 0; }
        & > #lesson-body { height: 1fr; layout: vertical; }
        & VerticalScroll { scrollbar-size-vertical: 1; }
        & #lesson-reading { height: auto; max-height: 60%; }
        & #lesson-answer { height: 1fr; }
        & Static { height: auto; }
        & Markdown { padding: 0; margin: 0; background: transparent; }
        & MarkdownBlock { margin: 0 0 1 0; padding: 0; }
        & MarkdownHorizontalRule {
            margin: 0 0 1 0; padding: 0; height: 1; border-bottom: none; border-top: solid $primary;
        }
        & MarkdownFence { margin: 0 0 1 0; padding: 0 1; overflow: hidden hidden; }
        & MarkdownFence > Label { padding: 0 1; }
    }
    LessonPanel.-alone #lesson-reading { max-height: 100%; }
    LessonPanel.-below {
        & > #lesson-verdict { margin: 0; }
        & > #lesson-body { layout: horizontal; }
        & #lesson-reading { width: 1fr; height: 100%; max-height: 100%; margin: 0 2 0 0; }
        & #lesson-answer { width: 1fr; height: 100%; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="lesson")
        self._written: Written | None = None
        self._foot_shown = ""
        self._head = Static(id="lesson-head", classes="line", markup=False)
        self._verdict = Static(id="lesson-verdict", markup=False)
        self._text = Markdown(parser_factory=markdown, open_links=False)
        self._question = Static(id="lesson-ask", markup=False)
        self._foot = Static(id="lesson-foot", classes="line", markup=False)
        self._reading = VerticalScroll(self._text, id="lesson-reading", can_focus=False)
        self._answer = VerticalScroll(self._question, id="lesson-answer", can_focus=False)

    def compose(self) -> ComposeResult:
        """Yield the parts of the panel from top to bottom."""
        yield self._head
        self._verdict.display = False
        yield self._verdict
        yield Container(self._reading, self._answer, id="lesson-body")
        yield self._foot

    def place(self, width: int, height: int) -> tuple[int, int]:
        """Set the panel's size and position; return the columns and lines left for other parts."""
        beside = width >= _WIDE
        self.set_class(not beside, "-below")
        if self._written is not None:
            self._write_verdict(self._written.verdict)
        if beside:
            mine = min(max(width - _BESIDE, _LEAST), max(width // 3, _LEAST), _MOST)
            self.styles.dock = "right"
            self.styles.width, self.styles.height = mine, "100%"
            return width - mine, height
        mine = max(_BELOW, height * 2 // 5)
        self.styles.dock = "none"
        self.styles.width, self.styles.height = "100%", mine
        return width, height - mine

    def write(self, written: Written) -> None:
        """Show a page; update only the parts whose text has changed."""
        before, self._written = self._written, written
        if before is None or written.head != before.head:
            self._head.update(Text(written.head))
        if before is None or written.verdict != before.verdict:
            self._write_verdict(written.verdict)
        if before is None or written.reading != before.reading:
            self.run_worker(self._read(written.reading), group="reading", exclusive=True)
        if before is None or written.question != before.question:
            self._question.update(_table(written.question))
            if before is None or written.reading != before.reading:
                self._answer.scroll_home(animate=False)
        self.set_class(not written.question, "-alone")
        foot = self._footer(written)
        if foot != self._foot_shown:
            self._foot_shown = foot
            self._foot.update(Text(foot))

    def _write_verdict(self, lines: tuple[Line, ...]) -> None:
        """Show the verdict on top: line by line at the side, in one line at the bottom."""
        self._verdict.display = bool(lines)
        in_one = Text()
        for each in lines:
            style = "bold" if each.bold else ""
            in_one.append(f"{each.sign}{each.text}", style).append("  ")
        self._verdict.update(in_one if self.has_class("-below") else _table(lines))

    def _footer(self, written: Written) -> str:
        """Return the keys that have room, and the one that scrolls while lines are hidden below."""
        parts = (self._reading, self._answer)
        hides = any(part.scroll_y < part.max_scroll_y for part in parts)
        more = [written.more] if hides else []
        keys = written.foot.split("  ")
        while len(keys) > 1 and len("  ".join([*keys, *more])) > self._foot.size.width > 0:
            keys.pop()
        return "  ".join([*keys, *more])

    async def _read(self, markdown: str) -> None:
        await self._text.update(markdown)
        # The blocks of the Markdown were mounted after the panel's last layout.
        self._reading.refresh(layout=True)
        self._reading.scroll_home(animate=False)

    def scroll_by(self, pages: int) -> None:
        """Scroll the text, down if ``pages`` is positive; at its end scroll the question."""
        part = self._reading
        there = part.scroll_y >= part.max_scroll_y if pages > 0 else part.scroll_y <= 0
        if there and self._answer.max_scroll_y:
            part = self._answer
        elif there and pages < 0:
            self._answer.scroll_home(animate=False)
        if pages > 0:
            part.scroll_page_down(animate=False)
        else:
            part.scroll_page_up(animate=False)


def _table(lines: tuple[Line, ...]) -> RenderableType:
    """Return lines with hanging indents, one below the other."""
    rows: list[RenderableType] = []
    for line in lines:
        style = "bold" if line.bold else ""
        if not line.sign:
            rows.append(Text(line.text, style))
            continue
        row = Table.grid()
        row.add_column(no_wrap=True, width=len(line.sign))
        row.add_column()
        row.add_row(Text(line.sign, style), Text(line.text, style))
        rows.append(row)
    return Group(*rows)
