"""The presenter's side: share the session, count spectators, and point at moments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ccplay.errors import CcplayError
from ccplay.files.reading import open_regular
from ccplay.session.session import Session
from ccplay.share.frames import Board, Over, Pointer, PresenterView, Votes
from ccplay.ui.audience.snapshot import Shown, captured

if TYPE_CHECKING:
    from ccplay.share.browsers import Browsers
    from ccplay.share.sharing import Sharing

_SOON_S = 0.3
"""Largest difference in seconds between a replay's moment and the expected one without a jump."""


class Presenting:
    """Shares the session of this screen, from the start or when asked."""

    watches = False
    following = False
    reading = False
    keeps_files = True
    joined = None

    def __init__(
        self,
        session: Session,
        label: str,
        *,
        group: str | None = None,
        recording: Path | None = None,
    ) -> None:
        """Prepare to share the session under a name made from ``label``.

        ``recording`` is the file that a replay shows; the users of ``group`` may watch too.
        """
        self.pointer: Pointer | None = None
        """Moment that the presenter points at; None if there is none."""
        self._session = session
        self._label = label
        self._group = group
        self._recording = recording
        self.browsers: Browsers | None = None
        """Process that serves browsers; None if there is none."""
        self._sharing: Sharing | None = None
        self._sent: PresenterView | None = None
        self._sent_at = 0.0
        self._board: Board | None = None
        self.shares = False
        """Whether the user asked for sharing; if so, the next network is shared too."""
        self._another = False
        """Whether another network follows, to which the browsers are handed over."""

    @property
    def name(self) -> str:
        """Name of the session for spectators; empty while it is not shared."""
        sharing = self._sharing
        return sharing.name if sharing and not sharing.closed else ""

    @property
    def words(self) -> str:
        """The header's note: the number of spectators; empty if there are none."""
        watching = self._sharing.watching if self._sharing else 0
        return f"{watching} watching" if watching else ""

    def start(self) -> None:
        """Share the session, including its past. Raises ``CcplayError``."""
        from ccplay.share.sharing import Sharing  # noqa: PLC0415 - most sessions are not shared

        session, recorded = self._session, self._recording is not None
        kept = self._recording or (session.archived if session.done else None)
        if session.done and kept is None:
            raise CcplayError("this session has ended and was not recorded: nothing to share")
        try:
            past = open_regular(kept) if kept else session.past()
        except OSError as error:
            raise CcplayError(f"can't share this session: {error.strerror or error}") from None
        try:
            self._sharing = Sharing(
                self._label, session.title, group=self._group, recorded=recorded, past=past
            )
        finally:
            if past is not None:
                past.close()
        # Spectators find the next network under the same name.
        self._label = self._sharing.name
        if not session.done and not recorded:
            session.join(self._sharing)
        self._sent = self._board = None
        self.shares = True

    @property
    def votes(self) -> Votes | None:
        """Latest count of votes on the question of a lesson; None before the first."""
        return self._sharing.votes if self._sharing else None

    def write(self, board: Board) -> None:
        """Send the page of a lesson to spectators if it has changed."""
        if self._sharing is not None and board != self._board:
            self._board = board
            self._sharing.show(board)

    def stop(self) -> None:
        """Stop sharing on the user's request."""
        self.shares = False
        self.close()

    def open_to_browsers(self, place: str = "") -> Browsers:
        """Serve the session to browsers too, at the address ``place``; by default on loopback.

        Raises ``CcplayError`` if the session can't be shared.
        """
        from ccplay.share.browsers import Browsers  # noqa: PLC0415 - most sessions are not shared

        if not self.name:
            self.close()
            self.start()
        if self._sharing is not None and (self.browsers is None or self.browsers.failed):
            if self.browsers is not None:
                self.browsers.close()
            self.browsers = Browsers(self._sharing.path, place)
        assert self.browsers is not None  # noqa: S101 - it is shared now
        return self.browsers

    def announce(self, reason: str) -> None:
        """Inform spectators why sharing is about to end: another network follows, to be joined."""
        self._another = True
        if self._sharing is not None:
            self._sharing.show(Over(reason=reason, another=True))

    def followed_by(self, session: Session) -> Presenting:
        """Return the audience of the next network, with the same name and browsers.

        It is shared if this one was. Raises ``CcplayError``.
        """
        following = Presenting(session, self._label, group=self._group)
        following.browsers, self.browsers = self.browsers, None
        if self.shares:
            try:
                following.start()
            except CcplayError:
                following.close()
                raise
        return following

    async def rejoin(self) -> bool:
        """Return False: a presenter starts the next network."""
        return False

    def give_up(self) -> None:
        """Stop serving browsers, because the network that was announced can't be started."""
        self._another = False
        self.close()

    def close(self) -> None:
        """Stop sharing, and stop serving browsers unless they go on to another network."""
        sharing, self._sharing, self.pointer = self._sharing, None, None
        if sharing is not None:
            sharing.close()
        if self.browsers is not None and not self._another:
            self.browsers.close()
            self.browsers = None
        if sharing is not None:
            self._session.watched = False

    def tick(self, screen: Shown, now: float) -> None:
        """Send changes of the view to spectators; ``now`` is a clock in seconds."""
        if self._sharing is None:
            return
        self._sharing.listen()
        if self.browsers is not None:
            self.browsers.listen()
        self._session.watched = self._sharing.watching > 0
        view = captured(screen, self.pointer)
        if self._sent is None or self._differs(self._sent, view, now - self._sent_at):
            self._sent, self._sent_at = view, now
            self._sharing.show(view)

    def _differs(self, before: PresenterView, view: PresenterView, elapsed: float) -> bool:
        if not (before.running and view.running):
            return before != view
        if self._session.recorded and abs(before.t + elapsed * view.speed - view.t) > _SOON_S:
            return True
        return _still(before) != _still(view)


def _still(view: PresenterView) -> PresenterView:
    """Return the view without the values that change as time passes."""
    return msgspec.structs.replace(view, t=0.0, left=0.0)
