"""Actions that send commands to the lab, and actions on marks."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from textual.screen import ModalScreen

from ccplay.model.commands import (
    AnyCommand,
    ChangeMark,
    Mark,
    RemoveMark,
    SetPath,
    StopCapture,
    TraceFlow,
    UntraceFlow,
)
from ccplay.model.wording import describe
from ccplay.ui import selection
from ccplay.ui.actions import paths
from ccplay.ui.actions.base import Actions
from ccplay.ui.actions.playback import STEP
from ccplay.ui.view import tracing_problem
from ccplay.units import format_clock


class LabActions(Actions):
    """The actions on traffic, network and marks."""

    def action_dialog(self, name: str) -> None:
        """Open a dialog, then send its command to the lab."""
        if not self.is_ready(ready=self.session.state.phase == "ready"):
            return
        from ccplay.ui import dialogs  # noqa: PLC0415 - after first paint

        dialog: Callable[..., ModalScreen[AnyCommand | None]] = getattr(dialogs, name)
        self.app.push_screen(dialog(self.session.state, self.selected), self._asked)

    def _asked(self, command: AnyCommand | None) -> None:
        if command is not None:
            self.ask(command)
        self.redraw()

    def ask(self, command: AnyCommand) -> None:
        """Send a command to the lab; a new mark is set at the moment shown.

        If the screen shows an earlier moment, a notice shows when any other command was sent.
        """
        head, self.sent = self.playhead, ""
        if not head.running and isinstance(command, Mark) and command.at is None:
            command = msgspec.structs.replace(command, at=head.t)
        elif not head.running and not isinstance(command, Mark | ChangeMark | RemoveMark):
            at = format_clock(self.session.state.now)
            self.sent = f"sent to the live lab at {at} (end goes there): {describe(command)}"
        self.session.send(command)
        self.redraw()

    def action_mark(self) -> None:
        """Mark the moment shown, or change the mark at the cursor."""
        if not self.is_ready(ready=self.session.state.phase == "ready"):
            return
        self.marks.press(self.playhead.width * max(STEP, 1 / self.plots.columns))

    def action_put_mark(self) -> None:
        """Put the mark being moved at the cursor."""
        self.marks.put_down()

    def action_leave_mark(self) -> None:
        """Return the mark being moved to its old place."""
        self.marks.leave()

    def action_stop(self) -> None:
        """Stop the selected traffic."""
        chosen = selection.selection(self.view)
        if chosen is None or chosen.ended is not None:
            text = "No running traffic is selected: choose with ↑↓."
            self.app.notify(self.appearance.glyphs.translate(text), severity="warning")
        else:
            self.ask(selection.stop(chosen))

    def action_path(self) -> None:
        """Move the selected traffic to the next of its paths."""
        chosen, network = selection.selection(self.view), self.view.network
        if chosen is None or chosen.ended is not None or network is None:
            self.app.notify("No running traffic is selected.", severity="warning")
            return
        if not paths.can_choose(chosen, network):
            arrow = self.appearance.glyphs.translate("→")
            text = f"{chosen.name} has one path only: {chosen.src} {arrow} {chosen.dst}"
            self.app.notify(text, severity="warning", markup=False)
            return
        self.ask(SetPath(traffic=paths.name_of(chosen)))

    def action_capture(self) -> None:
        """End the newest running capture; if none is running, ask which link to capture."""
        if running := list(self.session.state.captures):
            self.ask(StopCapture(capture=running[-1]))
        else:
            self.action_dialog("CaptureDialog")

    def action_trace(self) -> None:
        """Trace every ACK of the selected flow, or stop tracing it."""
        state = self.session.state
        flow = state.flows.get(self.selected or "")
        if flow is None or not flow.running:
            self.app.notify("No running flow is selected.", severity="warning")
        elif flow.parent in state.traced:
            self.ask(UntraceFlow(flow=flow.parent))
        elif problem := tracing_problem(state):
            text = f"flow {flow.parent} is sampled, not traced: {problem}"
            self.app.notify(text, severity="warning", timeout=8, markup=False)
        else:
            self.ask(TraceFlow(flow=flow.parent))
