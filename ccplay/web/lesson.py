"""The page of a lesson that the presenter shows, in the form that a browser receives."""

from __future__ import annotations

from typing import Any

from ccplay.lesson.words import bins, outcome
from ccplay.plots.table import PLOTS
from ccplay.share.frames import Board
from ccplay.web import prose

_STEPS = 25
"""Number of steps of a slider from the lowest answer to the highest."""


def lesson(board: Board | None, *, votes: bool) -> dict[str, Any] | None:
    """Return a page as text and data; None without one. ``votes``: whether browsers can vote."""
    if board is None or not board.page:
        return None
    return {
        "title": board.title,
        "place": f"{board.page}/{board.pages}",
        "heading": board.heading,
        "text": prose.blocks(board.lines),
        "phase": board.phase,
        "revealed": board.phase == "revealed",
        "question": _question(board, votes=votes) if board.question else None,
        "measured": board.measured,
        "why": prose.blocks(board.why),
    }


def _question(board: Board, *, votes: bool) -> dict[str, Any]:
    kind = "choices" if board.choices else "region" if board.plot else "number"
    return {
        "number": board.question,
        "ask": board.ask,
        "kind": kind,
        "choices": board.choices,
        "low": board.low,
        "high": board.high,
        "width": board.width,
        "step": (board.high - board.low) / _STEPS,
        "unit": board.unit,
        "plot": board.plot,
        "title": PLOTS[board.plot].title if board.plot in PLOTS else board.plot,
        "open": board.open,
        "votes": votes,
        "counts": board.counts,
        "bins": _bins(board),
        "right": board.right,
        "answers": board.answers,
        "verdict": outcome(board),
    }


def _bins(board: Board) -> list[str]:
    """Return the range of answers that each count of votes for a number covers, as text."""
    if board.choices or not board.counts:
        return []
    return [f"{each} {board.unit}".rstrip() for each in bins(board, len(board.counts))]
