"""What every kind of traffic has: its state, its results, and the description of a kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, TypeVar, cast

import msgspec
from msgspec.structs import replace

from ccplay.model.base import (
    Event,
    StartRoutedTraffic,
    StartTraffic,
    StopTraffic,
    TrafficEnded,
    TrafficSample,
    TrafficStarted,
)
from ccplay.model.columns import ResultTable
from ccplay.model.commands import ChangeMark, Mark, RemoveMark
from ccplay.model.events import MOST_LATE_S, Applied, FlowPath
from ccplay.model.series import Series
from ccplay.model.variables import Cells, Variable
from ccplay.traffic.plot import Line, Plot, Times
from ccplay.units import format_clock

# --- the event log: commands, events and marks as lines -------------------------------------------


class LogEntry(msgspec.Struct, frozen=True):
    """A line of the event log."""

    t: float
    kind: str
    """Kind of the line: ``applied``, ``mark``, ``traffic``, ``file``, ``info``, ``warning`` or
    ``error``."""
    text: str
    name: str = ""
    """Name of a user's mark in commands."""
    detail: str = ""
    """Equivalent lines of tc(8); empty if there are none."""

    @property
    def is_mark(self) -> bool:
        """Whether the line is drawn through the plots, as the cause of a possible effect."""
        return self.kind in ("applied", "mark")


class EventLog:
    """The lines of a session's event log."""

    def __init__(self) -> None:
        self.log: list[LogEntry] = []
        """Lines in the order of arrival; a mark's moment may be earlier than that of the line
        before."""
        self._marks: dict[str, int] = {}
        """Index of the line of each mark, by name."""

    def write(self, t: float, kind: str, text: str, detail: str = "") -> None:
        """Add a line."""
        self.log.append(LogEntry(t, kind, text, detail=detail))

    def mark(self, event: Applied, command: Mark | ChangeMark | RemoveMark) -> None:
        """Add, change or remove a mark."""
        if isinstance(command, Mark):
            at = event.t if command.at is None else command.at
            if command.name is not None:
                self._marks[command.name] = len(self.log)
            text = command.text + lateness(event)
            self.log.append(LogEntry(at, "mark", text, command.name or ""))
            return
        row = self._marks.get(command.name)
        if row is None:
            return
        # In place, because readers rely on the lines they have seen.
        was = self.log[row]
        if isinstance(command, RemoveMark):
            del self._marks[command.name]
            text = f"mark {was.text!r} at {format_clock(was.t)} is removed"
            self.log[row] = LogEntry(event.t, "info", text)
        else:
            text = was.text if command.text is None else command.text
            at = was.t if command.at is None else command.at
            self.log[row] = replace(was, t=at, text=text)


def lateness(event: Applied) -> str:
    """Return how late a step of the timeline was, as text; empty within the tolerance."""
    return f", {event.late_s:.1f} s late" if event.late_s > MOST_LATE_S else ""


# --- the state of traffic by name -----------------------------------------------------------------


class Traffic(msgspec.Struct, kw_only=True):
    """The state of one traffic; each kind of traffic adds what it measures."""

    WORD: ClassVar[str] = ""
    """Name of the kind for people; if empty, ``kind``."""
    DIED: ClassVar[str] = "died"
    """Word for an end that nobody requested."""
    MANY_PATHS: ClassVar[bool] = False
    """Whether it consists of transfers that may take different paths."""

    kind: str
    """Name of the traffic's ``TrafficKind``; connections without one are ``subflow``."""
    name: str
    """Name of the traffic in commands."""
    src: str
    """Sending host."""
    dst: str
    """Receiving host."""
    started: float
    """Moment of the start in seconds since the start of the stream."""
    ended: float | None = None
    """Moment of the end in seconds since the start of the stream; None while it runs."""
    error: str | None = None
    """Reason for the end if nobody requested it."""
    paths: list[FlowPath] = msgspec.field(default_factory=list)
    """Paths that its packets took, oldest first; empty if there was only one."""
    series: dict[str, Series] = msgspec.field(default_factory=dict)
    """Values of the kind's variables over time, by the variable's name."""

    @classmethod
    def begin(cls, event: Any) -> Self:
        """Return the traffic that an event reports as started, with the fields that both have."""
        common = {each: getattr(event, each) for each in _common(cls, event)}
        return cls(name=event.name, started=event.t, **common)

    def measure(self, event: Any) -> None:
        """Apply a measurement while the traffic runs."""

    def end(self, event: Any) -> None:
        """Apply the end, with the fields that the event has, too."""
        for each in _common(type(self), event):
            setattr(self, each, getattr(event, each))
        self.ended = event.t

    def outcome(self) -> str:
        """Return how the traffic ended, as text after its name, unless it died."""
        return "ended"

    @property
    def word(self) -> str:
        """Name of the kind for people: ``flow``, ``UDP``."""
        return self.WORD or self.kind

    def lines(self, t: float) -> tuple[str, ...]:
        """Return what the screen's table shows at ``t``, in several lengths, longest first.

        Connections have none while they run: they have columns of their own.
        """
        del t
        return ("",)

    @property
    def goal(self) -> int | None:
        """Number of bytes after which it ends by itself, of which the table shows the share."""
        return None

    def identity(self) -> dict[str, Any]:
        """Return the fields that every result has."""
        return {"id": self.name, "src": self.src, "dst": self.dst, "error": self.error}


def _common(kind: type[msgspec.Struct], event: msgspec.Struct) -> list[str]:
    return [each for each in event.__struct_fields__ if each in kind.__struct_fields__]


T = TypeVar("T", bound=Traffic)


class TrafficState(EventLog):
    """All traffic of a session by name."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        """Moment ``t`` of the newest event."""
        self.traffic: dict[str, Traffic] = {}
        """All traffic that was started, in the order of the starts.

        In recordings of 0.1 two kinds may have one name: the later one is kept under ``KIND NAME``,
        which no command can use."""

    def of(self, kind: type[T]) -> dict[str, T]:
        """Return all traffic of a class by name, in the order of the starts."""
        # One download of a thousand is enough to check the class.
        one_each = {type(each): each for each in self.traffic.values()}
        wanted = [one for one, each in one_each.items() if isinstance(each, kind)]
        if not wanted:
            return {}
        return {
            each.name: cast("T", each) for each in self.traffic.values() if type(each) in wanted
        }

    def add(self, traffic: Traffic) -> None:
        """Add traffic that has started."""
        known = self.traffic.get(traffic.name)
        apart = known is not None and known.kind != traffic.kind
        self.traffic[f"{traffic.kind} {traffic.name}" if apart else traffic.name] = traffic

    def find(self, kind: type[T], name: str) -> T | None:
        """Return the traffic of a class with this name."""
        found = self.traffic.get(name)
        if found is None or isinstance(found, kind):
            return found
        return self.of(kind).get(name)

    def find_of(self, kind: str, name: str) -> Traffic | None:
        """Return the traffic of a kind with this name."""
        found = self.traffic.get(name)
        if found is None or found.kind == kind:
            return found
        return self.traffic.get(f"{kind} {name}")


Handlers: TypeAlias = dict[type, Callable[[Any, Any], None]]
"""Function by type of event that applies it to the state."""


# --- results --------------------------------------------------------------------------------------


class Transfer(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was sent from one end to another: traffic, or a part of it."""

    id: str
    """Name of the traffic."""
    src: str
    dst: str

    @property
    def path(self) -> str:
        """Source and destination: ``h1 → h2``."""
        return f"{self.src} → {self.dst}"


class TrafficResult(Transfer, frozen=True, kw_only=True):
    """The result of one traffic; each kind adds what it measured."""

    error: str | None
    """Reason why the traffic died, if it was not stopped."""


# --- the description of a kind of traffic ---------------------------------------------------------


class Samples(msgspec.Struct, frozen=True, eq=False):
    """The measurements of a kind of traffic while it runs, and the table that exports them."""

    event: type[Event]
    columns: Mapping[str, tuple[str, Cells]]
    """Name and cell type of a column, by field of the event; a list field has one row per item."""
    about: str
    """Meaning of a row."""


class Tool(NamedTuple):
    """A program that a lab starts, which the machine must have."""

    name: str
    package: str
    """Package of Debian and Ubuntu that has it."""
    purpose: str
    required: bool = True
    """Whether no lab can run without it."""


class Form(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """The dialog that starts a kind of traffic, made from the fields of the command."""

    key: str
    """Key that opens the dialog, unless the user has set another one."""
    title: str
    about: str
    """What the traffic is, in the menu of all kinds."""
    asks: tuple[str, ...]
    """Fields of the command in the order of the dialog; each has a label."""
    verb: str = "start"
    """Effect of enter in one word."""
    reads: str = ""
    """Meaning of the traffic's line in the screen's table; empty if it has columns of its own."""


class TrafficKind(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A kind of traffic: its names, its commands and events, its state, results and plots."""

    name: str
    """Name of the kind, such as ``flow``; with underscores it names the field of its commands."""
    plural: str
    """Name of all traffic of the kind in classes of links: ``flows``."""
    prefix: str
    """Prefix of the names that ccplay assigns: ``p`` yields ``p1``, ``p2`` …"""
    start: type[StartTraffic]
    stop: type[StopTraffic]
    started: type[TrafficStarted]
    ended: type[TrafficEnded]
    samples: tuple[type[TrafficSample], ...] = ()
    """Events sent while the traffic runs, at their own moments between the sweeps."""
    others: tuple[type[Event], ...] = ()
    """Further events of the kind."""
    state: type[Traffic] | None = None
    """State of one traffic, which its events begin, measure and end; None for connections."""
    more: Handlers = msgspec.field(default_factory=dict)
    """Functions that apply further events to the state, or do more for those above."""
    result: Callable[[Any, Any], TrafficResult]
    """Function that returns a result from the state and the traffic in it."""
    tables: tuple[ResultTable, ...]
    """Tables of the results, for a terminal and a page."""
    metrics: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Names of those metrics of the result that mean something else than in other results."""
    metric: str = ""
    """Metric of the result that is shown if a scenario names none; empty if none is."""
    needs: Mapping[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    """Metrics that only some traffic has: the field of ``start`` that asks for it, and the reason
    why traffic without it has none."""
    unmeasured: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Reasons why a run may not have measured a metric, by the metric."""
    variables: tuple[Variable, ...] = ()
    """Quantities that the kind measures over time."""
    plots: tuple[Plot, ...] = ()
    """Plots of the kind's variables."""
    lines: Mapping[str, Line] = msgspec.field(default_factory=dict)
    """Lines that the kind adds to other plots, by the plot's name."""
    tools: tuple[Tool, ...] = ()
    """Programs that send or receive the traffic, other than those of ccplay."""
    times: tuple[Times, ...] = ()
    """Times of the kind's traffic whose distributions reports draw."""
    limits: tuple[str, ...] = ()
    """Fields of ``start`` any of which makes the traffic end by itself."""
    always_ends: bool = False
    """Whether the traffic ends by itself regardless of ``start``."""
    limit_words: str = ""
    """Settings that make the traffic end, as written in scenarios."""
    connection: bool = False
    """Whether the traffic is one set of TCP connections, which are sampled, traced and switched."""
    brief: bool = False
    """Whether its connections are short transfers, which reports draw together."""
    fills: bool = True
    """Whether the traffic sends enough to fill a queue; if not, it only measures."""
    ink: str = "queue"
    """Name of the colour in themes that the kind's traces have."""
    exported: Samples | None = None
    form: Form
    offer: str = ""
    """Line of the palette that starts the traffic; empty if there is none, or one per algorithm."""
    offer_detail: Callable[[Any], str] = lambda _: ""
    """Function that returns the text that the palette shows of a start, apart from its path."""

    @property
    def field(self) -> str:
        """Field of commands and events that holds the traffic's name: ``flow``, ``short_flows``."""
        return self.name.replace("-", "_")

    @property
    def group(self) -> str:
        """Key of the kind's results: ``flows``, ``short_flows``."""
        return self.plural.replace("-", "_")

    @property
    def word(self) -> str:
        """Name of the kind for people: ``flow``, ``UDP``."""
        return self.start.WORD

    @property
    def routed(self) -> bool:
        """Whether the path of its packets can be chosen."""
        return issubclass(self.start, StartRoutedTraffic)

    @property
    def handlers(self) -> tuple[Handlers, ...]:
        """Functions that apply the kind's events to the state, in the order of their calls."""
        if (kind := self.state) is None:
            return (self.more,)

        def begin(state: TrafficState, event: TrafficStarted) -> None:
            state.add(kind.begin(event))

        def measure(state: TrafficState, event: TrafficSample) -> None:
            if (found := state.find_of(self.name, event.name)) is not None:
                found.measure(event)

        own: Handlers = {self.started: begin, self.ended: self._apply_end}
        return (own | dict.fromkeys(self.samples, measure), self.more)

    def _apply_end(self, state: TrafficState, event: TrafficEnded) -> None:
        if (found := state.find_of(self.name, event.name)) is None:
            return
        found.end(event)
        what = f"{self.word} {event.name}"
        if event.error:
            state.write(event.t, "error", f"{what} {found.DIED}: {event.error}")
        else:
            state.write(event.t, "traffic", f"{what} {found.outcome()}")

    def name_of(self, record: object) -> str | None:
        """Return the traffic's name in a command or event of the kind."""
        name: str | None = getattr(record, self.field)
        return name

    def ends(self, start: object) -> bool:
        """Return whether the traffic started by a command ends by itself."""
        limits = (getattr(start, each) for each in self.limits)
        return self.always_ends or any(each is not None for each in limits)

    def stopping(self, name: str) -> StopTraffic:
        """Return the command that stops the traffic with this name."""
        return self.stop(**{self.field: name})

    def starting(self, **fields: Any) -> StartTraffic:
        """Return a command that starts traffic of this kind; ignore fields that it does not use."""
        known = {key: value for key, value in fields.items() if key in self.start.__struct_fields__}
        return self.start(**known)
