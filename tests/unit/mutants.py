"""Mutants: real recordings and results, changed at random as a careless or hostile hand would."""

import copy
import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ccplay.stream.sources import recorded_events
from tests.events import PLAYGROUND, recorded

_VALUES: tuple[Any, ...] = (
    *(None, True, False, "", "x", "\u001b[2J", "h1/2", "r1->r2", [], {}, [0], {"0": 1}, [[]]),
    *(0, 1, 3, 4, 5, 7, -1, -7, 128, 1000, 1 << 31, 1 << 53, (1 << 53) + 1, -(1 << 53)),
    *(1 << 64, -(10**30)),
    *(0.5, -0.5, 1e-9, 1e6, 1e9, 1e10, 1e15, 1e300, -1e300),
)


@cache
def real_lines() -> tuple[bytes, ...]:
    """Return the lines of a real lab's recording in today's format, all kinds among them."""
    with TemporaryDirectory() as folder:
        path = recorded(Path(folder) / "x.ccplay", recorded_events(PLAYGROUND))
        return tuple(path.read_bytes().splitlines(keepends=True))


def mutants(count: int, seed: int) -> Iterator[bytes]:
    """Yield ``count`` recordings, the same ones for the same ``seed``."""
    dice = random.Random(seed)
    changes = (_value, _value, _value, _number, _number, _bytes, _lines, _times)
    for _ in range(count):
        lines = list(real_lines())
        for _ in range(dice.choice((1, 1, 1, 2, 5))):
            dice.choice(changes)(lines, dice)
        yield b"".join(lines)


def changed(value: Any, dice: random.Random) -> Any:
    """Return a decoded file in which some places have another value, mostly of the same type."""
    value = copy.deepcopy(value)
    for _ in range(dice.choice((1, 1, 2, 5))):
        *way, name = dice.choice([each for each in _places(value) if each])
        holder = _at(value, way)
        other = dice.choice(_VALUES) if dice.random() < 0.2 else _of_its_type(holder[name], dice)
        holder[name] = copy.deepcopy(other)
    return value


def _of_its_type(value: Any, dice: random.Random) -> Any:
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return dice.choice((0, -1, value + 1, -value, 1 << 53, 1 << 62, -(1 << 63)))
    if isinstance(value, float):
        return dice.choice((0.0, -value, value * 1e9, 1e99, -1e99, 1e-300, 1e308, None))
    if isinstance(value, str):
        return dice.choice(_TEXTS)
    if isinstance(value, list):
        return value * dice.choice((0, 2, 50))
    return value | {f"k{number}": each for number, each in enumerate(value.values())}


_TEXTS = (
    *("", "x", "\u009b2J", "../../../etc/passwd", "a" * 5000, "[/red]", "...", "<b>"),
    "\U0001f600",
)


def _value(lines: list[bytes], dice: random.Random) -> None:
    """Put something else in any place of a line, or leave the place out."""
    at = _line(lines, dice)
    record = _decoded(lines[at])
    if not isinstance(record, dict):
        return
    *way, name = dice.choice([each for each in _places(record) if each])
    holder: Any = record
    for step in way:
        holder = holder[step]
    if dice.random() < 0.1:
        del holder[name]
    else:
        holder[name] = copy.deepcopy(dice.choice(_VALUES))
    lines[at] = json.dumps(record).encode() + b"\n"


def _number(lines: list[bytes], dice: random.Random) -> None:
    """Put another number in the place of any number, wherever most of them are."""
    at = _line(lines, dice)
    record = _decoded(lines[at])
    places = [each for each in _places(record) if isinstance(_at(record, each), int | float)]
    if not places or not isinstance(record, dict):
        return
    *way, name = dice.choice(places)
    before = _at(record, (*way, name))
    after = dice.choice((-before, before + 1, before - 1, before * 10**8, 7, -7, 1 << 53))
    _at(record, way)[name] = after
    lines[at] = json.dumps(record).encode() + b"\n"


def _bytes(lines: list[bytes], dice: random.Random) -> None:
    """Change, add or remove some bytes."""
    at = _line(lines, dice)
    line = bytearray(lines[at])
    place = dice.randrange(len(line))
    cut = dice.randrange(3)
    line[place : place + cut] = dice.choice((b"", b"0", b"9", b"-", b"[", b'"', b"\\", b"\xff"))
    lines[at] = bytes(line)


def _lines(lines: list[bytes], dice: random.Random) -> None:
    """Leave a line out, say it again, or move it."""
    line = lines.pop(dice.randrange(1, len(lines)))
    for _ in range(dice.choice((0, 1, 2))):
        lines.insert(dice.randrange(1, len(lines)), line)


def _times(lines: list[bytes], dice: random.Random) -> None:
    """Stretch or squeeze time."""
    factor = dice.choice((1e-3, 10.0, 1e4, 1e7))
    for at, line in enumerate(lines):
        record = _decoded(line)
        if isinstance(record, dict) and isinstance(t := record.get("t"), int | float):
            record["t"] = t * factor
            if isinstance(gaps := record.get("after_us"), list):
                record["after_us"] = [round(us * factor) if us else us for us in gaps]
            lines[at] = json.dumps(record).encode() + b"\n"


def _line(lines: list[bytes], dice: random.Random) -> int:
    """Choose a line: each kind as often as any other."""
    kinds: dict[bytes, list[int]] = {}
    for at, line in enumerate(lines):
        kinds.setdefault(line[:24], []).append(at)
    return dice.choice(kinds[dice.choice(list(kinds))])


def _decoded(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _places(value: object, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield way
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _places(each, (*way, key))
    elif isinstance(value, list):
        for at, each in enumerate(value[:12]):
            yield from _places(each, (*way, at))


def _at(value: Any, way: tuple[Any, ...] | list[Any]) -> Any:
    for step in way:
        value = value[step]
    return value
