"""The dialog that starts short flows: transfers that arrive at random."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from ccplay.model.traffic_commands import StartShortFlows
from ccplay.state.lab_state import LabState
from ccplay.ui.dialogs.fields import LabelledRow, Steps, entries, typed
from ccplay.ui.dialogs.menu import Item, feature_items
from ccplay.ui.dialogs.path import PathDialog

_SIZES = (
    ("pareto", "pareto: heavy-tailed, a few hold most bytes"),
    ("fixed", "fixed: each has the mean size"),
)


class ShortFlowsDialog(PathDialog):
    """Asks for TCP transfers at random moments, each over a connection of its own."""

    HEADING = "Short flows"
    AUTO_FOCUS = "Input"
    VERB = "start"

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the first sender and its peer, with the sender's default algorithm."""
        super().__init__(state, selected_flow)
        self.entries = entries(StartShortFlows, self.glyphs)
        self.sizes = Steps(_SIZES, self.glyphs)
        features, kernel = self.capabilities.congestion_controls, self.capabilities.kernel
        controls = [Item("", "default"), *feature_items(features, kernel)]
        names = [(each.key, each.label) for each in controls if not each.missing]
        self.cc = Steps(names, self.glyphs)

    def controls(self) -> Iterable[Widget]:
        """Return the load, which has the focus, then the details of the transfers."""
        load, size, *others = self.entries.values()
        return (
            *(load, size),
            LabelledRow("sizes", self.sizes),
            LabelledRow("congestion", self.cc),
            LabelledRow("from", self.source),
            LabelledRow("to", self.sink),
            *others,
        )

    def command(self) -> StartShortFlows:
        """Return the command that starts the short flows."""
        source, sink = self.path()
        return StartShortFlows(
            **typed(self.entries),
            src=source,
            dst=sink,
            cc=self.cc.value or None,
            sizes=self.sizes.value,
        )
