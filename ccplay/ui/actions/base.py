"""The base of the main screen's actions, and those that move through time."""

from __future__ import annotations

from collections.abc import Sequence

from textual.screen import Screen

from ccplay.session.session import Session
from ccplay.ui.audience import Audience
from ccplay.ui.marks import Marks
from ccplay.ui.playhead import Playhead
from ccplay.ui.plots.band import Band
from ccplay.ui.plots.ghosts import Ghosts
from ccplay.ui.plots.pane import Overlay
from ccplay.ui.themes import Appearance, appearance
from ccplay.ui.view import Known, Listing, View

# --- the base class of the main screen's groups of actions ----------------------------------------


class Actions(Screen[None]):
    """A screen's session and display choices, which its actions change."""

    session: Session
    playhead: Playhead
    marks: Marks
    ghosts: Ghosts
    """Ghost drawn under the session, or being read."""
    plots: Band
    overlay: Overlay
    """Theory drawn over the selected flow's cwnd."""
    selected: str | None = None
    """Name of the traffic selected in the table, on which keys act; None without a selection."""
    observed: int = 0
    """Index of the observed queue shown, modulo the number of observed queues."""
    variable: str | None = None
    """Variable drawn in place of RTT; None for RTT itself."""
    listing: Listing = Listing()
    """Filter, order and grouping of the flows shown."""
    shows_receiver: bool = False
    """Whether the receiver's table replaces the events."""
    sent: str = ""
    """Notice that a command was sent to the live lab while an earlier moment is shown."""
    audience: Audience
    """Spectators of this screen, or the presenter that it follows."""
    lab_words: Sequence[str] = ()
    """Options of the command line that start the same kind of lab again."""
    _known: Known
    """Cache of the values that views derive from the state."""

    @property
    def appearance(self) -> Appearance:
        """The theme and the glyphs in use."""
        return appearance(self.app)

    @property
    def view(self) -> View:
        """The view that panels are drawn from at present."""
        return View(
            self.session,
            self.playhead,
            self.appearance.look,
            self.appearance.glyphs,
            self.selected,
            self.observed,
            self.variable,
            self.ghosts.shown,
            self.ghosts.reading,
            self.overlay.of(self.session.state.flows.get(self.selected or "")),
            self.marks.notice or self.sent,
            self.listing,
            stroke=self.appearance.stroke,
            keys=self.appearance.keymap,
            colourless=self.appearance.no_color,
            audience=self.audience.words,
            watching=self.audience.watches,
            catching_up=self.audience.reading,
            pointer=self.audience.pointer,
            region=self.predicted,
            awaits=self.awaits,
            known=self._known,
        )

    @property
    def predicted(self) -> tuple[str, float, float] | None:
        """The region that a lesson asks to predict: its plot, and both ends on the value axis."""
        return None

    @property
    def awaits(self) -> str:
        """Reason why traffic will start without a key; empty if none will."""
        return ""

    def lay_out(self, width: int, height: int) -> None:
        """Place every part on a terminal of ``width`` by ``height`` cells."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw at once."""
        raise NotImplementedError

    def is_ready(self, *, ready: bool) -> bool:
        """Return ``ready``; if it is false, show that the network is not built yet."""
        if not ready:
            self.app.notify("The network is still being built.", severity="warning")
        return ready


# --- actions that move the playhead and change the window -----------------------------------------

STEP = 1 / 60
_LEAP = 1 / 6
"""Large step of scrubbing, as a share of the window."""


class PlaybackActions(Actions):
    """The actions on the playhead."""

    def action_freeze(self) -> None:
        """Freeze the screen, or resume."""
        self.playhead.toggle(self.session.state.now)
        self.redraw()

    def action_scrub(self, steps: int) -> None:
        """Move the playhead by small steps, back if ``steps`` is negative."""
        self._move(steps * self.playhead.width * STEP)

    def action_scrub_far(self, steps: int) -> None:
        """Move the playhead by large steps, back if ``steps`` is negative."""
        self._move(steps * self.playhead.width * _LEAP)

    def _move(self, seconds: float) -> None:
        self.playhead.scrub(seconds, self.session.state.now)
        self.redraw()

    def action_seek_start(self) -> None:
        """Go to the start of the session."""
        self.playhead.jump(0.0, self.session.state.now)
        self.redraw()

    def action_seek_end(self) -> None:
        """Go to the end of the session; a live one continues from there."""
        self.playhead.jump(self.session.state.now, self.session.state.now)
        self.playhead.running = not self.session.done
        self.redraw()

    def action_zoom(self, steps: int) -> None:
        """Show a shorter or longer window."""
        self.playhead.zoom(steps, self.session.state.now)
        self.redraw()

    def action_speed(self, steps: int) -> None:
        """Play slower or faster."""
        self.playhead.change_speed(steps)
        self.redraw()
