"""The dialog that starts cross traffic: UDP at a constant rate."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from ccplay.model.traffic_commands import StartUdp
from ccplay.state.lab_state import LabState
from ccplay.ui.dialogs.fields import LabelledRow, entries, typed
from ccplay.ui.dialogs.path import MonitorRow, PathDialog


class UdpDialog(PathDialog):
    """Asks for UDP traffic at a rate that ignores congestion."""

    HEADING = "UDP cross traffic"
    AUTO_FOCUS = "Input"
    VERB = "start"

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the first sender and its peer."""
        super().__init__(state, selected_flow)
        self.entries = entries(StartUdp, self.glyphs)
        # Only a monitor measures the one-way delay while the traffic runs.
        self.monitor = MonitorRow(self.capabilities, self.glyphs, wanted=True)

    def controls(self) -> Iterable[Widget]:
        """Return the rate, which has the focus, then the rest, whose defaults usually fit."""
        rate, packet, *others, both_ways = self.entries.values()
        return (
            *(rate, packet),
            LabelledRow("from", self.source),
            LabelledRow("to", self.sink),
            *others,
            self.monitor,
            both_ways,
        )

    def command(self) -> StartUdp:
        """Return the command that starts the cross traffic."""
        source, sink = self.path()
        return StartUdp(
            **typed(self.entries),
            src=source,
            dst=sink,
            monitor=self.monitor.chosen,
        )
