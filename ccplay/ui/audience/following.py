"""The spectator's side: the screen follows the presenter until the spectator changes the view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ccplay.share.frames import Board, Pointer, PresenterView
from ccplay.ui.audience.snapshot import Shown, take_over

if TYPE_CHECKING:
    from ccplay.share.watching import WatchSource

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


class Watched(Protocol):
    """The part of a ``WatchSource`` that does not concern events."""

    view: PresenterView | None
    board: Board | None
    present: bool

    def vote(self, question: int, choice: float) -> None:
        """Vote on the question of a lesson."""

    async def rejoin(self) -> WatchSource | None:
        """Join the presenter's next network; None if there is none."""


class Following:
    """Follows the presenter of a shared session, or lets the spectator roam."""

    watches = True
    shares = False
    name = ""

    def __init__(self, source: Watched, *, restricted: bool = False) -> None:
        self.following = True
        """Whether the screen shows what the presenter sees."""
        self.keeps_files = not restricted
        """Whether this spectator may read and write files."""
        self.joined: WatchSource | None = None
        """Source of the presenter's next network; None before it is joined."""
        self._source = source
        self._taken: PresenterView | None = None
        self._plots: tuple[str, ...] = ()

    @property
    def source(self) -> Watched:
        """The source of the presenter's session."""
        return self._source

    @property
    def words(self) -> str:
        """The header's note: whether this screen watches, follows or roams."""
        if self._source.view is None:
            return "watching"
        return "following" if self.following else "roaming"

    @property
    def pointer(self) -> Pointer | None:
        """The moment that the presenter points at; None if there is none."""
        return self._source.view.pointer if self._source.view else None

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

    def tick(self, screen: Shown, now: float) -> None:  # noqa: ARG002 - as ``Presenting.tick``
        """Apply the presenter's view while following, whenever it has changed."""
        view = self._source.view
        if not self.following or view is None:
            return
        if self._taken is not None and screen.plots.picked != self._plots:
            # The spectator chose plots in the palette.
            self.roam()
        elif view is not self._taken:
            self._taken = view
            take_over(screen, view)
            self._plots = screen.plots.picked

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
