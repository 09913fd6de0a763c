"""A plot described once: its variables, the settings shown beside them, and its texts.

The screen turns a description into cells, a report into a panel of a figure. Only descriptions
define titles, units, factors and names of series.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import msgspec

from ccplay.model.values import LinkSetting, Qdisc
from ccplay.model.variables import Subject, Variable
from ccplay.model.wording import limit_unit
from ccplay.state import lab_state
from ccplay.state.lab_state import LabState
from ccplay.state.udp import Udp

Style: TypeAlias = Literal["line", "area", "dots", "bars", "total"]
"""Style in which a line is drawn. ``area`` is filled down to 0, ``dots`` are single measurements;
in reports ``bars`` are amounts in each interval and ``total`` is the growth of a counter."""

Changes: TypeAlias = tuple[tuple[float, float | None], ...]
"""Changes of a setting: moments and the values from then on, oldest first; None is no value."""


class Scope(msgspec.Struct, frozen=True):
    """The part of a session that a setting or a summary concerns."""

    state: LabState
    link: str = ""
    """The link, or ``LINK CLASS``, whose queue is drawn."""
    ends: tuple[str, str] = ("", "")
    """Source and destination hosts, between which a base RTT is computed."""
    in_bytes: bool = False
    """Whether the queue is drawn in bytes rather than packets."""
    converts: bool = False
    """Whether a limit in the other unit is converted by full frames rather than left out."""
    t: float = 0.0
    """The moment of a summary, in seconds since the start of the stream."""
    values: Sequence[float] = ()
    """Values of the plot's first variable, in its unit, for the flows that run at ``t``."""


class Line(msgspec.Struct, frozen=True):
    """A variable, drawn for every subject that has it."""

    variable: Variable
    style: Style = "line"
    ink: str = ""
    """Name of the line's colour in themes; empty if each subject has its own."""
    adds_up: bool = False
    """Whether the line's subjects share a whole, so that the screen can stack them."""

    @property
    def subject(self) -> Subject | None:
        """Kind of subject that the line is drawn for; None for any that reports the variable."""
        return self.variable.subject


class Setting(msgspec.Struct, frozen=True):
    """A setting in force, drawn as a level line from each change to the next."""

    ink: str
    """Name of the line's colour in themes."""
    word: str
    """Name of the setting in a legend."""
    changes: Callable[[Scope], Changes]
    """Function that returns the changes, in the unit of the plot's first variable."""
    short: str = ""
    """Word before the value in the screen's title; empty if the title omits it."""
    near: bool = False
    """Whether the axis has room for the setting only if measured values come near it."""


class Count(msgspec.Struct, frozen=True):
    """A counter whose growth is shown at the top."""

    variable: Variable
    ink: str
    """Name of the colour in themes of the counter's bars and of its sign."""
    short: str
    """Word after the value in the screen's title."""


class Summary(msgspec.Struct, frozen=True):
    """One number for all subjects together, in the screen's title."""

    word: str
    short: str
    """Text of the summary if there is little room."""
    value: Callable[[Scope], float | None]


class Plot(msgspec.Struct, frozen=True):
    """One quantity over time."""

    name: str
    """Name by which the plot is chosen, and that its files contain."""
    title: str
    """Title in a word or two, for the screen and a figure's axis."""
    help: str
    """Explanation in one line: the quantity, and the window over which it is smoothed."""
    lines: tuple[Line, ...]
    """Lines from bottom to top, all in one unit; the axis belongs to the last one's variable."""
    companions: tuple[Line, ...] = ()
    """Lines drawn below those of a flow, such as ssthresh; the axis makes no room for them."""
    settings: tuple[Setting, ...] = ()
    counts: tuple[Count, ...] = ()
    summaries: tuple[Summary, ...] = ()
    whole: Setting | None = None
    """Setting that limits a stack's height; the screen draws it while lines are stacked."""
    in_bytes: Line | None = None
    """Line that replaces ``lines`` if the queue's limit counts bytes; None if there is none."""
    least: float = 1.0
    """Smallest value at which the screen's value axis may end."""
    missing: tuple[str, str] | None = None
    """Name of the traffic that an empty plot lacks, and id of the key that starts it."""
    full: str = ""
    """Title on the screen if there is room, with abbreviations spelled out."""
    about: str = ""
    """Title of a figure's panel; empty means ``title``. ``{interval}`` is that of ``bars``."""
    label: str = ""
    """Label of a figure's axis, without the unit; empty means ``title``."""
    apart: Literal["", "flow", "queue"] = ""
    """Subjects that have a panel each in a figure, as far as there is room."""
    height_in: float = 1.0
    """Height of the panel in a report's figure, in inches."""
    on_screen: bool = True
    """Whether the screen offers the plot."""
    reported: bool = False
    """Whether reports draw the plot by default."""

    @property
    def variable(self) -> Variable:
        """The variable on the value axis."""
        return self.lines[-1].variable

    def drawn(self, *, in_bytes: bool = False) -> tuple[Line, ...]:
        """Return the lines for a queue whose limit counts packets, or bytes."""
        return (self.in_bytes,) if in_bytes and self.in_bytes else self.lines


def of_variable(variable: Variable) -> Plot:
    """Return the plot of an own value of algorithms or disciplines."""
    least = 0.1 if variable.one else {"us": 2.0, "segments": 8.0}.get(variable.unit, 1.0)
    return Plot(
        name=variable.series,
        title=variable.title,
        help=f"{variable.words}, as reported by {variable.algorithm or 'the algorithm'}",
        lines=(Line(variable),),
        least=least,
        about=variable.about,
        label=variable.label or variable.words,
        height_in=0.8,
    )


# --- settings that plots draw beside measured values: limits, thresholds, delays, rates -----------

_HEADER_BYTES = 14
FRAME_BYTES = 1514
"""Length of a full Ethernet frame in bytes, for converting between packets and bytes."""


def qdiscs(state: LabState, link: str) -> list[tuple[float, LinkSetting, Qdisc | None]]:
    """Return moment, setting and the queue's discipline of each change of a link.

    ``link`` may be ``LINK CLASS``, for the queue of a class.
    """
    direction, _, name = link.partition(" ")
    changes = state.links.get(direction, ())
    return [(each.t, each.setting, _qdisc(each.setting, name)) for each in changes]


def counts_bytes(qdisc: Qdisc | None) -> bool:
    """Return whether the limit of a discipline counts bytes; False also if it has no limit."""
    return qdisc is not None and "limit" in qdisc.options and limit_unit(qdisc.kind) == "bytes"


def limits(scope: Scope) -> Changes:
    """Return a queue's limit at each change, in the scope's unit; None if there is none."""
    every = qdiscs(scope.state, scope.link)
    return tuple((t, _limit(qdisc, _frame(setting), scope)) for t, setting, qdisc in every)


def thresholds(scope: Scope) -> Changes:
    """Return at each change the backlog at which a link starts to mark, in bytes or in packets."""
    return tuple(
        (t, setting.mark and setting.mark * (_frame(setting) if scope.in_bytes else 1.0))
        for t, setting, _ in qdiscs(scope.state, scope.link)
    )


def rates(scope: Scope) -> Changes:
    """Return a link's rate at each change, in bits per second."""
    changes = scope.state.links.get(scope.link.partition(" ")[0], ())
    return tuple((each.t, each.setting.rate and float(each.setting.rate)) for each in changes)


def base_rtts(scope: Scope) -> Changes:
    """Return the base RTT between two hosts at each change, in microseconds."""
    hello = scope.state.hello
    found = lab_state.base_rtt(scope.state, hello.network if hello else None, *scope.ends)
    return tuple((t, None if ms is None else ms * 1e3) for t, ms in found)


def sent_rates(scope: Scope) -> Changes:
    """Return at each change the rate set for all cross traffic together, in bits per second."""
    steps: list[tuple[float, int]] = []
    for udp in scope.state.of(Udp).values():
        ends = [each for each in (udp.stopped, udp.ended) if each is not None]
        if udp.duration_s is not None:
            # The end is reported later than the last packet is sent.
            ends.append(udp.started + udp.duration_s)
        steps.append((udp.started, udp.rate_bps))
        steps += [(min(ends), -udp.rate_bps)] if ends else []
    moments = sorted({t for t, _ in steps})
    sums = [sum(rate for t, rate in steps if t <= moment) for moment in moments]
    return tuple((t, float(rate) or None) for t, rate in zip(moments, sums, strict=True))


def _qdisc(setting: LinkSetting, name: str) -> Qdisc | None:
    """Return the queue of a class, or of the link itself if no class is named."""
    own = next((each.qdisc for each in setting.classes or () if each.name == name), None)
    return own or setting.qdisc


def _frame(setting: LinkSetting) -> int:
    """Return the length of a link's full packet in bytes, including its Ethernet header."""
    return FRAME_BYTES if setting.mtu is None else setting.mtu + _HEADER_BYTES


def _limit(qdisc: Qdisc | None, frame: int, scope: Scope) -> float | None:
    if qdisc is None:
        return None
    limit, in_bytes = qdisc.options.get("limit"), limit_unit(qdisc.kind) == "bytes"
    if not isinstance(limit, int | float):
        return None
    if in_bytes == scope.in_bytes:
        return float(limit)
    if not scope.converts:
        return None
    return limit / frame if in_bytes else float(limit * frame)
