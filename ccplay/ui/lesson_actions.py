"""Actions in a lesson and in a shared session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events

from ccplay.errors import CcplayError
from ccplay.share.frames import Board, Pointer
from ccplay.ui.audience import ROAMING, Following, Presenting
from ccplay.ui.lesson_roles import Asks, Leader, Role, Voter, asks, placed, region, step
from ccplay.ui.view_actions import LookActions

if TYPE_CHECKING:
    from ccplay.share.presenter import BrowserServer
    from ccplay.ui.lesson_panel import LessonPanel


# --- actions in a lesson: turn pages, answer or vote, move the predicted region of a plot ---------

_TOO_LATE = "Too late: the vote is closed, because the run has started."
_PAGES_RUN = "this page's run starts traffic"
_BEFORE_RUN = ("asking", "reading", "clearing", "running")
"""Phases of a page until its run, which starts the traffic, has ended."""


class LessonActions(LookActions):
    """The actions in a lesson; without a lesson its keys keep their usual effects."""

    lesson: Role | None = None
    """Lesson that is open; None if there is none."""
    _panel: LessonPanel | None = None
    _page: tuple[int, str] = (0, "")
    """Number of the page whose look has been applied, and the traffic selected for it."""

    @property
    def asked(self) -> Asks:
        """The kind of answer that keys can give now; empty for none."""
        return "" if self.lesson is None else asks(self.lesson)

    @property
    def is_late(self) -> bool:
        """Whether a spectator's digit is a vote that came too late, rather than for a plot."""
        board = self.lesson.board if self.lesson is not None else None
        if self.lesson is None or self.lesson.leads or board is None or not board.question:
            return False
        return not board.open and board.phase != "revealed"

    @property
    def predicted(self) -> tuple[str, float, float] | None:
        """The region being predicted: name of the plot, and both ends on its value axis."""
        return None if self.lesson is None else region(self.lesson)

    @property
    def awaits(self) -> str:
        """Reason why traffic will start without a key; empty once the page's run has ended."""
        board = self.lesson.board if self.lesson is not None else None
        return _PAGES_RUN if board is not None and board.phase in _BEFORE_RUN else ""

    @property
    def guided(self) -> bool:
        """Whether the lesson takes the Enter key."""
        return self.offers_lesson("lesson_next")

    def beside_lesson(self, width: int, height: int) -> tuple[int, int]:
        """Place the lesson's panel; return the columns and lines left for the rest."""
        return (width, height) if self._panel is None else self._panel.place(width, height)

    def offers_lesson(self, action: str) -> bool:
        """Return whether an action of the lesson has an effect now."""
        if self.lesson is None or self.lesson.board is None:
            return False
        if action == "lesson_next":
            return self.lesson.leads or bool(self.asked)
        return self.lesson.leads or action == "lesson_scroll"

    # --- each frame -------------------------------------------------------------------------

    def tick_lesson(self) -> None:
        """Show changes of the lesson, here and on the screens of spectators."""
        if self.lesson is None and isinstance(self.audience, Following):
            self.lesson = Voter(self.audience.source)
        lesson = self.lesson
        if lesson is None:
            return
        leading = lesson.leading
        if leading is not None and isinstance(self.audience, Presenting):
            leading.votes = self.audience.votes
        board = lesson.board
        if board is not None and isinstance(self.audience, Presenting):
            self.audience.write(board)
        if (board is None) != (self._panel is None):
            self._open_panel(board)
        if leading is not None:
            self._take_look(leading)
        # Text written before the panel has its parts would be lost.
        if board is not None and self._panel is not None and self._panel.is_mounted:
            from ccplay.ui.lesson_panel import written  # noqa: PLC0415 - after first paint

            look = self.appearance
            now = self.session.state.now
            self._panel.write(written(lesson, board, now, look.glyphs, look.keymap))

    def _open_panel(self, board: Board | None) -> None:
        if board is None and self._panel is not None:
            self._panel.remove()
            self._panel = None
        else:
            from ccplay.ui.lesson_panel import LessonPanel  # noqa: PLC0415 - after first paint

            self._panel = LessonPanel()
            self.mount(self._panel, before="#footer")
        self.lay_out(*self.size)

    def _take_look(self, leader: Leader) -> None:
        """Apply a page's view of plots and queue when it opens; select its traffic once started."""
        look, number = leader.course.page.look, leader.course.at + 1
        network = self.view.network
        if self._page[0] != number and network is not None:
            self._page = (number, "")
            if look.plots:
                self.plots.lend(look.plots)
            if look.window_s is not None:
                self.shown.playhead.width = look.window_s
            if look.queue in network.observed:
                self.shown.observed = network.observed.index(look.queue)
            self.redraw()
        name = leader.named(look.flow)
        if name and name != self._page[1] and name in self.session.state.traffic:
            self._page = (number, name)
            self.shown.selected = name
            self.redraw()

    # --- keys -------------------------------------------------------------------------------

    def action_lesson_next(self) -> None:
        """Give the answer entered; else run, reveal, or open the next page."""
        lesson, asked = self.lesson, self.asked
        if lesson is None or (board := lesson.board) is None:
            return
        waits = lesson.answer is None or not lesson.leads
        if asked == "number" and waits:
            self._ask_number(board)
            return
        if asked == "region" and waits:
            lesson.give(lesson.draft)
        elif asked == "choices" and lesson.answer is None and not (lesson.leads and lesson.voters):
            keys = f"{self._digit(0)} to {self._digit(len(board.choices) - 1)}"
            what = "Answer" if lesson.leads else "Vote"
            self.app.notify(
                f"{what} with a key from {keys} first: what do you expect?", markup=False
            )
            return
        elif lesson.leads and board.phase == "revealed" and board.page == board.pages:
            self.app.notify("This is the last page.", markup=False)
            return
        if lesson.leading is not None:
            lesson.leading.advance()
            now, ended = self.session.state.now, lesson.leading.revealed_until
            if ended is not None:
                # The plots keep showing the run while its explanation is read.
                self.shown.playhead.look_back(ended, now)
            else:
                # The run happens now, whatever moment the screen shows.
                self.shown.playhead.jump(now, now)
                self.shown.playhead.running = not self.session.done
        self._after_key()

    def action_lesson_back(self) -> None:
        """Open the previous page."""
        if self.lesson is not None and self.lesson.leading is not None:
            self.lesson.leading.back()
            self._after_key()

    def action_lesson_again(self) -> None:
        """Repeat the page."""
        if self.lesson is None or self.lesson.leading is None:
            return
        if self.lesson.answer is None:
            self._repeat(wanted=True)
            return
        from ccplay.ui.dialogs_session import Confirmation  # noqa: PLC0415 - after first paint

        text = "Your answer and the result of this page are discarded."
        question = Confirmation("Repeat this page", "repeat", text)
        self.app.push_screen(question, lambda wanted: self._repeat(wanted=bool(wanted)))

    def _repeat(self, *, wanted: bool) -> None:
        if wanted and self.lesson is not None and self.lesson.leading is not None:
            self.lesson.leading.repeat_page()
            self._after_key()

    def action_lesson_scroll(self, pages: int) -> None:
        """Scroll the page."""
        if self._panel is not None:
            self._panel.scroll_by(pages)

    def action_enlarge(self, place: int) -> None:
        """Choose the answer at this index, or begin to type a number; else enlarge a plot."""
        lesson = self.lesson
        board = lesson.board if lesson is not None else None
        if lesson is not None and board is not None and self.asked in ("number", "region"):
            digit = self._digit(place)
            self._ask_number(board, digit if digit.isdigit() else "")
        elif self.is_late:
            self.app.notify(_TOO_LATE, severity="warning", markup=False)
        elif lesson is None or board is None or self.asked != "choices":
            super().action_enlarge(place)
        elif place < len(board.choices):
            lesson.give(float(place))
            self._after_key()

    def _digit(self, place: int) -> str:
        """Return the key of the answer, or of the plot, at this index."""
        return self.appearance.keymap.shown(f"plot-{place + 1}")

    def on_key(self, event: events.Key) -> None:
        """Begin to type a number with 0, the only digit that enlarges no plot."""
        board = self.lesson.board if self.lesson is not None else None
        if event.character == "0" and board is not None and self.asked in ("number", "region"):
            event.stop()
            self._ask_number(board, "0")

    def action_select_flow(self, steps: int) -> None:
        """Move the predicted region if the page asks for one; else move the table's selection."""
        lesson = self.lesson
        board = lesson.board if lesson is not None else None
        if lesson is None or board is None or self.asked != "region":
            super().action_select_flow(steps)
            return
        lesson.draft = placed(board, lesson.draft - steps * step(board))
        if lesson.answer is not None and lesson.leads:
            lesson.give(lesson.draft)
        self._after_key()

    def _ask_number(self, board: Board, begun: str = "") -> None:
        from ccplay.ui.dialogs_session import PredictionDialog  # noqa: PLC0415 - after first paint

        self.app.push_screen(PredictionDialog(board, begun), self._number_given)

    def _number_given(self, number: float | None) -> None:
        lesson = self.lesson
        board = lesson.board if lesson is not None else None
        if number is not None and lesson is not None and board is not None:
            if board.plot:
                number = lesson.draft = placed(board, number - board.width / 2)
            if not lesson.give(number):
                self.app.notify(_TOO_LATE, severity="warning", markup=False)
        self._after_key()

    def _after_key(self) -> None:
        self.tick_lesson()
        self.redraw()


# --- actions in a shared session: the presenter shares and points, a spectator follows ------------


class AudienceActions(LessonActions):
    """The actions of presenter and spectator."""

    def follow(self, now: float) -> None:
        """Send the view to spectators, or apply the presenter's; ``now`` is a clock in seconds."""
        theirs = self.audience.tick(self.shown, now)
        if theirs is not None:
            self.plots.lend(theirs.plots, theirs.large)
            self.show_map(shown=theirs.map)
            for name in theirs.__struct_fields__:
                setattr(self.shown, name, getattr(theirs, name))

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
            self.follow(0.0)
            self.redraw()

    def action_share(self) -> None:
        """Share this session, or stop sharing it."""
        audience = self.audience
        if not isinstance(audience, Presenting):
            return
        from ccplay.ui.dialogs_session import Confirmation  # noqa: PLC0415 - after first paint

        if audience.name:
            question = Confirmation(
                "Stop sharing", "stop", "Everyone who watches this session loses it."
            )
            self.app.push_screen(question, self._stop_sharing)
        else:
            question = Confirmation(
                "Share this session",
                "share",
                "Others can watch it from its beginning, on this machine or over SSH. "
                "They can change nothing.",
            )
            self.app.push_screen(question, self._share)

    def _stop_sharing(self, wanted: bool | None) -> None:
        if wanted and isinstance(self.audience, Presenting):
            self.audience.stop()
            self.shown.pointer = None
            self.app.notify("This session is no longer shared.", markup=False)
            self.redraw()

    def _share(self, wanted: bool | None) -> None:
        if not wanted or not isinstance(self.audience, Presenting):
            return
        try:
            self.audience.start()
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

    def _show_link(self, browsers: BrowserServer) -> None:
        from ccplay.ui.dialogs_session import BrowserLink  # noqa: PLC0415 - after first paint

        self.app.push_screen(BrowserLink(browsers))

    def action_point(self) -> None:
        """Point at the moment shown with a few words, or stop pointing."""
        audience = self.audience
        if not isinstance(audience, Presenting) or not audience.name:
            return
        if self.shown.pointer is not None:
            self._point(None)
            return
        from ccplay.ui.dialogs_session import PointDialog  # noqa: PLC0415 - after first paint

        self.app.push_screen(PointDialog(self.shown.playhead.t), self._point)

    def _point(self, pointer: Pointer | None) -> None:
        self.shown.pointer = pointer
        self.redraw()
