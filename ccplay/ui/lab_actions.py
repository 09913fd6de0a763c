"""Actions that send commands to the lab: traffic, links, queues, marks, paths, undo."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial

from msgspec.structs import replace
from textual.screen import ModalScreen

from ccplay.errors import CommandError
from ccplay.model.base import Command
from ccplay.model.commands import (
    ChangeMark,
    Mark,
    RemoveMark,
    SetPath,
    SetQdisc,
    StopCapture,
    TraceFlow,
    UntraceFlow,
)
from ccplay.model.disciplines import plain, validate
from ccplay.model.network import Network
from ccplay.model.series import Series
from ccplay.model.values import Qdisc
from ccplay.scenario.values import Scenario
from ccplay.state.lab_state import LabState
from ccplay.traffic import KINDS
from ccplay.traffic.base import LogEntry, Traffic
from ccplay.ui import lineup
from ccplay.ui.view import tracing_problem
from ccplay.ui.view_actions import STEP, Actions
from ccplay.units import format_clock

# --- paths that the user can choose for traffic, for keys and palette -----------------------------

_MOST_OFFERED = 16
"""Largest number of paths that the palette offers for one flow."""


def can_choose(traffic: Traffic, network: Network) -> bool:
    """Return whether traffic has several paths, and a command can choose one."""
    chosen = KINDS[traffic.kind].routed
    return chosen and len(network.paths(traffic.src, traffic.dst)) > 1


def offers(state: LabState, traffic: Traffic, network: Network) -> Iterator[tuple[str, SetPath]]:
    """Yield the other paths of running traffic: a description, and the command."""
    if not can_choose(traffic, network):
        return
    subject = state.flows.get(traffic.name, traffic)
    now = subject.paths[-1] if subject.paths else None
    paths = network.paths(traffic.src, traffic.dst)[:_MOST_OFFERED]
    nodes = [[link.dst for link in path[:-1]] for path in paths]
    shared = set.intersection(*map(set, nodes))
    for path, routers in zip(paths, nodes, strict=True):
        if now is None or [link.name for link in path] != now.links or not now.pinned:
            via = [each for each in routers if each not in shared]
            yield f"via {', '.join(via)}", SetPath(traffic=lineup.name_of(traffic), via=via)
    if now is not None and now.pinned:
        yield "by hash", SetPath(traffic=lineup.name_of(traffic), via=[])


# --- what a discipline with fair queues does to the line ------------------------------------------

_FAIR = ("cake", "fq_codel")
"""Disciplines that keep flows apart and their queues short, the better one first."""

_WITHIN_S, _LATER_S = 5.0, 6.0
"""Seconds of delays that are compared, and seconds until those of the new queue are known."""

_DELAYS = {"monitor_one_way_delay_us": "takes", "one_way_delay_us": "takes", "rtt_us": "returns in"}
"""Variables that tell what waiting does to traffic, the plainest first, with a verb for each."""

_LONGEST_MARK = 100
"""Characters of a mark for which a screen has room."""


def fairly_queued(state: LabState, links: Sequence[str]) -> list[SetQdisc]:
    """Return the commands that keep flows on links apart, or, if they are, end that."""
    queues = [state.setting_now(each).qdisc for each in links]
    kinds = {plain(each.kind) for each in queues if each is not None}
    if kinds and kinds <= set(_FAIR):
        return [SetQdisc(link=each, qdisc=_before(state, each)) for each in links]
    offered = state.hello.capabilities.qdiscs if state.hello else ()
    here = {plain(each.name) for each in offered if each.available}
    kind = next((each for each in _FAIR if each in here), _FAIR[-1])
    return [SetQdisc(qdisc=validate(Qdisc(kind=kind)))]


def _before(state: LabState, link: str) -> Qdisc:
    """Return the last queue of a link that was not one of ``_FAIR``; a FIFO if there was none."""
    for change in reversed(state.links.get(link, [])):
        found = change.setting.qdisc
        if found is not None and plain(found.kind) not in _FAIR:
            return found
    return validate(Qdisc(kind="pfifo"))


def delays_around(state: LabState, t: float) -> Iterator[str]:
    """Yield in words how the delay of traffic changed at ``t``: of the plainest kind there is."""
    for name, verb in _DELAYS.items():
        found = False
        for traffic in state.traffic.values():
            series = traffic.series.get(name)
            if series is None:
                continue
            before = _median_ms(series, t - _WITHIN_S, t)
            after = _median_ms(series, t + 1, t + _LATER_S)
            if before is not None and after is not None:
                found = True
                yield f"{traffic.name} {verb} {after:.0f} ms, before {before:.0f} ms"
        if found:
            return


def _median_ms(series: Series, start: float, end: float) -> float | None:
    ticks = [series.timeline.at_or_after(each) for each in (start, end)]
    found = series.median(*ticks)
    return None if found is None else found / 1e3


# --- actions that send commands to the lab --------------------------------------------------------


class LabActions(Actions):
    """The actions on traffic and network, and those that undo them or start another lab."""

    start: Callable[[Scenario | None], Awaitable[None]] | None
    """Function that leaves for another network; None if this screen can't, as a replay."""

    def action_dialog(self, name: str) -> None:
        """Open a dialog, then send its command to the lab."""
        if not self.is_ready(ready=self.session.state.phase == "ready"):
            return
        # Imported after first paint.
        from ccplay.ui import dialogs_links, dialogs_traffic  # noqa: PLC0415

        dialog: Callable[..., ModalScreen[Command | None]] = getattr(
            dialogs_traffic if hasattr(dialogs_traffic, name) else dialogs_links, name
        )
        self.app.push_screen(dialog(self.session.state, self.shown.selected), self._asked)

    def action_start_traffic(self, kind: str | None = "") -> None:
        """Open the dialog of a kind of traffic; ask first for the kind if there is none."""
        if kind is None or not self.is_ready(ready=self.session.state.phase == "ready"):
            return
        from ccplay.ui.dialogs_traffic import StartDialog, TrafficDialog  # noqa: PLC0415

        if kind:
            dialog = StartDialog(KINDS[kind], self.session.state, self.shown.selected)
            self.app.push_screen(dialog, self._asked)
        else:
            menu = TrafficDialog(self.appearance.keymap)
            self.app.push_screen(menu, self.action_start_traffic)

    def _asked(self, command: Command | None) -> None:
        if command is not None:
            self.ask(command)
        self.redraw()

    def ask(self, command: Command) -> None:
        """Send a command to the lab; a new mark is set at the moment shown.

        If the screen shows an earlier moment, a notice shows when any other command was sent.
        """
        head, self.sent = self.shown.playhead, ""
        if not head.running and isinstance(command, Mark) and command.at is None:
            command = replace(command, at=head.t)
        elif not isinstance(command, Mark | ChangeMark | RemoveMark):
            self._note_sent(command.describe())
        self.session.send(command)
        self.redraw()

    def _note_sent(self, text: str) -> None:
        """Let a notice show when a command was sent, if the screen shows an earlier moment."""
        at = format_clock(self.session.state.now)
        earlier = not self.shown.playhead.running
        self.sent = f"sent to the live lab at {at} (end goes there): {text}" if earlier else ""

    def action_undo(self) -> None:
        """Undo the user's last change."""
        self._report(self.session.undo)

    def action_redo(self) -> None:
        """Redo the last undone change."""
        self._report(self.session.redo)

    def _report(self, step: Callable[[], str]) -> None:
        """Undo or redo a change, and report its effect or why it is impossible."""
        translate = self.appearance.glyphs.translate
        try:
            text = step()
        except CommandError as error:
            self.app.notify(translate(str(error)), severity="warning", markup=False)
            return
        self._note_sent(text)
        self.app.notify(translate(text), markup=False)
        self.redraw()

    def undo_offers(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        """Yield the palette's entry for undo, if there is a change: text, meaning, and function."""
        key = self.appearance.keymap.shown("undo")
        if self.session.undoable:
            yield f"undo: {self.session.undoable}", f"your last change ({key})", self.action_undo

    def action_new_network(self) -> None:
        """Ask for a network, then end this lab and start a lab with that network."""
        from ccplay.ui.dialogs_links import NetworkDialog  # noqa: PLC0415 - after first paint

        hello = self.session.state.hello
        topology = hello.network.topology if hello is not None else None
        self.app.push_screen(NetworkDialog(topology), self.start)

    def action_fair_queue(self) -> None:
        """Put CAKE on every observed link, or what was there before; say later what it did."""
        state = self.session.state
        if not self.is_ready(ready=state.phase == "ready") or self.view.network is None:
            return
        for command in fairly_queued(state, self.view.network.observed):
            self.session.send(command)
        self.app.set_timer(_LATER_S, partial(self._report_fair_queue, state, state.now))
        self.redraw()

    def _report_fair_queue(self, state: LabState, t: float) -> None:
        """Set a mark that says what a change of the queue at ``t`` did to delays."""
        if state is not self.session.state or state.phase != "ready":
            return
        lines = [*delays_around(state, t)]
        if lines:
            self.session.send(Mark(text="; ".join(lines)[:_LONGEST_MARK], at=t))

    def action_stop(self) -> None:
        """Stop the selected traffic."""
        chosen = lineup.selection(self.view)
        if chosen is None or chosen.ended is not None:
            text = "No running traffic is selected: choose with ↑↓."
            self.app.notify(self.appearance.glyphs.translate(text), severity="warning")
        else:
            self.ask(lineup.stop(chosen))

    def action_path(self) -> None:
        """Move the selected traffic to the next of its paths."""
        chosen, network = lineup.selection(self.view), self.view.network
        if chosen is None or chosen.ended is not None or network is None:
            self.app.notify("No running traffic is selected.", severity="warning")
            return
        if not can_choose(chosen, network):
            arrow = self.appearance.glyphs.translate("→")
            text = f"{chosen.name} has one path only: {chosen.src} {arrow} {chosen.dst}"
            self.app.notify(text, severity="warning", markup=False)
            return
        self.ask(SetPath(traffic=lineup.name_of(chosen)))

    def action_capture(self) -> None:
        """End the newest running capture; if none is running, ask which link to capture."""
        if running := list(self.session.state.captures):
            self.ask(StopCapture(capture=running[-1]))
        else:
            self.action_dialog("CaptureDialog")

    def action_trace(self) -> None:
        """Trace every ACK of the selected flow, or stop tracing it."""
        state, flow = self.session.state, self.view.flow
        if flow is None or not flow.running:
            self.app.notify("No running flow is selected.", severity="warning")
        elif flow.parent in state.traced:
            self.ask(UntraceFlow(flow=flow.parent))
        elif problem := tracing_problem(state):
            text = f"flow {flow.parent} is sampled, not traced: {problem}"
            self.app.notify(text, severity="warning", timeout=8, markup=False)
        else:
            self.ask(TraceFlow(flow=flow.parent))


# --- actions on marks: set at the cursor, changed, moved and removed by keys and palette ----------


class MarkActions(LabActions):
    """The actions on a session's marks."""

    carried: LogEntry | None = None
    """The mark that moves with the cursor until it is put down."""

    @property
    def notice(self) -> str:
        """Hint shown while a mark is being moved; otherwise the usual notice."""
        if self.carried is None:
            return super().notice
        text = f"moving the mark of {format_clock(self.carried.t)}"
        key = self.appearance.keymap.shown
        moves, puts = f"{key('back')}{key('forward')}", f"{key('mark')} or {key('put-mark')}"
        text += f": {moves}, then {puts} to put it here, {key('leave-mark')} to cancel"
        return f"{text}: {self.carried.text}"

    def action_mark(self) -> None:
        """Put down the mark being moved; else ask about a mark at the cursor, or a new one.

        A mark is at the cursor while the playhead is stopped near it.
        """
        if not self.is_ready(ready=self.session.state.phase == "ready"):
            return
        from ccplay.ui.dialogs_session import MarkDialog  # noqa: PLC0415 - after first paint

        at = None if self.shown.playhead.running else self.shown.playhead.t
        mark = None if at is None else self._mark_near(at)
        if self.carried is not None:
            self.action_put_mark()
        elif mark is not None:
            self._ask_about(mark)
        else:
            self.app.push_screen(MarkDialog(self.session.state, None, at), self._mark_asked)

    def action_put_mark(self) -> None:
        """Put the mark being moved at the cursor."""
        if self.carried is not None:
            mark, self.carried = self.carried, None
            self.ask(ChangeMark(name=mark.name, at=self.shown.playhead.t, text=mark.text))
            self.redraw()

    def action_leave_mark(self) -> None:
        """Return the mark being moved to its old place."""
        self.carried = None
        self.redraw()

    def mark_offers(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        """Yield the palette's entries for every mark: text, meaning, and function."""
        for mark in reversed(self._own_marks()):
            at = f"at {format_clock(mark.t)}"
            yield f"change mark {mark.text}", at, partial(self._ask_about, mark)
            yield f"move mark {mark.text}", f"{at}, with ←→", partial(self._carry, mark)
            remove = RemoveMark(name=mark.name)
            yield f"remove mark {mark.text}", at, partial(self.ask, remove)

    def _own_marks(self) -> list[LogEntry]:
        return [each for each in self.session.state.log if each.kind == "mark" and each.name]

    def _mark_near(self, t: float) -> LogEntry | None:
        reach_s = self.shown.playhead.width * max(STEP, 1 / self.plots.columns)
        near = [each for each in self._own_marks() if abs(each.t - t) <= reach_s]
        return min(near, key=lambda each: abs(each.t - t), default=None)

    def _ask_about(self, mark: LogEntry) -> None:
        from ccplay.ui.dialogs_session import ChangeMarkDialog  # noqa: PLC0415 - after first paint

        self.app.push_screen(ChangeMarkDialog(mark), self._mark_asked)

    def _mark_asked(self, answer: Command | LogEntry | None) -> None:
        if isinstance(answer, LogEntry):
            self._carry(answer)
        elif answer is not None:
            self.ask(answer)
        self.redraw()

    def _carry(self, mark: LogEntry) -> None:
        """Make a mark follow the cursor, which first jumps to the mark."""
        self.shown.playhead.jump(mark.t, self.session.state.now)
        self.carried = mark
        self.redraw()
