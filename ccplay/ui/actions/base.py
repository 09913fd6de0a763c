"""The common base of the main screen's groups of actions."""

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
    """The session on the screen, and the user's choices of what to see."""

    session: Session
    playhead: Playhead
    marks: Marks
    ghosts: Ghosts
    """The ghost under the session, or being read."""
    plots: Band
    overlay: Overlay
    """The theory over the selected flow's cwnd."""
    selected: str | None = None
    """The selection in the table that keys act on."""
    observed: int = 0
    """Number of the observed queue that is shown, wrapping around."""
    variable: str | None = None
    """Variable that replaces RTT; None is RTT itself."""
    listing: Listing = Listing()
    """Which flows are shown, and in which order."""
    shows_receiver: bool = False
    """Whether the receiver's table replaces the events."""
    sent: str = ""
    """Notice of a command sent to the live lab while an earlier moment is shown."""
    audience: Audience
    """Who watches this screen, or whom it watches."""
    lab_words: Sequence[str] = ()
    """The command line's options about the lab, with which the same lab can be started again."""
    _known: Known
    """What views derive from the state."""

    @property
    def appearance(self) -> Appearance:
        """The theme and the characters in use."""
        return appearance(self.app)

    @property
    def view(self) -> View:
        """The view that panels are drawn from now."""
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
        """The region of a plot that a lesson asks for: plot, lower and upper end."""
        return None

    @property
    def awaits(self) -> str:
        """What starts traffic next, other than the keys that start it; empty if nothing does."""
        return ""

    def lay_out(self, width: int, height: int) -> None:
        """Place every part on a terminal of ``width`` by ``height`` cells."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw at once."""
        raise NotImplementedError

    def is_ready(self, *, ready: bool) -> bool:
        """Return ``ready``; if it is false, notify that the network is not built yet."""
        if not ready:
            self.app.notify("The network is still being built.", severity="warning")
        return ready
