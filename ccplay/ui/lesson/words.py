"""The question of a page as lines: choices, votes as bars, the answer, and measurements."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ccplay.lesson.words import bins, outcome
from ccplay.plots.table import PLOTS
from ccplay.share.frames import Board
from ccplay.ui.cells.glyphs import Glyphs
from ccplay.ui.keymap import Keymap
from ccplay.ui.lesson.lectern import Asks, Lectern, asks

_BAR = 16
"""Length of the longest bar in columns."""


class Line(msgspec.Struct, frozen=True):
    """A line of the question; if it is too long, it is wrapped with a hanging indent."""

    text: str
    bold: bool = False
    sign: str = ""
    """Text in front of the line."""


class Written(msgspec.Struct, frozen=True):
    """The texts of a lesson's panel."""

    head: str
    verdict: tuple[Line, ...]
    """What the run says about the question and about the answers; empty before the reveal."""
    reading: str
    """Text of the page in Markdown."""
    question: tuple[Line, ...]
    foot: str
    """Keys, separated by two spaces; the last keys are left out if there is no room."""
    more: str
    """Key that scrolls, with its word; shown while lines are hidden."""


def written(lectern: Lectern, board: Board, now: float, glyphs: Glyphs, keys: Keymap) -> Written:
    """Return the texts of the panel for a page."""
    reading = "\n".join(board.lines)
    if board.why:
        reading = "\n".join((*board.why, "", "---", "", *board.lines))
    return Written(
        head=glyphs.translate(f"{board.page}/{board.pages}  {board.heading}"),
        verdict=_drawable(_verdict(lectern, board, glyphs), glyphs),
        reading=glyphs.translate(reading),
        question=_drawable(_lines(lectern, board, glyphs), glyphs),
        foot=glyphs.translate(_foot(lectern, board, now, keys)),
        more=glyphs.translate(f"{keys.shown('lesson-down')} more"),
    )


def _drawable(lines: Iterator[Line], glyphs: Glyphs) -> tuple[Line, ...]:
    return tuple(Line(glyphs.translate(each.text), each.bold, each.sign) for each in lines)


def _lines(lectern: Lectern, board: Board, glyphs: Glyphs) -> Iterator[Line]:
    # The newest lines come first, because a small screen has room for few others.
    if board.measured:
        yield Line("Measured in this run", bold=True)
        for what, value in board.measured:
            yield Line(f"{what}: {value}", sign=f"{glyphs.separator} ")
        yield Line("")
    if board.ask:
        yield Line(board.ask, bold=True)
    if board.choices:
        yield from _choices(lectern, board, glyphs)
    elif board.ask:
        yield from _number(lectern, board, glyphs)
    if lectern.leads and board.phase != "revealed" and lectern.voters:
        yield Line(f"{lectern.voters} voted")


def _choices(lectern: Lectern, board: Board, glyphs: Glyphs) -> Iterator[Line]:
    most = max(lectern.counts, default=0)
    for number, choice in enumerate(board.choices):
        mine = glyphs.chosen if lectern.answer == number else " "
        right = f"  {glyphs.available} right" if board.right == number else ""
        bold = bool(right) or lectern.answer == number
        yield Line(f"{choice}{right}", bold, f"{mine}{number + 1} ")
        if most and number < len(lectern.counts):
            yield Line(_bar(lectern.counts[number], most, glyphs), sign="   ")


def _bar(count: int, most: int, glyphs: Glyphs) -> str:
    cells = glyphs.queue_steps[-1] * round(_BAR * count / most)
    return f"{cells} {count}".lstrip()


def _number(lectern: Lectern, board: Board, glyphs: Glyphs) -> Iterator[Line]:
    unit = f" {board.unit}".rstrip()
    if lectern.answer is not None:
        text = f"your answer: {_range(board, lectern.answer)}{unit}"
        yield Line(text, bold=True, sign=f"{glyphs.chosen} ")
    elif asks(lectern) == "region":
        title = PLOTS[board.plot].title if board.plot in PLOTS else board.plot
        yield Line(f"on the plot of {title}: {_range(board, lectern.draft)}{unit}")
    elif asks(lectern) == "number":
        yield Line(f"a number from {board.low:g} to {board.high:g}{unit}")
    most = max(lectern.counts, default=0)
    if most:
        if board.plot:
            yield Line("votes, by the middle of their regions:")
        labels = bins(board, len(lectern.counts))
        across = max(map(len, labels))
        for label, count in zip(labels, lectern.counts, strict=True):
            yield Line(_bar(count, most, glyphs), sign=f"{label:>{across}} ")


def _range(board: Board, low: float) -> str:
    return f"{low:.4g} to {low + board.width:.4g}" if board.plot else f"{low:.4g}"


def _verdict(lectern: Lectern, board: Board, glyphs: Glyphs) -> Iterator[Line]:
    if not (said := outcome(board)):
        return
    if board.right is None:
        yield Line(said[0], bold=True, sign=f"{glyphs.missing} ")
        return
    if lectern.answer is not None and board.answers is not None:
        correct = board.answers[0] <= lectern.answer <= board.answers[1]
        sign = glyphs.available if correct else glyphs.missing
        yield Line("That is right." if correct else "Not this time.", True, f"{sign} ")
    first, *others = said
    yield Line(first, True, f"{glyphs.available} ")
    for text in others:
        yield Line(text, sign=f"{glyphs.separator} ")


_RUNS = ("clearing", "running", "ready")
"""Phases of a page from the start of its run until the reveal."""

_ANSWERS: dict[Asks, str] = {
    "choices": "{first} to {last} answer",
    "number": "type a number",
    "region": "{up}{down} move, {next} or digits answer",
}


def _foot(lectern: Lectern, board: Board, now: float, keys: Keymap) -> str:
    key = keys.shown
    names = {
        "first": key("plot-1"),
        "last": key(f"plot-{max(len(board.choices), 1)}"),
        "next": key("lesson-next"),
        "up": key("previous-flow").split("/")[0],
        "down": key("next-flow").split("/")[0],
    }
    asked = asks(lectern)
    answered = lectern.answer is not None
    hint = _ANSWERS[asked].format(**names) if asked else ""
    if not lectern.leads:
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
