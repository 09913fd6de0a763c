"""The dialog that starts cross traffic: UDP at a constant rate."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from ccplay.model.commands import StartUdp
from ccplay.scenario.fields.quantities import duration, packet, payload_rate
from ccplay.state.lab_state import LabState
from ccplay.ui.dialogs.fields import Field, Row
from ccplay.ui.dialogs.path import MonitorRow, PathDialog
from ccplay.units import format_rate


class UdpDialog(PathDialog):
    """Send UDP at a rate that heeds no congestion."""

    HEADING = "Cross traffic by UDP"
    START = "Input"
    VERB = "start"

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the path that the first flow takes too."""
        super().__init__(state, selected_flow)
        rate, size = format_rate(StartUdp().rate_bps), f"{StartUdp().packet_bytes} bytes"
        self.rate = Field(
            "rate",
            rate,
            payload_rate,
            self.glyphs,
            optional=rate,
            meaning="of payload: 1 kbit/s to 1 Gbit/s",
        )
        self.packet = Field(
            "packets of",
            size,
            packet,
            self.glyphs,
            optional=size,
            meaning="payload: 16 to 65507 bytes",
        )
        self.duration = Field(
            "stop after", "", duration, self.glyphs, optional="until stopped", meaning="time: 30 s"
        )
        # Nothing else tells what becomes of it while it runs.
        self.monitor = MonitorRow(self.capabilities, self.glyphs, wanted=True)

    def controls(self) -> Iterable[Widget]:
        """Put the rate first, with the focus: the rest is right as it is, as a rule."""
        return (
            self.rate,
            self.packet,
            Row("from", self.source),
            Row("to", self.sink),
            self.duration,
            self.monitor,
        )

    def command(self) -> StartUdp:
        """Return the cross traffic to start."""
        source, sink = self.path()
        return StartUdp(
            src=source,
            dst=sink,
            rate_bps=self.rate.value or StartUdp().rate_bps,
            packet_bytes=self.packet.value or StartUdp().packet_bytes,
            duration_s=self.duration.value,
            monitor=self.monitor.chosen,
        )
