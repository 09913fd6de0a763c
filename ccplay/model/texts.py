"""Quantities that are text: names, algorithms, lines of text, and choices among words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from ccplay.assets import algorithms
from ccplay.model.quantities import (
    SHARE,
    MisfitError,
    Plain,
    Quantity,
    Shape,
    did_you_mean,
    quote,
    same,
)
from ccplay.units import PATTERNS

CONGESTION_CONTROLS = (
    *("reno", "cubic", "bbr", "bic", "cdg", "dctcp", "highspeed", "htcp", "hybla", "illinois"),
    *("lp", "nv", "scalable", "vegas", "veno", "westwood", "yeah"),
    *algorithms(),
)
"""Congestion controls of Linux, net/ipv4/tcp_*.c, and those shipped as BPF programs.

A lab reports which of them its kernel has."""

custom_algorithms: set[str] = set()
"""Congestion controls of the user, named on the command line."""

NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,15}"
"""Pattern of the names of traffic, hosts and classes in a scenario."""

_LONGEST_LINE = 200
_NAME = re.compile(NAME_PATTERN)


def worded(
    name: str,
    what: str,
    read: Callable[[Any], str],
    shape: Shape,
    write: Callable[[Any], Plain] = same,
) -> Quantity:
    """Return a quantity of text; ``read`` reads both values from files and typed text."""
    return Quantity(name, what, str, read, read, shape, write=write)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise MisfitError(f'must be text in quotes, such as "{quote(value)}"')
    return value


def _line(value: Any) -> str:
    text = _text(value)
    if not text.strip() or len(text) > _LONGEST_LINE or not text.isprintable():
        raise MisfitError(f"must be one line of text, at most {_LONGEST_LINE} characters")
    return text


def write_line(text: str) -> str:
    """Return a line of text, cut to the largest length that a scenario allows."""
    return text if len(text) <= _LONGEST_LINE else text[: _LONGEST_LINE - 1] + "…"


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise MisfitError(f'a name is text in quotes, such as "{quote(value)}"')
    if not _NAME.fullmatch(value):
        raise MisfitError(
            f"{quote(value)} is not a name: up to 16 letters, digits, dots, dashes and underscores"
        )
    return value


def choice(what: str, known: Iterable[str]) -> Quantity:
    """Return a quantity with one of these words as its value; ``what`` names it in messages."""
    words = tuple(known)

    def read(value: Any) -> str:
        if value not in words or not isinstance(value, str):
            raise MisfitError(f"unknown {what} {quote(value)}{did_you_mean(str(value), words)}")
        return value

    return worded("", f"one of {', '.join(words)}", read, {"enum": list(words)})


def _shares(value: Any) -> list[float]:
    words = re.findall(r"[^\s%]+\s*%?", value) if isinstance(value, str) else value
    if isinstance(value, str) and value.strip().lower() == "none":
        words = []
    if not isinstance(words, list) or len(words) > len(_GE_DEFAULTS):
        raise MisfitError(f"must be {GEMODEL.what}, not {quote(value)}")
    known = [SHARE.read(word.strip() if isinstance(word, str) else word) for word in words]
    if not known:
        return []
    # Defaults of tc-netem(8): r = 1 - p; the bad state loses all packets, the good state none.
    return [*known, *([1 - known[0], *_GE_DEFAULTS[2:]][len(known) - 1 :])]


_GE_DEFAULTS = (0.0, 0.0, 1.0, 0.0)

GEMODEL = Quantity(
    "gemodel",
    'up to four shares, p r 1-h 1-k, such as "1 % 25 % 100 % 0 %"',
    list,
    _shares,
    _shares,
    {
        "type": "string",
        "pattern": rf"^(\s*({PATTERNS['share']})){{1,4}}\s*$|^\s*[Nn][Oo][Nn][Ee]\s*$",
    },
    show=lambda shares: " ".join(map(SHARE.show, shares)) or "none",
    write=lambda shares: " ".join(str(SHARE.write(each)) for each in shares) or "none",
)
"""Gilbert-Elliott model: the probabilities of entering and of leaving the bad state, and of loss in
the bad and in the good state."""


def numbers(count: int, most: int) -> Quantity:
    """Return a quantity of ``count`` whole numbers up to ``most``, separated by spaces."""
    what = f'{count} numbers from 0 to {most}, such as "{" ".join("1" * count)}"'

    def read(value: Any) -> str:
        words = value.split() if isinstance(value, str) else []
        if len(words) != count or not all(w.isdecimal() and int(w) <= most for w in words):
            raise MisfitError(f"must be {what}, not {quote(value)}")
        return " ".join(words)

    return worded("", what, read, {"type": "string"})


def _congestion_control(value: Any) -> str:
    if isinstance(value, str) and value in custom_algorithms:
        return value
    try:
        return str(_KNOWN_ALGORITHM.read(value))
    except ValueError as error:
        meant = str(error).endswith("?")
        if meant or not isinstance(value, str) or not _NAME.fullmatch(value):
            raise
        raise MisfitError(f"{error}; if it is your own, add --algorithm {value}.bpf.c") from None


_KNOWN_ALGORITHM = choice("congestion control", CONGESTION_CONTROLS)

LINE = worded(
    *("line", "a line of text", _line),
    {"type": "string", "minLength": 1, "maxLength": _LONGEST_LINE},
    write_line,
)
PROSE = worded("prose", "text", lambda value: _text(value).strip(), {"type": "string"})
"""Text of any number of lines."""
NAME = worded("name", "a name", _name, {"type": "string", "pattern": f"^{NAME_PATTERN}$"})

_METRIC_PATTERN = r"[a-z][a-z0-9_]*(\.[A-Za-z0-9_.:/> -]*[A-Za-z0-9_])?"


def _metric(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 100 or not re.fullmatch(_METRIC_PATTERN, value):
        raise MisfitError(
            f'{quote(value)} is not a metric: give its path in the result: "flows.1.goodput_bps"'
        )
    return value


METRIC = worded(
    *("metric", "a metric", _metric),
    {"type": "string", "maxLength": 100, "pattern": f"^{_METRIC_PATTERN}$"},
)
"""A metric's path in a result: ``flows.1.goodput_bps``, ``queues.r->h2 bulk.drops``. Whether runs
measure it is not checked."""

_MOST_NODES = 16


def _names(value: Any) -> list[str]:
    if not isinstance(value, list) or len(value) > _MOST_NODES:
        raise MisfitError(f'must be a list of names such as ["spine1"], not {quote(value)}')
    return [_name(each) for each in value]


NAMES = Quantity(
    "",
    'a list of names such as ["spine1"]',
    list,
    _names,
    lambda text: _names([each for each in re.split(r"[,\s]+", text) if each]),
    {"type": "array", "items": {"$ref": "#/$defs/name"}, "maxItems": _MOST_NODES},
    show=" ".join,
    write=list,
)
"""A few names, typed with spaces or commas between them."""
ALGORITHM = worded(
    "algorithm", "a congestion control", _congestion_control, {"enum": list(CONGESTION_CONTROLS)}
)
"""Name of an algorithm: Linux's, one shipped as a BPF program, or the user's own."""
