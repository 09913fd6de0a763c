"""A screen that writes changed cells without waiting for Textual's messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from rich.console import RenderableType
from textual.geometry import Region

from ccplay.ui.cells.compositor import CellsUpdate, SheetCompositor
from ccplay.ui.cells.sheet import Sheet, Span, Surface


class Painter(Surface):
    """A screen of sheets that writes changed cells as soon as the sheets are filled.

    Through Textual's messages each sheet would be written later, and at several times the cost.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sheet_compositor = self._compositor = SheetCompositor()
        self._changed: dict[Sheet, list[Span]] = {}

    def changed(self, sheet: Sheet, spans: Iterable[Span]) -> None:
        """Record cells of a sheet that must be written."""
        self._changed.setdefault(sheet, []).extend(spans)

    def paint(self) -> None:
        """Write the changed cells; if Textual has anything to draw itself, let it draw them too."""
        changed, self._changed = self._changed, {}
        if not changed:
            return
        pieces = None if self._textual_draws() else self._sheet_compositor.pieces(changed)
        if pieces is not None:
            # The app uses only ``render_segments``.
            self.app._display(self, cast("RenderableType", CellsUpdate(pieces)))
            return
        for sheet, spans in changed.items():
            # For a sheet not yet placed, Textual would lay out all and not know what moved.
            if sheet in self._compositor.visible_widgets:
                sheet._set_dirty(*(Region(x, y, end - x, 1) for y, x, end in spans))
                self._dirty_widgets.add(sheet)
        if self._dirty_widgets and not self._layout_required:
            self._on_timer_update()

    def _compositor_refresh(self) -> None:
        # Empty sheets are not worth a frame, because they will soon be filled.
        if not (self.emptied and self.is_current):
            super()._compositor_refresh()

    def _textual_draws(self) -> bool:
        """Return whether Textual has anything to draw itself, or drawing is not allowed now."""
        return bool(
            self._dirty_widgets
            or self._compositor._dirty_regions
            or self._layout_required
            or self._scroll_required
            or self._repaint_required
            or self._recompose_required
            or self.app._batch_count
            or not self.is_current
        )
