"""The base class of the main screen's groups of actions."""

from __future__ import annotations

from collections.abc import Sequence

from textual.screen import Screen

from ccplay.session.session import Session
from ccplay.ui.appearance import Appearance, appearance
from ccplay.ui.audience.kinds import Audience
from ccplay.ui.known import Known
from ccplay.ui.listing import Listing
from ccplay.ui.marks import Marks
from ccplay.ui.playhead import Playhead
from ccplay.ui.plots.band import Band
from ccplay.ui.plots.ghosts import Ghosts
from ccplay.ui.plots.theory import Overlay
from ccplay.ui.view import View


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
