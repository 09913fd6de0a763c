"""The dialog for a number that a lesson asks for."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from ccplay.share.frames import Board
from ccplay.ui.dialogs.base import Question
from ccplay.ui.dialogs.fields import Field


class PredictionDialog(Question[float]):
    """Asks for the number that a page of a lesson asks to predict."""

    VERB = "answer"
    HINT = ""

    def __init__(self, board: Board, begun: str = "") -> None:
        """Ask a page's question; ``begun`` is the part of the number typed so far."""
        super().__init__()
        self.HEADING = board.heading
        self._low, self._high = board.low, board.high
        unit = f" {board.unit}" if board.unit else ""
        self._expected = f"from {board.low:g} to {board.high:g}{unit}"
        if board.plot:
            self._expected = f"the middle of the region, {self._expected}"
        self.number = Field(
            board.unit or "number",
            begun,
            self._read,
            self.glyphs,
            optional=self._expected,
        )
        self.number.add_class("wide")
        # Further digits are appended to those already typed.
        self.number.input.select_on_focus = False

    def _read(self, text: str) -> float:
        try:
            value = float(text.strip().split(" ")[0])
        except ValueError:
            raise ValueError(f"a number from {self._low:g} to {self._high:g}") from None
        if not self._low <= value <= self._high:
            raise ValueError(f"must be from {self._low:g} to {self._high:g}")
        return value

    def controls(self) -> Iterable[Widget]:
        """Return the field for the number."""
        return (self.number,)

    def command(self) -> float | None:
        """Return the number. Raises ``ValueError`` if none was typed."""
        if (value := self.number.value) is None:
            raise ValueError(f"type your answer first: {self._expected}, or leave with esc")
        return value
