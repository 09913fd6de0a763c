"""Actions in a shared session: the presenter shares and points, a spectator follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ccplay.errors import CcplayError
from ccplay.share.frames import Pointer
from ccplay.ui.actions.lesson import LessonActions
from ccplay.ui.audience.following import ROAMING, Following
from ccplay.ui.audience.presenting import Presenting

if TYPE_CHECKING:
    from ccplay.share.browsers import Browsers


class AudienceActions(LessonActions):
    """The actions of presenter and spectator."""

    def offers(self, action: str) -> bool:
        """Return whether ``follow``, ``point``, ``share`` or ``browsers`` has an effect here."""
        if action == "follow":
            return isinstance(self.audience, Following)
        if action == "point":
            return bool(self.audience.name)
        return isinstance(self.audience, Presenting)

    def note_action(self, action: str) -> None:
        """Let a spectator roam after a key that changes the view."""
        name = action.partition("(")[0].rpartition(".")[2]
        votes = self.asked and name in ("enlarge", "select_flow")
        votes = votes or (self.is_late and name == "enlarge")
        if isinstance(self.audience, Following) and name in ROAMING and not votes:
            self.audience.roam()

    def action_follow(self) -> None:
        """Follow the presenter again."""
        if isinstance(self.audience, Following):
            self.audience.follow()
            self.audience.tick(self, 0.0)
            self.redraw()

    def action_share(self) -> None:
        """Share this session, or stop sharing it."""
        audience = self.audience
        if not isinstance(audience, Presenting):
            return
        if audience.name:
            audience.stop()
            self.app.notify("This session is not shared any more.", markup=False)
            return
        try:
            audience.start()
        except CcplayError as error:
            self.app.notify(str(error), severity="error", timeout=8, markup=False)
        else:
            self.notify_shared()
        self.redraw()

    def notify_shared(self) -> None:
        """Show how others can watch, if the session is shared."""
        if self.audience.name:
            text = f"Others can watch: ccplay watch {self.audience.name}"
            self.app.notify(text, timeout=8, markup=False)
        if isinstance(self.audience, Presenting) and self.audience.browsers is not None:
            self._show_link(self.audience.browsers)

    def action_browsers(self) -> None:
        """Serve the session to browsers, and show the link for them."""
        audience = self.audience
        if not isinstance(audience, Presenting):
            return
        try:
            browsers = audience.open_to_browsers()
        except CcplayError as error:
            self.app.notify(str(error), severity="error", timeout=8, markup=False)
        else:
            self._show_link(browsers)
        self.redraw()

    def _show_link(self, browsers: Browsers) -> None:
        from ccplay.ui.dialogs.browser_link import BrowserLink  # noqa: PLC0415 - after first paint

        self.app.push_screen(BrowserLink(browsers, self.appearance.glyphs))

    def action_point(self) -> None:
        """Point at the moment shown with a few words, or stop pointing."""
        audience = self.audience
        if not isinstance(audience, Presenting) or not audience.name:
            return
        if audience.pointer is not None:
            self._point(None)
            return
        from ccplay.ui.dialogs.pointing import PointDialog  # noqa: PLC0415 - after first paint

        self.app.push_screen(PointDialog(self.playhead.t), self._point)

    def _point(self, pointer: Pointer | None) -> None:
        if isinstance(self.audience, Presenting):
            self.audience.pointer = pointer
        self.redraw()
