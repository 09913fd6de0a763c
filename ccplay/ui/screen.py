"""The main screen: the network, what flows, three plots on one time axis, what happened.

::

    ccplay  playground   dumbbell · 10 Mbit/s · 20 ms · pfifo 100 pkt    ● live 00:42  health ok
     s1 ● ─┐                              ┌─ ● d1     flow  cc     cwnd    rtt  goodput   retr
           ├─ r1 ══▶ ▕██████    ▏ ══▶ r2 ─┤         ▸● 1    cubic    87  98 ms  5.1 Mbit/s  12
     s2 ■ ─┘         61/100 pkt           └─ ■ d2    ■ 2    reno     41  97 ms  4.4 Mbit/s   9
    cwnd segments    ● 87 ■ 41    queue packets    61    RTT ms          ● 98 ■ 97
     100┤                          100┤┄┄┄┄┄┄┄┄┄┄┄┄┄┄     100┤
        │ one colour and mark         │ limit as a line      │ srtt, ping, base RTT
       0└──┴00:10────┴00:20──        0└──┴00:10────┴00:     0└──┴00:10────┴00:20──
    ▁open ▂dis ▄cwr ▆rec █loss     events
    ●1   ▁▁▁▁▁▁▁▆▁▁▁▁▁▁▁▄▁▁▁       00:31 ┊ flow 1 switches reno → cubic
    ■2   ▁▁▁▁▁▁▁▁▁▁█▁▁▁▁▁▁▁▁       00:36 ┊ queue bottleneck → codel
     f flow  w wget  p ping  c congestion  q queue  l link  space freeze  ←→ scrub  ? help
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

import msgspec
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import ModalScreen, Screen

from ccplay.errors import CcplayError
from ccplay.files import writing
from ccplay.model.commands import (
    AnyCommand,
    ChangeMark,
    Mark,
    RemoveMark,
    StopCapture,
    TraceFlow,
    UntraceFlow,
)
from ccplay.model.network import Network
from ccplay.model.wording import describe
from ccplay.session.session import Session
from ccplay.state.lab_state import LabState
from ccplay.ui import selection
from ccplay.ui.cells.glyphs import ASCII, UNICODE
from ccplay.ui.cells.sheet import Row, Sheet
from ccplay.ui.marks import Marks
from ccplay.ui.panels import banner, flows, footer, header, log, network, receiver, ribbon
from ccplay.ui.playhead import Playhead
from ccplay.ui.plots import pictures, titles, variable_choice
from ccplay.ui.plots.ghosts import Choice, Ghosts
from ccplay.ui.plots.plot import Plot
from ccplay.ui.plots.theory import Overlay, lack
from ccplay.ui.view import View, tracing_problem
from ccplay.units import format_clock

if TYPE_CHECKING:
    from ccplay.ui.app import CcplayApp

LEAST = (80, 24)
"""The smallest terminal that all parts fit in."""

_NUMBERS_HZ = 4.0
"""Numbers change no oftener, or nobody could read them."""

_STEP = 1 / 60
_LEAP = 1 / 6
"""Of the window's width, what the scrubbing keys move by."""

_SHEETS = ("header", "banner", "network", "flows", "ribbon", "events", "footer", "too-small")

_PLOTS = ("cwnd", "queue", "rtt")
"""The plots from left to right."""

_VALUES = "Values of algorithms in place of RTT (V backwards)"

LIVE_ONLY = ("dialog", "mark", "stop", "capture", "trace")


class MainScreen(Screen[None]):
    """Draws the session at the playhead; asks for commands and never assumes their success."""

    BINDINGS: ClassVar[list[BindingType]] = [
        # Priority: run at once, so that keys typed after one of these reach its dialog.
        Binding("f", "dialog('FlowDialog')", "New flow", id="flow", priority=True),
        Binding("w", "dialog('DownloadDialog')", "Download", id="download", priority=True),
        Binding("p", "dialog('PingDialog')", "Ping", id="ping", priority=True),
        Binding("u", "dialog('UdpDialog')", "Cross traffic by UDP", id="udp", priority=True),
        Binding(
            "c", "dialog('CongestionDialog')", "Congestion control", id="congestion", priority=True
        ),
        Binding("q", "dialog('QueueDialog')", "Queue discipline", id="queue", priority=True),
        Binding("l", "dialog('LinkDialog')", "Link", id="link", priority=True),
        Binding("k", "capture", "Capture packets; stop", id="capture", priority=True),
        Binding("h", "trace", "Trace every ACK; end that", id="trace"),
        Binding("m", "mark", "Mark; change a mark", id="mark", priority=True),
        Binding("enter", "put_mark", "Put the mark here", id="put-mark"),
        Binding("escape", "leave_mark", "Leave the mark where it was", id="leave-mark"),
        Binding("g", "ghost", "Ghost", id="ghost", priority=True, tooltip="Earlier run as a ghost"),
        Binding("x", "stop", "Stop what is selected", id="stop"),
        Binding("space", "freeze", "Freeze, pause, go on", id="freeze"),
        Binding("left", "scrub(-1)", "Back in time", id="back"),
        Binding("right", "scrub(1)", "Forward in time", id="forward"),
        Binding("shift+left", "scrub_far(-1)", "Far back in time", id="far-back"),
        Binding("shift+right", "scrub_far(1)", "Far forward in time", id="far-forward"),
        Binding("home", "seek_start", "To the start", id="start"),
        Binding("end", "seek_end", "To the end, live again", id="end"),
        Binding("plus,equals_sign", "zoom(1)", "Shorter time axis", id="zoom-in"),
        Binding("minus", "zoom(-1)", "Longer time axis", id="zoom-out"),
        Binding("left_square_bracket,less_than_sign", "speed(-1)", "Slower replay", id="slower"),
        Binding("right_square_bracket,greater_than_sign", "speed(1)", "Faster replay", id="faster"),
        Binding("down,tab", "select_flow(1)", "Next in the table", id="next-flow"),
        Binding("up,shift+tab", "select_flow(-1)", "Previous in the table", id="previous-flow"),
        Binding("b", "other_queue", "Other direction of the bottleneck", id="way-back"),
        Binding("v", "variable(1)", "Values of algorithms", id="variable", tooltip=_VALUES),
        Binding("V", "variable(-1)", id="variable-before"),
        Binding("t", "next_look", "Next theme", id="theme"),
        Binding("a", "ascii", "ASCII on and off", id="ascii"),
        Binding("r", "receiver", "Receiver's table or events", id="receiver"),
        Binding("y", "theory", "Theory: W(t) and Reno's line", id="theory"),
        Binding("s", "picture", "Save a picture (SVG)", id="picture"),
        Binding("S", "save_scenario", "Save as scenario", id="scenario", priority=True),
        Binding("question_mark", "help", "Help", id="help"),
    ]

    def __init__(
        self,
        session: Session,
        *,
        start_at: float = 0.0,
        speed: float = 1.0,
        fps: float = 10.0,
        ghost: Path | None = None,
    ) -> None:
        super().__init__()
        self.session = session
        self.ghosts = Ghosts(session.state)
        """What lies under the session, or is being read to."""
        self.overlay = Overlay()
        """The theory that lies over the selected flow's cwnd."""
        self._first_ghost = Choice(ghost) if ghost else None
        self.playhead = Playhead(recorded=session.recorded, t=start_at, speed=speed)
        self._fps = fps
        self._sheets = {name: Sheet(id=name) for name in _SHEETS}
        self._plots = {name: Plot(id=name) for name in _PLOTS}
        self._bands = {name: Horizontal(id=name) for name in ("top", "plots", "bottom")}
        self._selected: str | None = None
        self._observed = 0
        self._variable: str | None = None
        self._bottom = log.rows
        self._drawn_at = time.monotonic()
        self._numbers_at = 0.0
        self._told = 0
        self._ribbon = ribbon.Ribbon()
        self._network: Network | None = None
        self._state = session.state
        self._sent = ""
        self.marks = Marks(self)

    @property
    def ccplay(self) -> CcplayApp:
        """The app, which holds look and glyphs."""
        return cast("CcplayApp", self.app)

    @property
    def view(self) -> View:
        """What the panels are drawn from, now."""
        app = self.ccplay
        return View(
            self.session,
            self.playhead,
            app.look,
            app.glyphs,
            self._selected,
            self._observed,
            self._variable,
            self.ghosts.shown,
            self.ghosts.reading,
            self.overlay.of(self.session.state.flows.get(self._selected or "")),
            self.marks.notice or self._sent,
        )

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield self._sheets["header"]
        yield self._sheets["banner"]
        with self._bands["top"]:
            yield self._sheets["network"]
            yield self._sheets["flows"]
        with self._bands["plots"]:
            yield from self._plots.values()
        with self._bands["bottom"]:
            yield self._sheets["ribbon"]
            yield self._sheets["events"]
        yield self._sheets["footer"]
        yield self._sheets["too-small"]

    def on_mount(self) -> None:
        """Begin to draw."""
        self.playhead.scrub(0, self.playhead.t)
        self.playhead.running = True
        self.set_interval(1 / self._fps, self.draw)
        if self._first_ghost is not None:
            self._lay(self._first_ghost)

    def on_resize(self, event: events.Resize) -> None:
        """Give every part its place."""
        self.lay_out(*event.size)

    def lay_out(self, width: int, height: int) -> None:
        """Give every part its place on a terminal of ``width`` by ``height`` cells."""
        self.set_class(width < LEAST[0] or height < LEAST[1], "-small")
        table = 58 if width >= 112 else 38
        network = self.view.network
        pairs = len(network.senders) if network else 2
        self._bands["top"].styles.height = max(min((height - 4) // 4, max(7, pairs + 2)), 5)
        self._bands["bottom"].styles.height = max(min((height - 6) // 4, 12), 4)
        self._sheets["flows"].styles.width = table
        self._sheets["network"].styles.width = width - table
        third = width // 3
        self._plots["cwnd"].styles.width = third
        self._plots["queue"].styles.width = third
        self._plots["rtt"].styles.width = width - 2 * third
        self._sheets["ribbon"].styles.width = third
        self._sheets["events"].styles.width = width - third

    def on_sheet_emptied(self) -> None:
        """Fill a part that has got another size."""
        self.redraw()

    # --- drawing ----------------------------------------------------------------------------

    def draw(self) -> None:
        """Move the playhead on and draw what changed."""
        now = time.monotonic()
        self.playhead.advance(self.session.state.now, now - self._drawn_at, done=self.session.done)
        self._drawn_at = now
        if not self.is_current:
            return
        if self.session.state is not self._state:
            self._take_over(self.session.state)
        if (network := self.view.network) is not self._network:
            self._network = network
            self.lay_out(*self.size)
        if self.view.unread:
            # There is nothing of that moment to draw, and reading alone is faster.
            self._show("header", lambda width, _: header.rows(self.view, width))
            return
        if self._choose() or now - self._numbers_at >= 1 / _NUMBERS_HZ - 0.5 / self._fps:
            self._numbers_at = now
            self._draw_numbers(self.view)
        self._draw_plots(self.view)
        self._tell()

    def _take_over(self, state: LabState) -> None:
        """Draw from another state: all was read of what there was a glimpse of."""
        self._state = self.ghosts.state = state
        self._ribbon = ribbon.Ribbon()

    def redraw(self) -> None:
        """Draw at once, numbers too: a key was pressed."""
        if self.is_current and self.is_mounted:
            self._choose()
            self._numbers_at = time.monotonic()
            self._draw_numbers(self.view)
            self._draw_plots(self.view)

    def _draw_plots(self, view: View) -> None:
        if self.has_class("-small"):
            return
        for name, draw in pictures.PICTURES.items():
            self._plots[name].draw(draw(view))

    def _draw_numbers(self, view: View) -> None:
        if self.has_class("-small"):
            said_so = _TOO_SMALL.format(*LEAST, *self.size)
            self._show("too-small", lambda *_: [[(said_so, "")]])
            return
        if view.playhead.running:
            self._sent = ""
        said = banner.rows(view, self.size.width)
        self.set_class(bool(said), "-banner")
        self._show("header", lambda width, _: header.rows(view, width))
        self._show("banner", lambda *_: said)
        self._show("network", lambda width, height: network.rows(view, width, height))
        self._show("flows", lambda width, height: flows.rows(view, width, height))
        self._show("ribbon", lambda width, height: self._ribbon.rows(view, width, height))
        self._show("events", lambda width, height: self._bottom(view, width, height))
        self._show("footer", lambda width, _: footer.rows(view, width))
        for name, title in titles.TITLES.items():
            plot = self._plots[name]
            plot.title(*title(view, plot.width - 2))

    def _show(self, name: str, rows: Callable[[int, int], list[Row]]) -> None:
        sheet = self._sheets[name]
        if sheet.width and sheet.height:
            sheet.show(rows(sheet.width, sheet.height))

    def _choose(self) -> bool:
        """Keep the selection on something that is in the table; say whether it moved."""
        before, self._selected = self._selected, selection.kept(self.view)
        return self._selected != before

    def _tell(self) -> None:
        """Raise a toast for what failed since the last time, and for where files are."""
        fresh = self.session.state.log[self._told :]
        self._told += len(fresh)
        if not self.session.recorded:
            for entry in fresh:
                if entry.kind == "error":
                    self.app.notify(entry.text, severity="error", timeout=8, markup=False)
                elif entry.kind == "file":
                    self.app.notify(entry.text, timeout=8, markup=False)

    # --- keys -------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave out what can have no effect."""
        del parameters
        if action in LIVE_ONLY:
            return self.session.live
        if action in ("put_mark", "leave_mark"):
            return self.marks.carried is not None
        if action == "speed":
            return self.session.recorded
        return True

    def action_dialog(self, name: str) -> None:
        """Ask what to do, then ask the lab for it."""
        if self.session.state.phase != "ready":
            self.app.notify("The network is still being built.", severity="warning")
            return
        from ccplay.ui import dialogs  # noqa: PLC0415 - first paint shall not wait for it

        dialog: Callable[..., ModalScreen[AnyCommand | None]] = getattr(dialogs, name)
        self.app.push_screen(dialog(self.session.state, self._selected), self._asked)

    def _asked(self, command: AnyCommand | None) -> None:
        if command is not None:
            self.ask(command)
        self.redraw()

    def ask(self, command: AnyCommand) -> None:
        """Hand a command to the lab: a new mark at the moment shown, all else of now.

        Where the moment shown is not now, say when it was sent.
        """
        head, self._sent = self.playhead, ""
        if not head.running and isinstance(command, Mark) and command.at is None:
            command = msgspec.structs.replace(command, at=head.t)
        elif not head.running and not isinstance(command, Mark | ChangeMark | RemoveMark):
            at = format_clock(self.session.state.now)
            self._sent = f"sent to the live lab at {at} (end goes there): {describe(command)}"
        self.session.send(command)
        self.redraw()

    def action_mark(self) -> None:
        """Mark the moment shown, or change the mark that the cursor stands on."""
        if self.session.state.phase != "ready":
            self.app.notify("The network is still being built.", severity="warning")
            return
        columns = max(self._plots["cwnd"].columns, 1)
        self.marks.press(self.playhead.width * max(_STEP, 1 / columns))

    def action_put_mark(self) -> None:
        """Let the mark that is carried stand at the cursor."""
        self.marks.put_down()

    def action_leave_mark(self) -> None:
        """Leave the mark that is carried where it was."""
        self.marks.leave()

    def action_ghost(self) -> None:
        """Ask which earlier run shall lie under this one."""
        if self.session.state.ready_at is None:
            self.app.notify("The network is still being built.", severity="warning")
            return
        from ccplay.ui.dialogs.ghost import GhostDialog  # noqa: PLC0415 - as above

        self.app.push_screen(GhostDialog(self.view), self._lay)

    def _lay(self, choice: Choice | None) -> None:
        if choice is not None:
            self.run_worker(self._summon(choice), group="ghost", exclusive=True)

    async def _summon(self, choice: Choice) -> None:
        try:
            await self.ghosts.choose(choice)
        except CcplayError as error:
            self.app.notify(str(error), severity="error", timeout=8, markup=False)
        if choice.waits_since is not None and self.session.live:
            self.action_seek_end()
        self.redraw()

    def action_stop(self) -> None:
        """Stop what is selected."""
        chosen = selection.selection(self.view)
        if chosen is None or chosen.ended is not None:
            said = "Nothing that runs is selected: choose with ↑↓."
            self.app.notify(self.ccplay.glyphs.translate(said), severity="warning")
        else:
            self.ask(selection.stop(chosen))

    def action_capture(self) -> None:
        """Ask which link's packets to capture; where some are being captured, end that."""
        if running := list(self.session.state.captures):
            self.ask(StopCapture(capture=running[-1]))
        else:
            self.action_dialog("CaptureDialog")

    def action_trace(self) -> None:
        """Have every ACK of the selected flow told of, or no more."""
        state = self.session.state
        flow = state.flows.get(self._selected or "")
        if flow is None or not flow.running:
            self.app.notify("No running flow is selected.", severity="warning")
        elif flow.parent in state.traced:
            self.ask(UntraceFlow(flow=flow.parent))
        elif problem := tracing_problem(state):
            said = f"flow {flow.parent} is sampled, not traced: {problem}"
            self.app.notify(said, severity="warning", timeout=8, markup=False)
        else:
            self.ask(TraceFlow(flow=flow.parent))

    def action_theory(self) -> None:
        """Lay CUBIC's W(t) and Reno's line over the selected flow's cwnd, or take them away."""
        self.overlay.shown = not self.overlay.shown
        if self.overlay.shown and (said := lack(self.view)):
            self.app.notify(said, severity="warning", markup=False)
        self.redraw()

    def action_freeze(self) -> None:
        """Stop the picture, or go on."""
        self.playhead.toggle(self.session.state.now)
        self.redraw()

    def action_scrub(self, steps: int) -> None:
        """Move by a little."""
        self._move(steps * self.playhead.width * _STEP)

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

    def action_select_flow(self, steps: int) -> None:
        """Select the next in the table, or the one before."""
        self._selected = selection.beside(self.view, steps)
        self.redraw()

    def action_other_queue(self) -> None:
        """Show the queue of the bottleneck's other direction."""
        self._observed += 1
        self.redraw()

    def action_variable(self, steps: int) -> None:
        """Let the third plot show what else the selected flow's algorithm tells, or RTT again."""
        view = self.view
        choices, now = variable_choice.choices(view), variable_choice.shown(view)
        if choices == [now]:
            self.app.notify(variable_choice.silence(view), timeout=8, markup=False)
            return
        at = choices.index(now) if now in choices else 0
        self._variable = choices[(at + steps) % len(choices)]
        self.redraw()

    def action_next_look(self) -> None:
        """Switch to the next theme."""
        names = list(self.ccplay.looks)
        at = names.index(self.ccplay.look.name)
        self.ccplay.use_look(names[(at + 1) % len(names)])

    def action_ascii(self) -> None:
        """Draw with plain ASCII, or with Unicode again."""
        self.ccplay.use_glyphs(UNICODE if self.ccplay.glyphs is ASCII else ASCII)

    def action_picture(self) -> None:
        """Save what is on the screen as an SVG picture in the current folder."""
        t = self.playhead.t
        name = f"ccplay-{int(t // 60):02d}m{t % 60:04.1f}s"
        drawn = self.app.export_screenshot()
        try:
            path = writing.write_numbered(Path(), name, ".svg", drawn)
        except OSError as error:
            said = f"can't save {name}.svg: {error.strerror}"
            self.app.notify(said, severity="error", markup=False)
        else:
            self.app.notify(f"saved {path}", markup=False)

    def action_receiver(self) -> None:
        """Show the receiver's table in place of the events, or those again."""
        self._bottom = log.rows if self._bottom is receiver.rows else receiver.rows
        self.redraw()

    def action_save_scenario(self) -> None:
        """Ask for a file, and write what was done in the session into it as a scenario."""
        if self.session.state.ready_at is None:
            self.app.notify("The network is still being built.", severity="warning")
            return
        from ccplay.ui.dialogs.saving import SaveDialog  # noqa: PLC0415 - as above

        dialog = SaveDialog(self.session.state, self.playhead, self.session.title)
        self.app.push_screen(dialog, self._saved)

    def _saved(self, path: Path | None) -> None:
        if path is not None:
            from ccplay.scenario.rules.own_algorithms import rerun  # noqa: PLC0415 - paint first

            command = rerun(path, self.session.state, self.ccplay.lab_words)
            self.app.notify(
                f"saved {path}; to do the same again: {command}", timeout=10, markup=False
            )

    def action_help(self) -> None:
        """Show all keys and what the screen means."""
        from ccplay.ui.help import HelpScreen  # noqa: PLC0415 - first paint shall not wait for it

        self.app.push_screen(HelpScreen())


_TOO_SMALL = "ccplay needs {}x{} cells; this terminal has {}x{}."
