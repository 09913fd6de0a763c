"""A plot described once: the variables that it draws, what stands beside them, and its words.

The screen makes cells of a description, a report makes a panel of a figure. Neither has a title,
a unit, a factor or the name of a series of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import msgspec

from ccplay.model.variables import Subject, Variable
from ccplay.state.lab_state import LabState

Style: TypeAlias = Literal["line", "area", "dots", "bars", "total"]
"""Style in which a line is drawn. ``area`` is filled down to 0, ``dots`` are single measurements;
``bars`` are amounts in each interval and ``total`` is a counter's growth, where a room draws them
so."""

Changes: TypeAlias = tuple[tuple[float, float | None], ...]
"""A setting: when which value began, oldest first; None is no value."""


class Scope(msgspec.Struct, frozen=True):
    """The part of a session that a setting or a summary is about."""

    state: LabState
    link: str = ""
    """The link, or ``LINK CLASS``, whose queue is drawn."""
    ends: tuple[str, str] = ("", "")
    """Source and destination."""
    in_bytes: bool = False
    """Whether the queue is drawn in bytes; else in packets."""
    converts: bool = False
    """Whether a limit that counts the other unit is converted by full frames; else it is none."""
    t: float = 0.0
    """The moment of a summary, in seconds since the start of the stream."""
    values: Sequence[float] = ()
    """Values of the plot's first variable, in its unit, of the flows that run at ``t``."""


class Line(msgspec.Struct, frozen=True):
    """A variable, drawn of every subject that has it."""

    variable: Variable
    style: Style = "line"
    ink: str = ""
    """Name of its colour in themes; empty: each subject has its own."""
    adds_up: bool = False
    """Whether its subjects share a whole, so that the screen can stack them."""

    @property
    def subject(self) -> Subject | None:
        """What it is drawn of; None: of whoever reports it."""
        return self.variable.subject


class Setting(msgspec.Struct, frozen=True):
    """A setting in force, drawn across from each change to the next beside what was measured."""

    ink: str
    """Name of its colour in themes."""
    word: str
    """Word in a legend."""
    changes: Callable[[Scope], Changes]
    """Returns it in the unit of the plot's first variable."""
    short: str = ""
    """Word before its value in the screen's title; empty if it is not in the title."""
    near: bool = False
    """Whether it is worth room only where what was measured comes near it."""


class Count(msgspec.Struct, frozen=True):
    """A counter whose growth is marked at the top."""

    variable: Variable
    ink: str
    """Name of its colour in themes, and of its sign."""
    short: str
    """Word after its value in the screen's title."""


class Summary(msgspec.Struct, frozen=True):
    """One number of all subjects together, in the screen's title."""

    word: str
    short: str
    """The same where there is little room."""
    value: Callable[[Scope], float | None]


class Plot(msgspec.Struct, frozen=True):
    """One quantity over time."""

    name: str
    """Name by which it is chosen, and that its files have."""
    title: str
    """A word or two: on the screen, and on a figure's axis."""
    help: str
    """Explanation in one line: what it shows, and over which window where it is smoothed."""
    lines: tuple[Line, ...]
    """Lines from the bottom to the top, all in one unit. The last one's variable has the axis."""
    companions: tuple[Line, ...] = ()
    """What belongs to each line of a flow, and is drawn below it without room of its own."""
    settings: tuple[Setting, ...] = ()
    counts: tuple[Count, ...] = ()
    summaries: tuple[Summary, ...] = ()
    whole: Setting | None = None
    """Most that a stack can fill; the screen draws it where lines are stacked."""
    in_bytes: Line | None = None
    """Drawn in place of the lines where the queue's limit counts bytes."""
    least: float = 1.0
    """The screen's value axis never ends below this."""
    missing: tuple[str, str] | None = None
    """Name of what is missing where nothing is drawn, and the id of the key that starts one."""
    full: str = ""
    """Title on the screen where there is room for it, with abbreviations spelled out."""
    about: str = ""
    """Title of a figure's panel; empty: ``title``. ``{interval}`` stands for that of ``bars``."""
    label: str = ""
    """Label of a figure's axis, without the unit; empty means ``title``."""
    apart: Literal["", "flow", "queue"] = ""
    """Subjects of which a figure has a panel each, as far as there is room."""
    height_in: float = 1.0
    """Height of its panel in a report's figure, in inches."""
    on_screen: bool = True
    """Whether the screen offers it."""
    reported: bool = False
    """Whether reports draw it unasked."""

    @property
    def variable(self) -> Variable:
        """The variable that the value axis belongs to."""
        return self.lines[-1].variable

    def drawn(self, *, in_bytes: bool = False) -> tuple[Line, ...]:
        """Return its lines where the queue's limit counts packets, or bytes."""
        return (self.in_bytes,) if in_bytes and self.in_bytes else self.lines


def of_variable(variable: Variable) -> Plot:
    """Return the plot of a variable that algorithms or disciplines report of themselves."""
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
