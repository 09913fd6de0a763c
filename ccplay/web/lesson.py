"""The page of a lesson that the presenter shows, in the form that a browser receives."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

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
        "verdict": _verdict(board),
    }


def _bins(board: Board) -> list[str]:
    """Return the range of answers that each count of votes for a number covers, as text."""
    if board.choices or not board.counts:
        return []
    width = (board.high - board.low) / len(board.counts)
    edges = [board.low + at * width for at in range(len(board.counts) + 1)]
    return [f"{low:.4g} to {high:.4g} {board.unit}".rstrip() for low, high in pairwise(edges)]


def _verdict(board: Board) -> list[str]:
    """Return the reason, once revealed, why the explanation does not apply to this run."""
    if board.phase != "revealed":
        return []
    if board.right is None:
        return [board.problem or "the measurements do not decide this"]
    if board.usual:
        return []
    return ["This run's result is unusual; the explanation describes the usual one."]
