"""The dialog that asks for another network to replace the running one."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Static

from ccplay.errors import ScenarioError
from ccplay.model.disciplines import DISCIPLINES
from ccplay.model.network import BOTTLENECK, Topology
from ccplay.model.quantities import MisfitError, fields_of
from ccplay.model.topologies import TopologyKind, generated, plan, value_of
from ccplay.model.values import LinkSetting
from ccplay.scenario.trial import trial
from ccplay.scenario.values import Scenario
from ccplay.scenario.writing import toml
from ccplay.ui.cells.glyphs import Glyphs
from ccplay.ui.dialogs.base import Field, LabelledRow, Question, Steps, entry

_LINK = fields_of(LinkSetting)
_USUAL = {BOTTLENECK: "10 Mbit/s, 10 ms, 100", "edge": "10 Mbit/s, 1 ms, 100"}
"""Default rate, delay and queue limit in packets by tier; other tiers have those of ``edge``."""


class NetworkDialog(Question[Scenario]):
    """Asks for a topology, its parameters, and the links of each tier."""

    DEFAULT_CSS = """
    NetworkDialog .kind { height: auto; }
    NetworkDialog .note { height: auto; color: $text-muted; margin-top: 1; }
    """

    HEADING = "New network"
    AUTO_FOCUS = "Steps"
    VERB = "start"

    def __init__(self, topology: Topology | None) -> None:
        """Offer the running topology first, if numeric parameters describe it completely."""
        super().__init__()
        self._kinds = {kind.name: kind for kind in generated()}
        current = topology.kind if topology is not None else None
        self.kind = Steps([(name, name) for name in self._kinds], self.glyphs, current=current)
        self._summary = Static(classes="detail", markup=False)
        self._forms = {
            name: _Form(kind, topology if name == current else None, self.glyphs)
            for name, kind in self._kinds.items()
        }
        self._show()

    def controls(self) -> Iterable[Widget]:
        """Return the kind, then its parameters and its tiers."""
        note = (
            "The links of a tier have a rate, a delay and a queue limit in packets. This lab ends; "
            "in the new one a flow starts from each of the first hosts to its peer."
        )
        return (
            LabelledRow("kind", self.kind),
            self._summary,
            *self._forms.values(),
            Static(note, classes="note", markup=False),
        )

    def on_steps_stepped(self, event: Steps.Stepped) -> None:
        """Show the fields of another kind."""
        event.stop()
        self._show()

    def _show(self) -> None:
        self._summary.update(self.glyphs.translate(self._kinds[self.kind.value].summary))
        for name, form in self._forms.items():
            form.display = name == self.kind.value

    def command(self) -> Scenario:
        """Return the scenario with the chosen network. Raises ``ValueError``."""
        form = self._forms[self.kind.value]
        try:
            return trial(form.topology(), form.settings())
        except ScenarioError as error:
            raise ValueError(error.lines[-1].partition(": ")[2]) from None


class _Form(Vertical):
    """The fields for the parameters and tiers of one kind of topology."""

    def __init__(self, kind: TopologyKind, topology: Topology | None, glyphs: Glyphs) -> None:
        self._kind = kind
        now = topology or Topology(kind=kind.name)
        self.numbers = {
            each.name: entry(replace(each, hint=each.bounds), glyphs, str(value_of(each, now)))
            for each in kind.parameters
        }
        groups = plan(Topology(kind=kind.name)).groups or (BOTTLENECK,)
        self.tiers = {
            name: Field(
                name,
                _USUAL.get(name, _USUAL["edge"]),
                _read_link,
                glyphs,
                meaning="rate, delay, packets",
            )
            for name in groups
        }
        super().__init__(*self.numbers.values(), *self.tiers.values(), classes="kind")

    def topology(self) -> str:
        """Return the topology in TOML. Raises ``ValueError``."""
        numbers = {name: field.value for name, field in self.numbers.items()}
        given = {name: number for name, number in numbers.items() if number is not None}
        return toml({"kind": self._kind.name, **given})

    def settings(self) -> list[str]:
        """Return the settings of links in the form of ``--set``. Raises ``ValueError``."""
        return [f"links.{name}={field.value}" for name, field in self.tiers.items()]


def _read_link(text: str) -> str:
    """Read rate, delay and queue limit in packets; return them as TOML. Raises ``ValueError``."""
    parts = [each.strip() for each in text.split(",")]
    if len(parts) != 3:
        raise MisfitError("a rate, a delay and a number of packets, such as 10 Mbit/s, 5 ms, 50")
    rate, delay = _LINK["rate"], _LINK["delay_us"]
    limit = DISCIPLINES["pfifo"].parameter("limit")
    return toml(
        {
            "rate": rate.write(rate.parse(parts[0])),
            "delay": delay.write(delay.parse(parts[1])),
            "queue": {"kind": "pfifo", "limit": int(limit.parse(parts[2]))},
        }
    )
