"""Links that move: the setting that names a trace or a model of a path, and its parameters.

A scenario writes ``trace = "lte-driving"``, ``trace = "mine.csv"``, ``trace = { rate = "my.up",
delay = "my.owd" }`` or ``model = { kind = "starlink", seed = 3 }``; a person types ``starlink seed
3``. All of them become one ``Trace``. What it means over time is computed in ``ccplay/trace``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec.structs import replace

from ccplay.model.quantities import (
    COUNT,
    RATE,
    SHARE,
    SIZE,
    TIME_US,
    WHOLE,
    Field,
    MisfitError,
    Plain,
    Quantity,
    Shape,
    did_you_mean,
    quote,
)

Number: TypeAlias = int | float

OFF = "none"
"""Word that stops a trace and restores the fixed rate."""

POLICER = "policer"
"""Model that drops what exceeds its rate and lets nothing wait."""

_FILE = re.compile(r"[\w ()+,=@-][\w .()+,=@-]{0,99}(/[\w ()+,=@-][\w .()+,=@-]{0,99}){0,4}")
"""Pattern of a file beside a scenario, or in a folder beside it."""

_SEED = Field(WHOLE, "Seed: the same seed gives the same path", 0, 2**31, default=1)


class Kind(msgspec.Struct, frozen=True):
    """A model of a path: its name, and its parameters."""

    name: str
    summary: str
    parameters: Mapping[str, Field]


MODELS = {
    each.name: each
    for each in (
        Kind(
            "starlink",
            "slots of 15 s with a new capacity and delay, and loss at each change",
            {
                "seed": _SEED,
                "rate": Field(RATE, "Mean capacity", 100_000, 100_000_000, default=50_000_000),
                "delay": Field(TIME_US, "Mean one-way delay", 1_000, 1_000_000, default=25_000),
                "loss": Field(
                    SHARE, "Share of packets lost for 100 ms after a change", 0, 0.5, default=0.1
                ),
            },
        ),
        Kind(
            "cell",
            "a cellular link whose rate wanders and fades, as Sprout models it",
            {
                "seed": _SEED,
                "rate": Field(RATE, "Mean capacity", 100_000, 50_000_000, default=6_000_000),
                "fading": Field(
                    SHARE, "Change of the rate in a second, as a share of it", 0.01, 2, default=0.4
                ),
                "outage": Field(
                    TIME_US, "Mean length of an outage", 0, 10_000_000, default=1_000_000
                ),
            },
        ),
        Kind(
            "wifi",
            "a station of a Wi-Fi network: turns with others, and bursts of aggregated frames",
            {
                "seed": _SEED,
                "rate": Field(
                    RATE, "Rate of the best modulation", 1_000_000, 300_000_000, default=65_000_000
                ),
                "stations": Field(COUNT, "Other stations that send", 0, 50, default=2),
                "burst": Field(
                    TIME_US, "Longest burst of aggregated frames", 200, 5_484, default=4_000
                ),
            },
        ),
        Kind(
            POLICER,
            "a token bucket that drops what exceeds it; the link keeps its own rate",
            {
                "rate": Field(RATE, "Rate of the tokens", 8_000, 100_000_000, default=5_000_000),
                "burst": Field(SIZE, "Size of the bucket", 1_514, 10**9, default=50_000),
            },
        ),
    )
}
"""Models of paths by name."""


class Trace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What moves a link: a trace that comes with ccplay, files, or a model. Empty: nothing."""

    name: str = ""
    """Name of a trace that comes with ccplay."""
    rate: str = ""
    """File with the departures or rates, beside the scenario."""
    delay: str = ""
    """File with a one-way delay every 10 ms, beside the scenario."""
    loop: bool = True
    """Whether it repeats; else the fixed rate and delay return at its end."""
    model: str = ""
    """Kind of a model."""
    options: Annotated[dict[str, Number], msgspec.Meta(max_length=16)] = {}
    """Parameters of the model, in the units of ``MODELS``."""
    digest: Annotated[str, msgspec.Meta(max_length=64)] = ""
    """SHA-256 of what the files contain; empty without files."""

    @property
    def has_rate(self) -> bool:
        """Whether it takes the place of the link's rate; a delay and a policer leave it."""
        return bool(self.name or self.rate or (self.model and self.model != POLICER))

    @property
    def has_delay(self) -> bool:
        """Whether it takes the place of the link's delay; of a file of rates that is unknown."""
        return bool(self.delay) or SHIPPED.get(self.name, self).model == "starlink"

    @property
    def title(self) -> str:
        """Short name: that of a trace or a model, or of the first file."""
        return self.name or self.model or self.rate or self.delay

    def __bool__(self) -> bool:
        """Return whether anything moves the link."""
        return bool(self.name or self.rate or self.delay or self.model)


SHIPPED: dict[str, Trace] = {
    "lte-driving": Trace(
        model="cell", options={"seed": 7, "rate": 6_000_000, "fading": 0.6, "outage": 400_000}
    ),
    "lte-still": Trace(
        model="cell", options={"seed": 11, "rate": 9_000_000, "fading": 0.15, "outage": 0}
    ),
    "train": Trace(
        model="cell", options={"seed": 5, "rate": 4_000_000, "fading": 0.9, "outage": 1_500_000}
    ),
    "starlink": Trace(model="starlink", options={"seed": 3, "rate": 20_000_000}),
    "wifi-cafe": Trace(model="wifi", options={"seed": 2, "rate": 65_000_000, "stations": 4}),
}
"""Traces that come with ccplay, by name: models of ours with a seed, so that each is its own
origin."""


# --- how a trace is written and read --------------------------------------------------------------


def read_trace(value: Any) -> Trace:
    """Return the trace of a value of TOML. Raises ``ValueError`` with a suggestion."""
    if isinstance(value, str):
        return parse_trace(value)
    if not isinstance(value, dict):
        raise MisfitError(f"must be {_WHAT}, not {quote(value)}")
    if "kind" in value:
        return _model(value)
    if unknown := next((each for each in value if each not in ("rate", "delay", "loop")), None):
        known = ("rate", "delay", "loop", "kind")
        raise MisfitError(f"unknown key {quote(unknown)}{did_you_mean(unknown, known)}")
    if "rate" not in value and "delay" not in value:
        raise MisfitError("names no file: rate, delay or both")
    loop = value.get("loop", True)
    if not isinstance(loop, bool):
        raise MisfitError(f"loop must be true or false, not {quote(loop)}")
    files = {key: _file(value[key]) for key in ("rate", "delay") if key in value}
    return Trace(rate=files.get("rate", ""), delay=files.get("delay", ""), loop=loop)


def parse_trace(text: str) -> Trace:
    """Return the trace that a person has typed: a name, a file, or a model with parameters."""
    words = text.split()
    if not words or (len(words) == 1 and words[0].lower() == OFF):
        return Trace()
    if text in SHIPPED:
        return Trace(name=text)
    if words[0] in MODELS:
        rest = text[len(words[0]) :].split(",") if "," in text else _pairs(words[1:])
        pairs = [each.split(None, 1) for each in rest if each.strip()]
        if any(len(each) != 2 for each in pairs):
            raise MisfitError(f"write {words[0]} and pairs, such as {words[0]} seed 3")
        return _model({"kind": words[0]} | {key: value.strip() for key, value in pairs})
    if _is_file(text):
        return Trace(rate=_file(text))
    raise MisfitError(f"unknown trace {quote(text)}{did_you_mean(text, (OFF, *SHIPPED, *MODELS))}")


def _pairs(words: list[str]) -> list[str]:
    """Return ``seed 3 rate 5 Mbit/s`` as its pairs: a value ends where the next name begins."""
    found: list[str] = []
    for word in words:
        if word.isidentifier() and any(word in each.parameters for each in MODELS.values()):
            found.append(word)
        elif found:
            found[-1] += f" {word}"
        else:
            raise MisfitError(f"{quote(word)} is no parameter of a model")
    return found


def _is_file(text: str) -> bool:
    return "." in text and " " not in text.partition(".")[2]


def _file(value: Any) -> str:
    if not isinstance(value, str) or not _FILE.fullmatch(value):
        raise MisfitError(f"must be a file beside the scenario, such as my.up, not {quote(value)}")
    return value


def _model(table: Mapping[str, Any]) -> Trace:
    kind = MODELS.get(table["kind"]) if isinstance(table["kind"], str) else None
    if kind is None:
        known = did_you_mean(str(table["kind"]), MODELS)
        raise MisfitError(f"unknown model {quote(table['kind'])}{known}")
    options: dict[str, Number] = {}
    for key, value in table.items():
        if key == "kind":
            continue
        field = kind.parameters.get(key)
        if field is None:
            meant = did_you_mean(key, kind.parameters)
            raise MisfitError(f"{kind.name} has no parameter {quote(key)}{meant}")
        try:
            typed = isinstance(value, str)
            options[key] = field.parse(value) if typed else field.read(value)
        except ValueError as error:
            raise MisfitError(f"{key} {error}") from None
    return Trace(model=kind.name, options=options)


def check_trace(trace: Trace) -> Trace:
    """Return a trace of a command, whose parameters are within bounds. Raises ``ValueError``."""
    if trace.name and trace.name not in SHIPPED:
        raise MisfitError(f"unknown trace {quote(trace.name)}{did_you_mean(trace.name, SHIPPED)}")
    if trace.model:
        kind = MODELS.get(trace.model)
        if kind is None:
            meant = did_you_mean(trace.model, MODELS)
            raise MisfitError(f"unknown model {quote(trace.model)}{meant}")
        for name, value in trace.options.items():
            if name not in kind.parameters:
                raise MisfitError(f"{trace.model} has no parameter {quote(name)}")
            kind.parameters[name].check(value)
    return trace


def with_defaults(trace: Trace) -> Trace:
    """Return a model with all its parameters; of a shipped trace, the model behind it."""
    trace = SHIPPED.get(trace.name, trace)
    if not trace.model:
        return trace
    defaults = {name: each.default for name, each in MODELS[trace.model].parameters.items()}
    return replace(trace, options=defaults | trace.options)


def show_trace(trace: Trace) -> str:
    """Return a trace as text that ``parse_trace`` understands: ``starlink seed 3``."""
    if trace.model:
        kind = MODELS.get(trace.model)
        shown = (
            f" {name} {value if kind is None else kind.parameters[name].show(value)}"
            for name, value in trace.options.items()
            if kind is None or name in kind.parameters
        )
        return trace.model + "".join(shown)
    return trace.name or " and ".join(filter(None, (trace.rate, trace.delay))) or OFF


def write_trace(trace: Trace) -> Plain:
    """Return a trace for a scenario file, from which ``read_trace`` restores it."""
    if trace.model:
        known = MODELS[trace.model].parameters
        return {"kind": trace.model} | {
            name: known[name].write(known[name].quantity.type(value))
            for name, value in trace.options.items()
            if name in known
        }
    if trace.rate or trace.delay:
        files = {key: each for key, each in (("rate", trace.rate), ("delay", trace.delay)) if each}
        return {**files, **({} if trace.loop else {"loop": False})}
    return trace.name or OFF


def _held(shape: Shape) -> Shape:
    return {"type": "object", "additionalProperties": False, **shape}


def _shapes() -> list[Shape]:
    files: dict[str, Shape] = {
        "rate": {"type": "string", "description": "File of departures, or of rates over time"},
        "delay": {"type": "string", "description": "File with a one-way delay in ms every 10 ms"},
        "loop": {"type": "boolean", "description": "Whether it repeats (default true)"},
    }
    return [
        {"type": "string", "examples": [*SHIPPED, OFF]},
        _held({"properties": files, "minProperties": 1}),
        *(
            _held(
                {
                    "properties": {
                        "kind": {"const": kind.name, "description": kind.summary},
                        **{
                            name: {"description": each.meaning, **each.shape}
                            for name, each in kind.parameters.items()
                        },
                    },
                    "required": ["kind"],
                }
            )
            for kind in MODELS.values()
        ),
    ]


_WHAT = 'a trace, such as "lte-driving", "mine.csv" or { kind = "starlink", seed = 3 }'

TRACE = Quantity(
    "trace",
    _WHAT,
    Trace,
    read_trace,
    parse_trace,
    {"anyOf": _shapes()},
    show=show_trace,
    write=write_trace,
)
"""Trace or model that moves a link."""
