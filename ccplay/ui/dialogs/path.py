"""Questions common to dialogs that start traffic: its source, its destination, and monitoring."""

from __future__ import annotations

from textual.widgets import Static

from ccplay.model.values import Capabilities
from ccplay.state.lab_state import LabState
from ccplay.ui.cells.glyphs import Glyphs
from ccplay.ui.dialogs.base import Dialog
from ccplay.ui.dialogs.fields import LabelledRow, Steps


class PathDialog(Dialog):
    """A dialog with a source and a destination; the destination follows the source."""

    def __init__(self, state: LabState, selected_flow: str | None, source: str = "") -> None:
        """Offer ``source``, else the first sender."""
        super().__init__(state, selected_flow)
        names = [(name, name) for name in self.network.hosts]
        self.source = Steps(names, self.glyphs, current=source)
        self.sink = Steps(names, self.glyphs, current=self.network.peer(self.source.value))

    def on_mount(self) -> None:
        """Make the destination follow the source at once: a message could undo a later key."""
        self.watch(self.source, "index", self._follow, init=False)

    def _follow(self) -> None:
        self.sink.value = self.network.peer(self.source.value)
        self.source_changed()

    def source_changed(self) -> None:
        """React to a change of the source; does nothing by default."""

    def path(self) -> tuple[str, str]:
        """Return source and destination. Raises ``ValueError`` if they are equal."""
        if self.source.value == self.sink.value:
            raise ValueError(f"{self.source.value} can't send to itself: choose another host")
        return self.source.value, self.sink.value


class MonitorRow(LabelledRow):
    """Asks whether to monitor every packet, or shows why that is impossible."""

    DEFAULT_CSS = """
    MonitorRow { height: auto; }
    MonitorRow .note { width: 1fr; height: auto; padding-left: 1; color: $text-muted; }
    """

    def __init__(self, capabilities: Capabilities, glyphs: Glyphs, *, wanted: bool = False) -> None:
        """Select monitoring initially if it is ``wanted`` and possible."""
        lack = _lack_of_monitoring(capabilities)
        values = [("", "no"), ("yes", "one-way delay of its packets")]
        self._steps = Steps(values, glyphs, current="" if lack or not wanted else "yes")
        note = Static(glyphs.translate(f"{glyphs.missing} {lack}"), classes="note", markup=False)
        super().__init__("monitor", note if lack else self._steps)

    @property
    def chosen(self) -> bool:
        """Whether every packet should be monitored."""
        return bool(self._steps.value)


def _lack_of_monitoring(capabilities: Capabilities) -> str:
    if not capabilities.monitors:
        return "this lab does not support monitoring: update ccplay there"
    if any(each.available for each in capabilities.monitors):
        return ""
    return f"{capabilities.monitors[0].reason}: {capabilities.monitors[0].remedy}"
