"""The panel of a lesson: its page and question, beside a wide screen's plots or below them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.containers import Container, Vertical, VerticalScroll
from textual.widgets import Markdown, Static

from ccplay.lesson.course import bins, markdown, outcome
from ccplay.plots.table import PLOTS
from ccplay.share.frames import Board
from ccplay.ui.cells import Glyphs
from ccplay.ui.keys import Keymap
from ccplay.ui.lesson_roles import Asks, Role, asks

# --- the question of a page as lines: choices, votes as bars, the answer, and measurements --------

_BAR = 16
"""Length of the longest bar in columns."""


class PanelLine(msgspec.Struct, frozen=True):
    """A line of the question; if it is too long, it is wrapped with a hanging indent."""

    text: str
    bold: bool = False
    sign: str = ""
    """Text in front of the line."""


class LessonTexts(msgspec.Struct, frozen=True):
    """The texts of a lesson's panel."""

    head: str
    verdict: tuple[PanelLine, ...]
    """What the run says about the question and about the answers; empty before the reveal."""
    reading: str
    """Text of the page in Markdown."""
    question: tuple[PanelLine, ...]
    foot: str
    """Keys, separated by two spaces; the last keys are left out if there is no room."""
    more: str
    """Key that scrolls, with its word; shown while lines are hidden."""


def written(lesson: Role, board: Board, now: float, glyphs: Glyphs, keys: Keymap) -> LessonTexts:
    """Return the texts of the panel for a page."""
    reading = "\n".join(board.lines)
    if board.why:
        reading = "\n".join((*board.why, "", "---", "", *board.lines))
    return LessonTexts(
        head=glyphs.translate(f"{board.page}/{board.pages}  {board.heading}"),
        verdict=_drawable(_verdict(lesson, board, glyphs), glyphs),
        reading=glyphs.translate(reading),
        question=_drawable(_lines(lesson, board, glyphs), glyphs),
        foot=glyphs.translate(_foot(lesson, board, now, keys)),
        more=glyphs.translate(f"{keys.shown('lesson-down')} more"),
    )


def _drawable(lines: Iterator[PanelLine], glyphs: Glyphs) -> tuple[PanelLine, ...]:
    return tuple(PanelLine(glyphs.translate(each.text), each.bold, each.sign) for each in lines)


def _lines(lesson: Role, board: Board, glyphs: Glyphs) -> Iterator[PanelLine]:
    # The newest lines come first, because a small screen has room for few others.
    if board.measured:
        yield PanelLine("Measured in this run", bold=True)
        for what, value in board.measured:
            yield PanelLine(f"{what}: {value}", sign=f"{glyphs.separator} ")
        yield PanelLine("")
    if board.ask:
        yield PanelLine(board.ask, bold=True)
    if board.choices:
        yield from _choices(lesson, board, glyphs)
    elif board.ask:
        yield from _number(lesson, board, glyphs)
    if lesson.leads and board.phase != "revealed" and lesson.voters:
        yield PanelLine(f"{lesson.voters} voted")


def _choices(lesson: Role, board: Board, glyphs: Glyphs) -> Iterator[PanelLine]:
    most = max(lesson.counts, default=0)
    for number, choice in enumerate(board.choices):
        mine = glyphs.chosen if lesson.answer == number else " "
        right = f"  {glyphs.available} right" if board.right == number else ""
        bold = bool(right) or lesson.answer == number
        yield PanelLine(f"{choice}{right}", bold, f"{mine}{number + 1} ")
        if most and number < len(lesson.counts):
            yield PanelLine(_bar(lesson.counts[number], most, glyphs), sign="   ")


def _bar(count: int, most: int, glyphs: Glyphs) -> str:
    cells = glyphs.queue_steps[-1] * round(_BAR * count / most)
    return f"{cells} {count}".lstrip()


def _number(lesson: Role, board: Board, glyphs: Glyphs) -> Iterator[PanelLine]:
    unit = f" {board.unit}".rstrip()
    if lesson.answer is not None:
        text = f"your answer: {_range(board, lesson.answer)}{unit}"
        yield PanelLine(text, bold=True, sign=f"{glyphs.chosen} ")
    elif asks(lesson) == "region":
        title = PLOTS[board.plot].title if board.plot in PLOTS else board.plot
        yield PanelLine(f"on the plot of {title}: {_range(board, lesson.draft)}{unit}")
    elif asks(lesson) == "number":
        yield PanelLine(f"a number from {board.low:g} to {board.high:g}{unit}")
    most = max(lesson.counts, default=0)
    if most:
        if board.plot:
            yield PanelLine("votes, by the middle of their regions:")
        labels = bins(board, len(lesson.counts))
        across = max(map(len, labels))
        for label, count in zip(labels, lesson.counts, strict=True):
            yield PanelLine(_bar(count, most, glyphs), sign=f"{label:>{across}} ")


def _range(board: Board, low: float) -> str:
    return f"{low:.4g} to {low + board.width:.4g}" if board.plot else f"{low:.4g}"


def _verdict(lesson: Role, board: Board, glyphs: Glyphs) -> Iterator[PanelLine]:
    if not (said := outcome(board)):
        return
    if board.right is None:
        yield PanelLine(said[0], bold=True, sign=f"{glyphs.missing} ")
        return
    if lesson.answer is not None and board.answers is not None:
        correct = board.answers[0] <= lesson.answer <= board.answers[1]
        sign = glyphs.available if correct else glyphs.missing
        yield PanelLine("That is right." if correct else "Not this time.", True, f"{sign} ")
    first, *others = said
    yield PanelLine(first, True, f"{glyphs.available} ")
    for text in others:
        yield PanelLine(text, sign=f"{glyphs.separator} ")


_RUNS = ("clearing", "running", "ready")
"""Phases of a page from the start of its run until the reveal."""

_ANSWERS: dict[Asks, str] = {
    "choices": "{first} to {last} answer",
    "number": "type a number",
    "region": "{up}{down} move, {next} or digits answer",
}


def _foot(lesson: Role, board: Board, now: float, keys: Keymap) -> str:
    key = keys.shown
    names = {
        "first": key("plot-1"),
        "last": key(f"plot-{max(len(board.choices), 1)}"),
        "next": key("lesson-next"),
        "up": key("previous-flow").split("/")[0],
        "down": key("next-flow").split("/")[0],
    }
    asked = asks(lesson)
    answered = lesson.answer is not None
    hint = _ANSWERS[asked].format(**names) if asked else ""
    if not lesson.leads:
        if not board.question:
            return "the presenter turns the pages"
        if not board.open:
            said = "the vote is closed"
            return f"{said}: the run has started" if board.phase in _RUNS else said
        return f"{hint}{'  (your vote counts)  (it can be changed)' if answered else ''}"
    enter, again = key("lesson-next"), key("lesson-again")
    back = f"  {key('lesson-back')} back" if board.page > 1 else ""
    match board.phase:
        case "asking":
            return f"{hint}{back}"
        case "reading":
            change = f"{hint}  " if asked == "choices" and answered else ""
            return f"{change}{enter} run{back}"
        case "clearing":
            return "waiting for the network to drain …"
        case "running":
            return f"running: {max(board.until - now, 0):.0f} s to go"
        case "ready":
            return f"{enter} reveal{back}"
        case _:
            last = board.page == board.pages
            following = f"the end, {key('quit')} leaves" if last else f"{enter} next page"
            return f"{following}  {again} again{back}"


# --- the panel of a lesson: at the side of a wide screen, at the bottom of a narrow one -----------

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
        self._written: LessonTexts | None = None
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

    def write(self, written: LessonTexts) -> None:
        """Show a page; update only the parts whose text has changed."""
        before, self._written = self._written, written
        if before is None or written.head != before.head:
            self._head.update(Text(written.head))
        if before is None or written.verdict != before.verdict:
            self._write_verdict(written.verdict)
        if before is None or written.reading != before.reading:
            self._read(written.reading)
        if before is None or written.question != before.question:
            self._question.update(_table(written.question))
            if before is None or written.reading != before.reading:
                self._answer.scroll_home(animate=False)
        self.set_class(not written.question, "-alone")
        foot = self._footer(written)
        if foot != self._foot_shown:
            self._foot_shown = foot
            self._foot.update(Text(foot))

    def _write_verdict(self, lines: tuple[PanelLine, ...]) -> None:
        """Show the verdict on top: line by line at the side, in one line at the bottom."""
        self._verdict.display = bool(lines)
        in_one = Text()
        for each in lines:
            style = "bold" if each.bold else ""
            in_one.append(f"{each.sign}{each.text}", style).append("  ")
        self._verdict.update(in_one if self.has_class("-below") else _table(lines))

    def _footer(self, written: LessonTexts) -> str:
        """Return the keys that have room, and the one that scrolls while lines are hidden below."""
        parts = (self._reading, self._answer)
        hides = any(part.scroll_y < part.max_scroll_y for part in parts)
        more = [written.more] if hides else []
        keys = written.foot.split("  ")
        while len(keys) > 1 and len("  ".join([*keys, *more])) > self._foot.size.width > 0:
            keys.pop()
        return "  ".join([*keys, *more])

    @work(group="reading", exclusive=True)
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


def _table(lines: tuple[PanelLine, ...]) -> RenderableType:
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
