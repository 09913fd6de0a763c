"""A lesson and a shared session on the screen: leading, voting, and the actions of keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import msgspec
from textual import events

from ccplay.errors import CcplayError
from ccplay.lesson.course import Course, measured_lines, right_answers
from ccplay.scenario.values import Look, Page
from ccplay.session.session import Session
from ccplay.share.frames import Board, Pointer, Votes
from ccplay.ui.audience import ROAMING, Following, Presenting
from ccplay.ui.view_actions import LookActions

if TYPE_CHECKING:
    from ccplay.share.browsers import Browsers
    from ccplay.ui.lesson_panel import LessonPanel

# --- the interface between the screen and a lesson, and the side of spectators, who vote ----------

Asks: TypeAlias = Literal["", "choices", "number", "region"]
"""Kind of answer that can be given now; empty for none."""

_STEPS = 25
"""Number of key presses that move a region from the lowest value to the highest."""


class Leading(Protocol):
    """The actions that lead a lesson, and the data that they need; implemented by ``Desk``."""

    votes: Votes | None

    @property
    def at(self) -> int:
        """Index of the open page."""

    @property
    def look(self) -> Look:
        """View of the network that the page asks for."""

    @property
    def revealed_until(self) -> float | None:
        """End of the page's run, in seconds of the stream; None before the reveal."""

    def named(self, name: str) -> str:
        """Return the lab's name for the traffic that the page calls ``name``."""

    def advance(self) -> None:
        """Start the run, reveal the result, or open the next page, whichever is next."""

    def back(self) -> None:
        """Open the previous page."""

    def again(self) -> None:
        """Repeat the page."""


class Lectern(Protocol):
    """A lesson as the screen uses it, whether the user leads it or votes."""

    draft: float
    """Lower end on the value axis of the region that the user moves before answering."""

    @property
    def board(self) -> Board | None:
        """The open page; None if there is none."""

    @property
    def answer(self) -> float | None:
        """The answer given on this page; None if there is none."""

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of votes for each answer that may be shown now."""

    @property
    def voters(self) -> int:
        """Number of votes that may be shown now."""

    @property
    def leads(self) -> bool:
        """Whether keys turn pages on this screen."""

    @property
    def leading(self) -> Leading | None:
        """Actions of the keys that turn pages; None on a spectator's screen."""

    def give(self, value: float) -> bool:
        """Set the answer; return whether it counts."""


def asks(lectern: Lectern) -> Asks:
    """Return the kind of answer that the open page accepts now."""
    board = lectern.board
    if board is None or not board.open or not board.question:
        return ""
    if board.choices:
        return "choices"
    return "region" if board.plot else "number"


def step(board: Board) -> float:
    """Return the distance that one key press moves the region, in units of the axis."""
    return (board.high - board.low) / _STEPS


def placed(board: Board, low: float) -> float:
    """Return the lower end of the region nearest to ``low`` that fits between the bounds."""
    return min(max(low, board.low), board.high - board.width)


def region(lectern: Lectern) -> tuple[str, float, float] | None:
    """Return the plot of the region to draw, and the region's ends on the axis; None if none."""
    board = lectern.board
    if board is None or not board.plot:
        return None
    low = lectern.draft if asks(lectern) else lectern.answer
    return None if low is None else (board.plot, low, low + board.width)


class Watched(Protocol):
    """The part of a ``WatchSource`` that concerns lessons."""

    board: Board | None

    def vote(self, question: int, choice: float) -> None:
        """Send a vote on the question of a lesson."""


class Seat:
    """A spectator's side of a lesson, which shows the presenter's page and votes."""

    leads = False
    leading = None

    def __init__(self, source: Watched) -> None:
        self.draft = 0.0
        self._source = source
        self._votes: dict[int, float] = {}
        self._drafted = 0

    @property
    def board(self) -> Board | None:
        """The page that the presenter has opened; None if there is none."""
        board = self._source.board
        if board is not None and board.question != self._drafted:
            self._drafted = board.question
            self.draft = (board.low + board.high - board.width) / 2
        return board

    @property
    def answer(self) -> float | None:
        """The vote cast on this page; None if there is none."""
        board = self._source.board
        return None if board is None else self._votes.get(board.question)

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of votes for each answer, once the answer is revealed."""
        board = self._source.board
        return () if board is None else board.counts

    @property
    def voters(self) -> int:
        """Number of votes for all answers, once the answer is revealed."""
        return sum(self.counts)

    def give(self, value: float) -> bool:
        """Send a vote, which replaces an earlier one; return whether it counts."""
        board = self._source.board
        if board is None or not board.open:
            return False
        self._votes[board.question] = value
        self._source.vote(board.question, value)
        return True


# --- the leading side of a lesson, which turns pages, records answers and reveals results ---------

_ROUND = 64
"""Factor by which the round is multiplied in a question's number, before the page is added; larger
than any lesson's number of pages."""


class Desk:
    """The leading side of a lesson: its keys turn pages, start runs and reveal results."""

    leads = True

    def __init__(self, course: Course, session: Session, keep: Callable[[], None]) -> None:
        """Open the lesson; ``keep`` saves its progress."""
        self.course = course
        self.title = ""
        self.draft = 0.0
        self._votes: dict[int, Votes] = {}
        """Latest votes of spectators, by question."""
        self._session = session
        self._keep = keep
        self._rounds = [0] * len(course.turns)
        self._begin_draft()

    @property
    def leading(self) -> Desk:
        """Actions of the keys that lead the lesson."""
        return self

    @property
    def at(self) -> int:
        """Index of the open page."""
        return self.course.at

    @property
    def question(self) -> int:
        """Number of the open question, which every vote contains."""
        return self._rounds[self.course.at] * _ROUND + self.course.at + 1

    @property
    def answer(self) -> float | None:
        """The answer given on this page; None if there is none."""
        return self.course.turn.answer

    @property
    def votes(self) -> Votes | None:
        """Latest votes of spectators on this page's question; None if there are none."""
        return self._votes.get(self.question)

    @votes.setter
    def votes(self, votes: Votes | None) -> None:
        if votes is not None:
            self._votes[votes.question] = votes

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of votes for each answer to this page's question; empty if there are none."""
        return self.votes.counts if self.votes is not None else ()

    @property
    def voters(self) -> int:
        """Number of votes on this page's question."""
        return self.votes.voters if self.votes is not None else 0

    @property
    def look(self) -> Look:
        """View of the network that the page asks for."""
        return self.course.page.look

    @property
    def revealed_until(self) -> float | None:
        """End of the page's run, in seconds of the stream; None before the reveal."""
        turn = self.course.turn
        return turn.span.ended if turn.span is not None and turn.verdict is not None else None

    def named(self, name: str) -> str:
        """Return the lab's name for the traffic that the page calls ``name``."""
        span = self.course.turn.span
        return span.names.get(name, name) if span is not None else name

    @property
    def board(self) -> Board:
        """The open page with its question, and its results once they are revealed."""
        course = self.course
        page, turn = course.page, course.turn
        board = Board(
            title=self.title[:500],
            page=course.at + 1,
            pages=len(course.turns),
            heading=page.title,
            lines=tuple(page.text.splitlines()),
            phase=course.phase(self._session.state.now),
            until=turn.span.ended if turn.span is not None else 0.0,
        )
        board = _with_question(board, page, self.question, open=course.answerable)
        verdict = turn.verdict
        if verdict is None:
            return board
        answers = right_answers(page.question, verdict) if page.question is not None else None
        return _replace(
            board,
            counts=self.counts,
            voted_right=self.votes.right if self.votes is not None else None,
            answers=answers,
            right=verdict.right,
            measured=tuple(measured_lines(page, verdict)),
            problem=verdict.problem,
            usual=verdict.usual,
            why=tuple(page.why.splitlines()),
        )

    def give(self, value: float) -> bool:
        """Set the answer; return whether it counts, which it does only before the run."""
        taken = self.course.answer(value)
        if taken:
            self._keep()
        return taken

    def advance(self) -> None:
        """Start the run, reveal the result, or open the next page, whichever is next."""
        at = self.course.at
        self.course.advance(self._session.state)
        self._moved(at)

    def back(self) -> None:
        """Open the previous page."""
        at = self.course.at
        self.course.turn_page(-1)
        self._moved(at)

    def again(self) -> None:
        """Repeat the page; spectators vote again."""
        self._rounds[self.course.at] += 1
        self.course.again()
        self._begin_draft()
        self._keep()

    def _moved(self, before: int) -> None:
        if self.course.at != before:
            self._begin_draft()
        self._keep()

    def _begin_draft(self) -> None:
        question = self.course.page.question
        if question is not None and question.range is not None:
            wanted = question.range
            middle = (wanted.low + wanted.high - wanted.width) / 2
            self.draft = middle if self.answer is None else self.answer


def _replace(board: Board, **changed: object) -> Board:
    return msgspec.structs.replace(board, **changed)


def _with_question(board: Board, page: Page, number: int, *, open: bool) -> Board:  # noqa: A002
    question = page.question
    if question is None:
        return board
    board = _replace(board, question=number, ask=question.ask, open=open)
    if question.range is None:
        return _replace(board, choices=tuple(each.text for each in question.choices))
    wanted = question.range
    return _replace(
        board,
        low=wanted.low,
        high=wanted.high,
        width=wanted.width,
        unit=page.measures[wanted.measure].unit,
        plot=wanted.plot,
    )


# --- actions in a lesson: turn pages, answer or vote, move the predicted region of a plot ---------

_TOO_LATE = "Too late: the vote is closed, because the run has started."
_PAGES_RUN = "this page's run starts traffic"
_BEFORE_RUN = ("asking", "reading", "clearing", "running")
"""Phases of a page until its run, which starts the traffic, has ended."""


class LessonActions(LookActions):
    """The actions in a lesson; without a lesson its keys keep their usual effects."""

    lesson: Lectern | None = None
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
            self.lesson = Seat(self.audience.source)
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

    def _take_look(self, desk: Leading) -> None:
        """Apply a page's view of plots and queue when it opens; select its traffic once started."""
        look, number = desk.look, desk.at + 1
        network = self.view.network
        if self._page[0] != number and network is not None:
            self._page = (number, "")
            if look.plots:
                self.plots.lend(look.plots)
            if look.window_s is not None:
                self.playhead.width = look.window_s
            if look.queue in network.observed:
                self.observed = network.observed.index(look.queue)
            self.redraw()
        name = desk.named(look.flow)
        if name and name != self._page[1] and name in self.session.state.traffic:
            self._page = (number, name)
            self.selected = name
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
                self.playhead.look_back(ended, now)
            else:
                # The run happens now, whatever moment the screen shows.
                self.playhead.jump(now, now)
                self.playhead.running = not self.session.done
        self._after_key()

    def action_lesson_back(self) -> None:
        """Open the previous page."""
        if self.lesson is not None and self.lesson.leading is not None:
            self.lesson.leading.back()
            self._after_key()

    def action_lesson_again(self) -> None:
        """Repeat the page."""
        if self.lesson is not None and self.lesson.leading is not None:
            self.lesson.leading.again()
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
        from ccplay.ui.dialogs_session import BrowserLink  # noqa: PLC0415 - after first paint

        self.app.push_screen(BrowserLink(browsers, self.appearance.glyphs))

    def action_point(self) -> None:
        """Point at the moment shown with a few words, or stop pointing."""
        audience = self.audience
        if not isinstance(audience, Presenting) or not audience.name:
            return
        if audience.pointer is not None:
            self._point(None)
            return
        from ccplay.ui.dialogs_session import PointDialog  # noqa: PLC0415 - after first paint

        self.app.push_screen(PointDialog(self.playhead.t), self._point)

    def _point(self, pointer: Pointer | None) -> None:
        if isinstance(self.audience, Presenting):
            self.audience.pointer = pointer
        self.redraw()
