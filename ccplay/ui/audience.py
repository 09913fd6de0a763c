"""A session with an audience: the presenter's view is sent, and spectators follow it or roam.

``ccplay.share`` defines what is sent, and how.
"""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from ccplay.errors import CcplayError
from ccplay.files.reading import open_regular
from ccplay.session.session import Session
from ccplay.share.frames import COLUMNS, Board, Over, Shown, Votes
from ccplay.ui.plot_row import PANES

if TYPE_CHECKING:
    from ccplay.share.presenter import BrowserServer, Sharing
    from ccplay.share.sockets import WatchSource


# --- the presenter's view on the screen of a spectator --------------------------------------------


def adapted(theirs: Shown, mine: Shown) -> Shown:
    """Return a presenter's view as far as this screen can show it: it may have other plots."""
    head, own = theirs.playhead, mine.playhead
    head = replace(head, recorded=own.recorded, seen=max(own.seen, head.t))
    if head.running and not own.recorded:
        # A live playhead runs by itself, at the newest moment received.
        head = replace(head, t=own.t, left=own.left, seen=own.seen)
    listing = replace(theirs.listing, typing=False)
    if listing.column not in COLUMNS:
        listing = replace(listing, column="")
    plots = tuple(name for name in theirs.plots if name in PANES)
    large = theirs.large if theirs.large in PANES else ""
    if theirs.plots and not plots:
        plots, large = mine.plots, mine.large
    return replace(theirs, playhead=head, listing=listing, plots=plots, large=large)


# --- the spectator's side: the screen follows the presenter until the spectator changes it --------

ROAMING = frozenset(
    {
        *("freeze", "scrub", "scrub_far", "seek_start", "seek_end", "zoom", "speed"),
        *("select_flow", "alone", "groups", "stack", "sort", "reverse", "filter", "show_all"),
        *("other_queue", "variable", "logarithm", "hold", "enlarge", "receiver", "map"),
    }
)
"""Actions that change the view; after one of them a spectator roams."""

WITH_FILES = frozenset({"picture", "save_scenario", "ghost", "suspend_process"})
"""Actions on files and the process, which a restricted spectator may not use."""


class Following:
    """Follows the presenter of a shared session, or lets the spectator roam."""

    watches = True
    shares = False
    name = ""

    def __init__(self, source: WatchSource, *, restricted: bool = False) -> None:
        self.following = True
        """Whether the screen shows what the presenter sees."""
        self.keeps_files = not restricted
        """Whether this spectator may read and write files."""
        self.joined: WatchSource | None = None
        """Source of the presenter's next network; None before it is joined."""
        self._source = source
        self._taken: Shown | None = None
        self._plots: tuple[str, ...] = ()

    @property
    def source(self) -> WatchSource:
        """The source of the presenter's session."""
        return self._source

    @property
    def words(self) -> str:
        """The header's note: whether this screen watches, follows or roams."""
        if self._source.view is None:
            return "watching"
        return "following" if self.following else "roaming"

    @property
    def reading(self) -> bool:
        """Whether the session's past is still being read."""
        return not self._source.present

    def roam(self) -> None:
        """Stop following the presenter."""
        self.following = False

    def follow(self) -> None:
        """Follow the presenter again."""
        self.following, self._taken = True, None

    def tick(self, shown: Shown, now: float) -> Shown | None:  # noqa: ARG002 - as ``Presenting.tick``
        """Return the presenter's view while following, whenever it has changed; else None.

        What the presenter points at is shown while roaming too.
        """
        view = self._source.view
        shown.pointer = view.pointer if view is not None else None
        if not self.following or view is None:
            return None
        if self._taken is not None and shown.plots != self._plots:
            # The spectator chose plots in the palette.
            self.roam()
        elif view is not self._taken:
            self._taken, found = view, adapted(view, shown)
            self._plots = found.plots
            return found
        return None

    def start(self) -> None:
        """Do nothing: spectators share nothing."""

    def announce(self, reason: str) -> None:
        """Do nothing: spectators have no audience."""

    async def rejoin(self) -> bool:
        """Wait for the presenter's next network; return whether it was joined."""
        self.joined = await self._source.rejoin()
        return self.joined is not None

    def give_up(self) -> None:
        """Do nothing: spectators start no network."""

    def close(self) -> None:
        """Do nothing: a spectator holds no resources here."""


# --- the presenter's side: share the session, count spectators, and point at moments --------------

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
        self._session = session
        self._label = label
        self._group = group
        self._recording = recording
        self.browsers: BrowserServer | None = None
        """Process that serves browsers; None if there is none."""
        self._sharing: Sharing | None = None
        self._sent: Shown | None = None
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
        from ccplay.share.presenter import Sharing  # noqa: PLC0415 - most sessions are not shared

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
            session.sinks.append(self._sharing)
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

    def open_to_browsers(self, place: str = "") -> BrowserServer:
        """Serve the session to browsers too, at the address ``place``; by default on loopback.

        Raises ``CcplayError`` if the session can't be shared.
        """
        from ccplay.share.presenter import BrowserServer  # noqa: PLC0415 - most sessions are not shared

        if not self.name:
            self.close()
            self.start()
        if self._sharing is not None and (self.browsers is None or self.browsers.failed):
            if self.browsers is not None:
                self.browsers.close()
            self.browsers = BrowserServer(self._sharing.path, place)
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
        """Stop sharing, and stop serving browsers unless another network follows."""
        sharing, self._sharing = self._sharing, None
        if sharing is not None:
            sharing.close()
        if self.browsers is not None and not self._another:
            self.browsers.close()
            self.browsers = None
        if sharing is not None:
            self._session.watched = False

    def tick(self, shown: Shown, now: float) -> None:
        """Send changes of the view to spectators; ``now`` is a clock in seconds."""
        if self._sharing is None:
            return
        self._sharing.listen()
        if self.browsers is not None:
            self.browsers.listen()
        self._session.watched = self._sharing.watching > 0
        if self._sent is None or self._differs(self._sent, shown, now - self._sent_at):
            self._sent, self._sent_at = replace(shown, playhead=copy(shown.playhead)), now
            self._sharing.show(self._sent)

    def _differs(self, before: Shown, now: Shown, elapsed: float) -> bool:
        one, other = before.playhead, now.playhead
        if not (one.running and other.running):
            return before != now
        if self._session.recorded and abs(one.t + elapsed * other.speed - other.t) > _SOON_S:
            return True
        # Some values change as time passes.
        still = replace(one, t=other.t, left=other.left, seen=other.seen)
        return replace(before, playhead=still) != now


# --- either side of a shared session, presenter or spectator, with one interface for the screen ---

Audience: TypeAlias = Presenting | Following
