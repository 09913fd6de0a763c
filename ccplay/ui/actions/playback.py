"""Keys that move the moment shown and the stretch of time around it."""

from __future__ import annotations

from ccplay.ui.actions.base import Actions

STEP = 1 / 60
_LEAP = 1 / 6
"""Of the window's width, what the scrubbing keys move by."""


class PlaybackActions(Actions):
    """The playhead's keys."""

    def action_freeze(self) -> None:
        """Stop the picture, or let it run again."""
        self.playhead.toggle(self.session.state.now)
        self.redraw()

    def action_scrub(self, steps: int) -> None:
        """Move by a little."""
        self._move(steps * self.playhead.width * STEP)

    def action_scrub_far(self, steps: int) -> None:
        """Move by much."""
        self._move(steps * self.playhead.width * _LEAP)

    def _move(self, seconds: float) -> None:
        self.playhead.scrub(seconds, self.session.state.now)
        self.redraw()

    def action_seek_start(self) -> None:
        """Go to the start."""
        self.playhead.jump(0.0, self.session.state.now)
        self.redraw()

    def action_seek_end(self) -> None:
        """Go to the end; a live session runs on."""
        self.playhead.jump(self.session.state.now, self.session.state.now)
        self.playhead.running = not self.session.done
        self.redraw()

    def action_zoom(self, steps: int) -> None:
        """Show a shorter or a longer stretch of time."""
        self.playhead.zoom(steps, self.session.state.now)
        self.redraw()

    def action_speed(self, steps: int) -> None:
        """Play slower or faster."""
        self.playhead.change_speed(steps)
        self.redraw()
