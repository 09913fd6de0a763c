"""The dialog that switches a running flow's congestion control, or a host's default."""

from __future__ import annotations

from collections.abc import Iterable

from textual.binding import Binding
from textual.widget import Widget
from textual.widgets import Static

from ccplay.model.commands import SetCongestionControl
from ccplay.state.lab_state import LabState
from ccplay.ui.dialogs.base import Dialog, available
from ccplay.ui.dialogs.fields import LabelledRow, Steps
from ccplay.ui.dialogs.hosts import running_flows
from ccplay.ui.dialogs.menu import Menu, feature_items


class CongestionDialog(Dialog):
    """Asks for the algorithm of a running flow, or of a host's new connections."""

    HEADING = "Congestion control"
    AUTO_FOCUS = "Menu"
    VERB = "switch"
    HINT = "←→ flow or host  ·  1-9 a-z jump"

    BINDINGS = [  # noqa: RUF012 - as Textual declares them
        Binding("right", "step(1)", "next flow or host", show=False),
        Binding("left", "step(-1)", "flow or host before", show=False),
    ]

    def __init__(self, state: LabState, selected_flow: str | None) -> None:
        """Offer the selected flow, else the first running one, else the first host."""
        super().__init__(state, selected_flow)
        flows = running_flows(state)
        names = self.network.hosts
        targets = [(f"flow {name}", f"flow {name}") for name in flows]
        targets += [(f"host {name}", f"new connections of {name}") for name in names]
        chosen = (selected_flow or "").partition("/")[0]
        self.target = Steps(targets, self.glyphs, current=f"flow {chosen}")
        items = feature_items(self.capabilities.congestion_controls, self.capabilities.kernel)
        self.menu = Menu(items, self.glyphs, current=self._now())

    def controls(self) -> Iterable[Widget]:
        """Return the choice of flow or host, then the algorithms, which have the focus."""
        return (
            LabelledRow("of", self.target),
            Static(classes="gap"),
            self.menu,
            Static(classes="detail", markup=False),
        )

    def on_steps_stepped(self, event: Steps.Stepped) -> None:
        """Show the algorithm of another flow or host."""
        event.stop()
        self.menu.tick(self._now())

    def action_step(self, by: int) -> None:
        """Show another flow or host while the focus stays in the list."""
        self.target.action_step(by)

    def command(self) -> SetCongestionControl:
        """Return the command that switches the algorithm."""
        kind, _, name = self.target.value.partition(" ")
        cc = available(self.menu)
        if kind == "flow":
            return SetCongestionControl(cc=cc, flow=name)
        return SetCongestionControl(cc=cc, host=name)

    def _now(self) -> str | None:
        kind, _, name = self.target.value.partition(" ")
        if kind == "flow":
            return self.state.flows[name].cc if name in self.state.flows else None
        return self.state.hosts.get(name)
