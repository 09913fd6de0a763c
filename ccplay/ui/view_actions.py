"""Actions on what is shown: the moment, plots, flows, network; and saving it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace
from textual import events, work
from textual.screen import Screen

from ccplay.errors import CcplayError, UsageError
from ccplay.plots.table import RTT
from ccplay.session import archive
from ccplay.session.session import Session
from ccplay.share.frames import Shown
from ccplay.traffic.base import LogEntry
from ccplay.ui import lineup, plot_pane
from ccplay.ui.audience import Audience
from ccplay.ui.cells import ASCII, UNICODE
from ccplay.ui.plot_pane import Overlay, lack
from ccplay.ui.plot_row import Band
from ccplay.ui.themes import Appearance
from ccplay.ui.view import Choice, Ghosts, Known, View
from ccplay.units import format_clock

if TYPE_CHECKING:
    from ccplay.ui.pictures import ScreenFrame

# --- the base class of the main screen's groups of actions ----------------------------------------


class Actions(Screen[None]):
    """A screen's session and display choices, which its actions change."""

    session: Session
    shown: Shown
    """What the user has chosen to see, or what the presenter shows."""
    appearance: Appearance
    """The theme, the characters, the strokes and the keys in use."""
    keep_choices: Callable[[], None]
    """Function that draws all as the user has chosen, and reports that choices are kept."""
    notices: deque[LogEntry]
    """Texts of toasts, oldest first."""
    ghosts: Ghosts
    """Ghost drawn under the session, or being read."""
    plots: Band
    overlay: Overlay
    """Theory drawn over the selected flow's cwnd."""
    sent: str = ""
    """Notice that a command was sent to the live lab while an earlier moment is shown."""
    audience: Audience
    """Spectators of this screen, or the presenter that it follows."""
    lab_words: Sequence[str] = ()
    """Options of the command line that start the same kind of lab again."""
    _known: Known
    """Cache of the values that views derive from the state."""

    @property
    def view(self) -> View:
        """The view that panels are drawn from at present."""
        return View(
            self.session,
            self.shown,
            self.appearance.look,
            self.appearance.glyphs,
            self.ghosts.shown,
            self.ghosts.reading,
            self.overlay.of(self.session.state.flows.get(self.shown.selected or "")),
            self.notice,
            stroke=self.appearance.stroke,
            keys=self.appearance.keymap,
            colourless=self.appearance.no_color,
            audience=self.audience.words,
            watching=self.audience.watches,
            catching_up=self.audience.reading,
            region=self.predicted,
            awaits=self.awaits,
            guided=self.guided,
            known=self._known,
        )

    @property
    def notice(self) -> str:
        """Notice about the current action; usually empty."""
        return self.sent

    @property
    def predicted(self) -> tuple[str, float, float] | None:
        """The region that a lesson asks to predict: its plot, and both ends on the value axis."""
        return None

    @property
    def awaits(self) -> str:
        """Reason why traffic will start without a key; empty if none will."""
        return ""

    @property
    def guided(self) -> bool:
        """Whether a lesson takes the Enter key."""
        return False

    def lay_out(self, width: int, height: int) -> None:
        """Place every part on a terminal of ``width`` by ``height`` cells."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw at once."""
        raise NotImplementedError

    def is_ready(self, *, ready: bool) -> bool:
        """Return ``ready``; if it is false, show that the network is not built yet."""
        if not ready:
            self.app.notify("The network is still being built.", severity="warning")
        return ready


# --- actions that move the playhead and change the window -----------------------------------------

STEP = 1 / 60
_LEAP = 1 / 6
"""Large step of scrubbing, as a share of the window."""


class PlaybackActions(Actions):
    """The actions on the playhead."""

    def action_freeze(self) -> None:
        """Freeze the screen, or resume."""
        self.shown.playhead.toggle(self.session.state.now)
        self.redraw()

    def action_scrub(self, steps: int) -> None:
        """Move the playhead by small steps, back if ``steps`` is negative."""
        self._move(steps * self.shown.playhead.width * STEP)

    def action_scrub_far(self, steps: int) -> None:
        """Move the playhead by large steps, back if ``steps`` is negative."""
        self._move(steps * self.shown.playhead.width * _LEAP)

    def _move(self, seconds: float) -> None:
        self.shown.playhead.scrub(seconds, self.session.state.now)
        self.redraw()

    def action_seek_start(self) -> None:
        """Go to the start of the session."""
        self.shown.playhead.jump(0.0, self.session.state.now)
        self.redraw()

    def action_seek_end(self) -> None:
        """Go to the end of the session; a live one continues from there."""
        self.shown.playhead.jump(self.session.state.now, self.session.state.now)
        self.shown.playhead.running = not self.session.done
        self.redraw()

    def action_zoom(self, steps: int) -> None:
        """Show a shorter or longer window."""
        self.shown.playhead.zoom(steps, self.session.state.now)
        self.redraw()

    def action_speed(self, steps: int) -> None:
        """Play slower or faster."""
        self.shown.playhead.change_speed(steps)
        self.redraw()


# --- actions that filter, sort, group and stack the flows -----------------------------------------

_SELECTING = ("up", "down", "tab", "shift+tab")
"""Keys that move the selection even while a filter is typed."""


class ListingActions(Actions):
    """The actions that filter, sort, group and stack flows, or draw one alone."""

    def action_alone(self) -> None:
        """Draw the selected flow alone, or all again."""
        self._change_listing(alone=not self.shown.listing.alone)

    def action_groups(self) -> None:
        """Group flows by algorithm, or list each flow again."""
        self._change_listing(grouped=not self.shown.listing.grouped)

    def action_stack(self) -> None:
        """Stack rates and classes of a queue, or draw separate lines again."""
        self._change_listing(stacked=not self.shown.listing.stacked)
        if self.shown.listing.stacked and not self.plots.adds_up(self.view):
            text = "No plot on the screen can be stacked; choose goodput with ctrl+p."
            self.app.notify(text, severity="warning")

    def action_sort(self) -> None:
        """Sort the table by its next column."""
        self.shown.listing = self.shown.listing.next_column()
        self.redraw()

    def action_reverse(self) -> None:
        """Reverse the order of the table."""
        self._change_listing(reverse=not self.shown.listing.reverse)

    def action_filter(self) -> None:
        """Open the filter: keys extend it until enter or escape."""
        self._change_listing(typing=True)

    def action_show_all(self) -> None:
        """Clear the filter."""
        self._change_listing(text="", typing=False)

    def _change_listing(self, **changed: bool | str) -> None:
        """Draw the flows with a listing that is changed so."""
        self.shown.listing = replace(self.shown.listing, **changed)
        self.redraw()

    def on_key(self, event: events.Key) -> None:
        """Add a typed key to the filter."""
        if self.shown.listing.typing and event.key not in _SELECTING:
            event.stop()
            self.shown.listing = self.shown.listing.typed(event.key, event.character)
            self.redraw()


# --- actions that save a picture of the screen, or the session as a scenario ----------------------

_MOST_PICTURES = 3
"""Pictures drawn at a time: a key that is held asks for thirty a second."""


class SavingActions(Actions):
    """The actions that write files."""

    def action_picture(self) -> None:
        """Save the screen as an SVG and a PNG picture in the current folder."""
        from ccplay.ui.pictures import frame_of, stem  # noqa: PLC0415 - after first paint

        drawn = sum(each.group == "pictures" and not each.is_finished for each in self.app.workers)
        if drawn >= _MOST_PICTURES:
            self.app.notify(f"{drawn} pictures are still being saved.", severity="warning")
            return
        self._write_picture(frame_of(self.app), stem(self.shown.playhead.t))

    @work(group="pictures")
    async def _write_picture(self, frame: ScreenFrame, name: str) -> None:
        from ccplay.ui.pictures import DRAWN, write_new  # noqa: PLC0415 - after first paint

        for suffix in DRAWN:
            try:
                # In a thread: a PNG takes a second to draw.
                path = await asyncio.to_thread(write_new, frame, name, suffix, Path())
            except OSError as error:
                text = f"can't save {name}{suffix}: {error.strerror}"
                self.app.notify(text, severity="error", markup=False)
            except UsageError as error:
                self.app.notify(str(error), severity="warning", markup=False)
            else:
                self.app.notify(f"saved {path}", markup=False)

    def action_save_scenario(self) -> None:
        """Ask for a file, and save the session into it as a scenario."""
        if not self.is_ready(ready=self.session.state.ready_at is not None):
            return
        from ccplay.ui.dialogs_session import SaveDialog  # noqa: PLC0415 - after first paint

        dialog = SaveDialog(self.session.state, self.shown.playhead, self.session.title)
        self.app.push_screen(dialog, self._saved)

    def _saved(self, path: Path | None) -> None:
        if path is not None:
            from ccplay.scenario.rules import rerun  # noqa: PLC0415 - paint first

            command = rerun(path, self.session.state, self.lab_words)
            self.app.notify(f"saved {path}; to repeat it: {command}", timeout=10, markup=False)


# --- actions that choose the parts of the session shown, and their appearance ---------------------


class LookActions(Actions):
    """The actions on selection, plots, ghosts and appearance."""

    def action_select_flow(self, steps: int) -> None:
        """Select the next row of the table, or the previous one."""
        self.shown.selected = lineup.beside(self.view, steps)
        self.redraw()

    def action_other_queue(self) -> None:
        """Show the next observed queue."""
        self.shown.observed += 1
        self.redraw()

    def action_variable(self, steps: int) -> None:
        """Draw another own value of an algorithm or queue in place of RTT, or RTT again."""
        view = self.view
        if hint := self._hides_rtt():
            self.app.notify(hint, severity="warning", timeout=8, markup=False)
            return
        choices, now = plot_pane.choices(view), plot_pane.shown(view)
        if choices == [now]:
            self.app.notify(plot_pane.silence(view), timeout=8, markup=False)
            return
        at = choices.index(now) if now in choices else 0
        self.shown.variable = choices[(at + steps) % len(choices)]
        self.redraw()

    def _hides_rtt(self) -> str:
        """Return which key shows the plot of RTT, whose place variables take; empty if it is."""
        shown = self.appearance.keymap.shown
        if self.shown.map:
            return f"{shown('map')} shows the plots, where {shown('variable')} draws variables."
        if RTT.name in self.plots.displayed:
            return ""
        what = f"{shown('variable')} draws variables in place of RTT, which is not on the screen:"
        if large := self.shown.large:
            place = self.plots.chosen.index(large) if large in self.plots.chosen else 0
            return f"{what} {shown(f'plot-{place + 1}')} shows all plots."
        return f"{what} choose plot: RTT with ^p."

    def action_next_look(self) -> None:
        """Switch to the next theme."""
        names = list(self.appearance.looks)
        at = names.index(self.appearance.look.name)
        self.use_look(names[(at + 1) % len(names)])

    def use_look(self, name: str) -> None:
        """Switch to another theme."""
        self.appearance.look = self.appearance.looks[name]
        self.keep_choices()

    def action_ascii(self) -> None:
        """Draw with plain ASCII, or with Unicode again."""
        self.appearance.glyphs = UNICODE if self.appearance.glyphs is ASCII else ASCII
        self.keep_choices()

    def action_stroke(self) -> None:
        """Draw the lines of plots bold, or thin again."""
        bold = self.appearance.stroke == "bold"
        self.appearance.own_stroke = "normal" if bold else "bold"
        self.keep_choices()

    def action_enlarge(self, place: int) -> None:
        """Enlarge the plot in this position to the whole band, or show all plots again."""
        if self.shown.map:
            self.action_map()
            return
        self.plots.enlarge(place)
        self.redraw()

    def action_map(self) -> None:
        """Draw the network in place of the plots, or show the plots again."""
        self.show_map(shown=not self.shown.map)
        self.redraw()

    def show_map(self, *, shown: bool) -> None:
        """Draw the network in place of the plots if ``shown``, else the plots."""
        if shown != self.shown.map:
            self.shown.map = shown
            self.set_class(shown, "-map")
            self.lay_out(*self.size)

    def action_theory(self) -> None:
        """Draw CUBIC's W(t) and Reno's line over the selected flow's cwnd, or remove them."""
        self.overlay.shown = not self.overlay.shown
        if self.overlay.shown and (reason := lack(self.view)):
            self.app.notify(reason, severity="warning", markup=False)
        self.redraw()

    def action_logarithm(self) -> None:
        """Make the value axes logarithmic, or linear again."""
        self.shown.logarithmic = not self.shown.logarithmic
        self.redraw()

    def action_hold(self) -> None:
        """Fix the value axes for comparison, or let them follow the values again."""
        self.shown.held = not self.shown.held
        self.redraw()

    def action_receiver(self) -> None:
        """Show the receiver's table in place of the events, or the events again."""
        self.shown.receiver = not self.shown.receiver
        self.redraw()

    def action_ghost(self) -> None:
        """Ask which earlier run to draw under this one."""
        if not self.is_ready(ready=self.session.state.ready_at is not None):
            return
        from ccplay.ui.dialogs_session import GhostDialog  # noqa: PLC0415 - after first paint

        self.app.push_screen(GhostDialog(self.view), self.show_ghost)

    def ghost_offers(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        """Yield the palette's entries for ghosts: text, meaning, and function."""
        there = archive.earlier(self.session.archived) if self.audience.keeps_files else ()
        for name, path in there:
            about = f"{archive.label_of(path)}, {archive.started(path):%Y-%m-%d %H:%M}"
            yield f"ghost: {name}", about, partial(self.show_ghost, Choice(path))

    def show_ghost(self, choice: Choice | None) -> None:
        """Draw an earlier run under this one; None changes nothing."""
        if choice is not None:
            self._summon(choice)

    @work(group="ghost", exclusive=True)
    async def _summon(self, choice: Choice) -> None:
        try:
            await self.ghosts.choose(choice)
        except CcplayError as error:
            self.app.notify(str(error), severity="error", timeout=8, markup=False)
        if choice.waits_since is not None and self.session.live:
            self.shown.playhead.jump(self.session.state.now, self.session.state.now)
            self.shown.playhead.running = not self.session.done
        self.redraw()

    def action_events(self) -> None:
        """Show the event log in full, with the texts of toasts."""
        from ccplay.ui.help import EventsScreen  # noqa: PLC0415 - after first paint

        self.app.push_screen(EventsScreen(self._all_lines))

    def _all_lines(self) -> list[LogEntry]:
        """Return the log up to the moment shown, with toasts that it lacks, in order of time."""
        log = self.view.entries(len(self.session.state.log))
        texts = {each.text for each in self.session.state.log}
        notices = [each for each in self.notices if each.text not in texts]
        return sorted([*log, *notices], key=lambda each: each.t)

    def action_explain(self) -> None:
        """Explain what the selected flow is doing at the moment shown, and why."""
        from ccplay.analysis.explain import explain_flow  # noqa: PLC0415 - after first paint
        from ccplay.ui.help import ExplainScreen  # noqa: PLC0415 - after first paint

        view = self.view
        flow = view.flow
        sentences = explain_flow(view.state, flow.name, view.t) if flow is not None else []
        if flow is None or not sentences:
            text = "No flow that runs at this moment is selected: choose with ↑↓."
            self.app.notify(self.appearance.glyphs.translate(text), severity="warning")
            return
        title = f"Flow {flow.name}, {view.state.cc_at(flow, view.t)}, at {format_clock(view.t)}"
        self.app.push_screen(ExplainScreen(title, sentences))

    def action_help(self) -> None:
        """Show all keys, and how to read the screen."""
        from ccplay.ui.help import HelpScreen  # noqa: PLC0415 - after first paint

        self.app.push_screen(HelpScreen())
