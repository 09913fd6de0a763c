"""A plot described once: its variables, the settings shown beside them, and its texts.

The screen turns a description into cells, a report into a panel of a figure. Only descriptions
define titles, units, factors and names of series.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from ccplay.model.variables import Subject, Variable

Style: TypeAlias = Literal["line", "area", "dots", "bars", "total"]
"""Style in which a line is drawn. ``area`` is filled down to 0, ``dots`` are single measurements;
in reports ``bars`` are amounts in each interval and ``total`` is the growth of a counter."""

Changes: TypeAlias = tuple[tuple[float, float | None], ...]
"""Changes of a setting: moments and the values from then on, oldest first; None is no value."""


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
    changes: Callable[[Any], Changes]
    """Function of a ``levels.Scope`` that returns the changes, in the first variable's unit."""
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
    value: Callable[[Any], float | None]


class Titled(msgspec.Struct, frozen=True, kw_only=True):
    """A plot, or a panel of a figure."""

    name: str
    """Name by which it is chosen, and that its files contain."""
    title: str
    """Title in a word or two, for the screen and a figure's axis."""
    label: str = ""
    """Label of a figure's axis: of a plot without the unit, and empty for its ``title``."""
    height_in: float = 1.0
    """Height in a report's figure, in inches."""


class Plot(Titled, frozen=True, kw_only=True):
    """One quantity over time."""

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
    apart: Literal["", "flow", "queue"] = ""
    """Subjects that have a panel each in a figure, as far as there is room."""
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


class Times(msgspec.Struct, frozen=True):
    """Times, in µs, of which a report draws the cumulative distribution over its runs."""

    name: str
    """Name of the figure's files."""
    label: str
    """Label of the axis of times, with its unit, ms."""
    share: str
    """Label of the other axis: ``share of pings``."""
    caption: str
    """What is drawn of all runs, in a sentence with these two words."""
    panels: Mapping[str, Callable[[Any], Sequence[float]]]
    """Function that returns the times from their source, by the title of its panel."""


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
