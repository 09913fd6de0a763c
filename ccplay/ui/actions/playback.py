"""Actions that move the playhead and change the window."""

from __future__ import annotations

from ccplay.ui.actions.base import Actions

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
