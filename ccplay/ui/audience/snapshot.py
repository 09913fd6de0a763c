"""The presenter's view as sent to spectators, and how their screens apply it."""

from __future__ import annotations

from typing import Protocol

from ccplay.share.frames import Pointer, PresenterView
from ccplay.ui.listing import COLUMNS, Listing
from ccplay.ui.playhead import Playhead
from ccplay.ui.plots.band import Band
from ccplay.ui.plots.table import PANES


class Shown(Protocol):
    """The part of a screen that its audience sees."""

    playhead: Playhead
    plots: Band
    selected: str | None
    observed: int
    variable: str | None
    listing: Listing
    shows_receiver: bool
    shows_map: bool

    def show_map(self, *, shown: bool) -> None:
        """Draw the network in place of the plots if ``shown``, else the plots."""


def captured(screen: Shown, pointer: Pointer | None) -> PresenterView:
    """Return the view that the screen shows now."""
    head, plots, listing = screen.playhead, screen.plots, screen.listing
    return PresenterView(
        t=head.t,
        left=head.left,
        width=head.width,
        running=head.running,
        speed=head.speed,
        selected=screen.selected,
        observed=screen.observed,
        variable=screen.variable,
        plots=plots.picked,
        large=plots.large,
        logarithmic=plots.logarithmic,
        held=plots.held,
        receiver=screen.shows_receiver,
        map=screen.shows_map,
        column=listing.column,
        reverse=listing.reverse,
        filter=listing.text,
        alone=listing.alone,
        grouped=listing.grouped,
        stacked=listing.stacked,
        pointer=pointer,
    )


def take_over(screen: Shown, view: PresenterView) -> None:
    """Apply a view as far as this screen can: it may be smaller, or have other plots."""
    head, plots = screen.playhead, screen.plots
    head.width, head.speed = view.width, view.speed
    if view.running and not head.recorded:
        # A live playhead runs by itself, at the newest moment received.
        head.running = True
    else:
        head.running, head.t, head.left = view.running, view.t, view.left
        head.seen = max(head.seen, view.t)
    screen.selected, screen.observed, screen.variable = view.selected, view.observed, view.variable
    screen.shows_receiver = view.receiver
    screen.show_map(shown=view.map)
    screen.listing = Listing(
        column=view.column if view.column in COLUMNS else "",
        reverse=view.reverse,
        text=view.filter,
        alone=view.alone,
        grouped=view.grouped,
        stacked=view.stacked,
    )
    plots.logarithmic, plots.held = view.logarithmic, view.held
    known = tuple(name for name in view.plots if name in PANES)
    if known or not view.plots:
        plots.lend(known, view.large if view.large in PANES else "")
