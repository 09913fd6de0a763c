"""Actions that filter, sort, group and stack the flows."""

from __future__ import annotations

from msgspec.structs import replace
from textual import events

from ccplay.ui.actions.base import Actions

_SELECTING = ("up", "down", "tab", "shift+tab")
"""Keys that move the selection even while a filter is typed."""


class ListingActions(Actions):
    """The actions that filter, sort, group and stack flows, or draw one alone."""

    def action_alone(self) -> None:
        """Draw the selected flow alone, or all again."""
        self.listing = replace(self.listing, alone=not self.listing.alone)
        self.redraw()

    def action_groups(self) -> None:
        """Group flows by algorithm, or list each flow again."""
        self.listing = replace(self.listing, grouped=not self.listing.grouped)
        self.redraw()

    def action_stack(self) -> None:
        """Stack rates and classes of a queue, or draw separate lines again."""
        self.listing = replace(self.listing, stacked=not self.listing.stacked)
        if self.listing.stacked and not self.plots.adds_up(self.view):
            text = "No plot on the screen can be stacked; choose goodput with ctrl+p."
            self.app.notify(text, severity="warning")
        self.redraw()

    def action_sort(self) -> None:
        """Sort the table by its next column."""
        self.listing = self.listing.next_column()
        self.redraw()

    def action_reverse(self) -> None:
        """Reverse the order of the table."""
        self.listing = replace(self.listing, reverse=not self.listing.reverse)
        self.redraw()

    def action_filter(self) -> None:
        """Open the filter: keys extend it until enter or escape."""
        self.listing = replace(self.listing, typing=True)
        self.redraw()

    def action_show_all(self) -> None:
        """Clear the filter."""
        self.listing = replace(self.listing, text="", typing=False)
        self.redraw()

    def on_key(self, event: events.Key) -> None:
        """Add a typed key to the filter."""
        if self.listing.typing and event.key not in _SELECTING:
            event.stop()
            self.listing = self.listing.typed(event.key, event.character)
            self.redraw()
