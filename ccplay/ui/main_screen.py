"""The main screen: the network, a table of traffic, plots on one time axis, and events.

::

    ccplay  playground   dumbbell · 10 Mbit/s · 20 ms · pfifo 100 pkt    ● live 00:42  health ok
     s1 ● ─┐                              ┌─ ● d1     flow  cc     cwnd    rtt  goodput   retr
           ├─ r1 ══▶ ▕██████    ▏ ══▶ r2 ─┤         ▸● 1    cubic    87  98 ms  5.1 Mbit/s  12
     s2 ■ ─┘         61/100 pkt           └─ ■ d2    ■ 2    reno     41  97 ms  4.4 Mbit/s   9
    cwnd segments    ● 87 ■ 41    queue packets    61    RTT ms          ● 98 ■ 97
     100┤                          100┤┄┄┄┄┄┄┄┄┄┄┄┄┄┄     100┤
        │ one colour and glyph         │ limit as a line      │ srtt, ping, base RTT
       0└──┴00:10────┴00:20──        0└──┴00:10────┴00:     0└──┴00:10────┴00:20──
    ▁open ▂dis ▄cwr ▆rec █loss     events
    ●1   ▁▁▁▁▁▁▁▆▁▁▁▁▁▁▁▄▁▁▁       00:31 ┊ flow 1 switches reno → cubic
    ■2   ▁▁▁▁▁▁▁▁▁▁█▁▁▁▁▁▁▁▁       00:36 ┊ queue bottleneck → codel
     enter start  x stop  c congestion  q queue  l link  space freeze  i explain  ? help
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.widgets._toast import ToastRack

from ccplay.scenario.values import Scenario
from ccplay.session.session import Session
from ccplay.share.frames import Playhead, Shown
from ccplay.state.lab_state import LabState
from ccplay.ui import keys, lineup, network_map, network_panel, ribbon, status_lines, traffic_table
from ccplay.ui.audience import WITH_FILES, Audience, Presenting
from ccplay.ui.cells import Row, Sheet
from ccplay.ui.compositor import Painter
from ccplay.ui.help import OrderlyApp
from ccplay.ui.lab_actions import MarkActions
from ccplay.ui.lesson_actions import AudienceActions
from ccplay.ui.plot_pane import Overlay
from ccplay.ui.plot_row import Band
from ccplay.ui.themes import Appearance
from ccplay.ui.view import Choice, Ghosts, Known, View
from ccplay.ui.view_actions import ListingActions, PlaybackActions, SavingActions

LEAST = (80, 24)
"""Smallest terminal that has room for all parts, in columns and lines."""

_WIDE = 112
"""Smallest width in columns at which the table has units and toasts cover only the ribbon."""

_TALL = 34
"""Smallest height in lines at which the network's drawing leaves room for table and events."""

_LOW = 20
"""Height in lines below which plots take precedence over ribbon and events."""

_NUMBERS_HZ = 4.0
"""Highest rate at which numbers change on the screen, in Hz, so that they can be read."""

_SLOW_S = 0.4
"""Smallest time in seconds per dot of a plot at which plots are drawn only with the numbers."""

_SHEETS = ("header", "banner", "network", "flows", "map", "ribbon", "events", "footer", "too-small")

_MOST_NOTICES = 500
"""Largest number of toasts whose text is kept; older texts are discarded."""

_SPARE_LINES = 2
"""Spare lines that the table may have before all parts are laid out again."""

LIVE_ONLY = ("dialog", "start_traffic", "fair_queue", "mark", "stop", "capture", "trace")


class MainScreen(
    PlaybackActions, MarkActions, ListingActions, SavingActions, AudienceActions, Painter
):
    """Draws the session at the playhead; sends commands and never assumes their success."""

    BINDINGS: ClassVar[list[BindingType]] = keys.MAIN

    def __init__(
        self,
        session: Session,
        shown: Shown,
        appearance: Appearance,
        *,
        fps: float = 10.0,
        ghost: Path | None = None,
        lab_words: Sequence[str] = (),
        kept: Callable[[], None] = lambda: None,
        audience: Audience | None = None,
        start: Callable[[Scenario | None], Awaitable[None]] | None = None,
    ) -> None:
        """Show ``session`` as ``shown``, drawn as ``appearance`` says.

        ``kept`` is called when the user has chosen how to draw, or which plots; ``start`` leaves
        for another network, and is None if this screen can't.
        """
        super().__init__()
        self.audience = audience or Presenting(session, session.title)
        self.session = session
        self.lab_words = lab_words
        self.ghosts = Ghosts(session.state)
        self.overlay = Overlay()
        self._first_ghost = Choice(ghost) if ghost else None
        self.clock: Callable[[], float] = time.monotonic
        """Clock that moves the playhead, in seconds."""
        self.shown = shown
        self.appearance = appearance
        self.keep_choices = kept
        self.start = start
        self.notices = deque(maxlen=_MOST_NOTICES)
        self._fps = fps
        self._sheets = {name: Sheet(id=name) for name in _SHEETS}
        self._bands = {name: Horizontal(id=name) for name in ("top", "bottom")}
        self.plots = Band(shown, id="plots", kept=kept)
        self._known = Known()
        self._drawn_at = 0.0
        self._numbers_at = 0.0
        self._notified = 0
        self._failing = ""
        self._ribbon = ribbon.Ribbon()
        self._drawing = network_map.Drawing()
        self._lines = self._log_lines = 0
        self._laid_out: tuple[object, ...] = ()
        self._state = session.state

    def compose(self) -> ComposeResult:
        """Compose the parts of the screen."""
        yield self._sheets["header"]
        yield self._sheets["banner"]
        with self._bands["top"]:
            yield self._sheets["network"]
            yield self._sheets["flows"]
        yield self.plots
        yield self._sheets["map"]
        with self._bands["bottom"]:
            yield self._sheets["ribbon"]
            yield self._sheets["events"]
        yield self._sheets["footer"]
        yield self._sheets["too-small"]

    def on_mount(self) -> None:
        """Start drawing; set the sizes first, so that Textual arranges the parts only once."""
        self.lay_out(*self.app.size)
        self.shown.playhead.scrub(0, self.shown.playhead.t)
        self.shown.playhead.running = True
        self._drawn_at = self.clock()
        self.set_interval(1 / self._fps, self._tick)
        if self._first_ghost is not None:
            self.show_ghost(self._first_ghost)

    def on_resize(self, event: events.Resize) -> None:
        """Place every part."""
        self.lay_out(*event.size)

    def lay_out(self, width: int, height: int) -> None:
        """Place every part on a terminal of ``width`` by ``height`` cells."""
        self.set_class(width < LEAST[0] or height < LEAST[1], "-small")
        width, height = self.beside_lesson(width, height)
        table = 38 if width < _WIDE else min(58 + max(width - 140, 0) // 2, 72)
        # The table takes precedence over the plots, which still have most of the screen.
        around = min((height - 4) // 4, network_panel.height(self.view))
        listing = min((height - 4) * 2 // 5, self._lines)
        # A drawing of the network needs all rows of a small terminal.
        cramped = (self.shown.map and height < _TALL) or height < _LOW
        self._bands["top"].styles.height = 5 if cramped else max(around, listing, 5)
        self._bands["bottom"].display = not cramped
        # An error is not cut, unless it is longer than a third of the screen.
        error = min(self._log_lines, height // 3)
        self._bands["bottom"].styles.height = max(min((height - 6) // 4, 12), 4, error)
        self._sheets["flows"].styles.width = table
        self._sheets["network"].styles.width = width - table
        self.plots.lay_out(width)
        # The ribbon shares the time axis of the first plot.
        below = self.plots.first_width or width // 3
        for toasts in self.query(ToastRack):
            toasts.styles.max_height = self._bands["bottom"].styles.height
            toasts.styles.max_width = below if width >= _WIDE else width
        self._sheets["ribbon"].styles.width = below
        self._sheets["events"].styles.width = width - below

    def on_sheet_emptied(self) -> None:
        """Draw all parts with new sizes, once for all sheets that were emptied together."""
        if self.emptied:
            self.emptied = False
            self.redraw()

    # --- drawing ----------------------------------------------------------------------------

    async def _tick(self) -> None:
        await self.session.read_on()
        self.draw()

    def draw(self) -> None:
        """Advance the playhead and draw the changes."""
        now = self.clock()
        self.shown.playhead.advance(
            self.session.state.now, now - self._drawn_at, done=self.session.done
        )
        self._drawn_at = now
        self.follow(now)
        self.tick_lesson()
        if not self.is_current:
            return
        if self.session.state is not self._state:
            self._take_over(self.session.state)
        # New events are shown at once, changed numbers at their own rate.
        news = len(self.session.state.log) > self._notified
        due = news or now - self._numbers_at >= 1 / _NUMBERS_HZ - 0.5 / self._fps
        self._keep_up(tables=due)
        if self.view.unread:
            # This moment has not been read yet, and reading is faster without drawing.
            self._show("header", lambda width, _: status_lines.header(self.view, width))
            self.paint()
            return
        numbers = self._choose() or due
        if numbers:
            self._numbers_at = now
            self._draw_numbers(self.view)
        if numbers or self._dot_s() < _SLOW_S:
            self._draw_plots(self.view)
        self.paint()
        self.plots.build(self.view)
        self._notify_new()

    def _keep_up(self, *, tables: bool) -> None:
        """Lay out the screen again if needed; count the table's lines only if ``tables``."""
        before = self._lines
        if tables and (width := self._sheets["events"].width):
            self._log_lines = status_lines.log_height(self.view, width)
        shown = (self.view.network, self.view.link, self.plots.displayed, self._log_lines)
        lines = traffic_table.height(self.view) if tables else before
        if shown == self._laid_out and before - _SPARE_LINES <= lines <= before:
            return
        self._laid_out, self._lines = shown, lines
        self.lay_out(*self.size)

    def seek(self, playhead: Playhead) -> None:
        """Switch to another playhead, and draw everything again."""
        self.shown.playhead, self.shown.selected, self._lines = playhead, None, 0
        self._keep_up(tables=True)
        for sheet in self.query(Sheet):
            sheet.blank(sheet.width, sheet.height)
        self.redraw()

    def _dot_s(self) -> float:
        """Return the seconds of wall time that fill one dot of the plots."""
        head = self.shown.playhead
        passes = head.speed if head.recorded else 1.0
        return head.width / self.plots.columns / 2 / passes

    def _take_over(self, state: LabState) -> None:
        """Draw from another state, once the whole recording replaces a preview of it."""
        self._state = self.ghosts.state = state
        self._ribbon = ribbon.Ribbon()

    def redraw(self) -> None:
        """Draw at once after a key, including the numbers, unless more keys wait behind it."""
        more = cast("OrderlyApp[int]", self.app).keys_wait > 1
        if self.is_current and self.is_mounted and not more:
            self._keep_up(tables=True)
            self._choose()
            self._numbers_at = self.clock()
            self._draw_numbers(self.view)
            self._draw_plots(self.view)
            self.paint()

    def _draw_plots(self, view: View) -> None:
        if not self.has_class("-small") and not self.shown.map:
            self.plots.draw(view)

    def _draw_numbers(self, view: View) -> None:
        lines = [] if self.has_class("-small") else status_lines.banner(view, *self.size)
        self._sheets["banner"].display = bool(lines)
        self._sheets["banner"].styles.height = len(lines)
        if self.has_class("-small"):
            text = _TOO_SMALL.format(*LEAST, *self.size)
            self._show("too-small", lambda *_: [[(text, "")]])
            return
        if view.shown.playhead.running:
            self.sent = ""
        bottom = status_lines.receiver_rows if self.shown.receiver else status_lines.log
        self._show("header", lambda width, _: status_lines.header(view, width))
        self._show("banner", lambda *_: lines)
        self._show("network", lambda width, height: network_panel.rows(view, width, height))
        self._show("flows", lambda width, height: traffic_table.rows(view, width, height))
        if self.shown.map:
            self._show("map", lambda width, height: self._drawing.rows(view, width, height))
        self._show("ribbon", lambda width, height: self._ribbon.rows(view, width, height))
        self._show("events", lambda width, height: bottom(view, width, height))
        self._show("footer", lambda width, _: status_lines.footer(view, width))
        if not self.shown.map:
            self.plots.draw_titles(view)

    def _show(self, name: str, rows: Callable[[int, int], list[Row]]) -> None:
        sheet = self._sheets[name]
        if sheet.width and sheet.height:
            sheet.show(rows(sheet.width, sheet.height))

    def _choose(self) -> bool:
        """Keep the selection within the table; return whether it moved."""
        before, self.shown.selected = self.shown.selected, lineup.kept(self.view)
        return self.shown.selected != before

    def _notify_new(self) -> None:
        """Show a toast for each new failure and each new file; news of the cure end a failure's.

        A message begins with its subject: ``mine keeps the old version``, ``mine was saved``.
        """
        fresh = self.session.state.log[self._notified :]
        self._notified += len(fresh)
        if not self.session.recorded and not self.audience.watches:
            for entry in fresh:
                subject = entry.text.partition(" ")[0]
                if entry.kind == "info" and subject == self._failing:
                    self._failing = ""
                    self.app.call_later(self.app.clear_notifications)
                elif entry.kind == "error":
                    self._failing = subject
                    self.app.notify(entry.text, severity="error", timeout=8, markup=False)
                elif entry.kind == "file":
                    self.app.notify(entry.text, timeout=8, markup=False)

    # --- keys -------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide keys that have no effect now."""
        if self.shown.listing.typing:
            # Any other key is a letter of the filter.
            return action == "select_flow"
        if action in LIVE_ONLY:
            return self.session.live
        if action in ("follow", "point", "share", "browsers"):
            return self.offers(action)
        if action.startswith("lesson_"):
            return self.offers_lesson(action)
        if action in WITH_FILES and not self.audience.keeps_files:
            return False
        if action == "new_network":
            return self.start is not None
        if action in ("put_mark", "leave_mark"):
            return self.carried is not None
        if action == "show_all":
            return bool(self.shown.listing.text)
        if action == "enlarge":
            return bool(self.asked) or (
                isinstance(place := parameters[0], int) and self.plots.has(place)
            )
        if action == "speed":
            return self.session.recorded
        return True


_TOO_SMALL = "ccplay needs {}x{} cells; this terminal has {}x{}."
