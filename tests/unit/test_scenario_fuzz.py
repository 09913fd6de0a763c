"""Any scenario file is read, or refused with a place; no other error occurs."""

import re
import tomllib
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import tomlkit
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ccplay.errors import ScenarioError
from ccplay.scenario.library import shipped
from ccplay.scenario.matrix import repeated
from ccplay.scenario.reading import parse
from ccplay.scenario.schema import schema
from ccplay.scenario.values import Scenario
from ccplay.stream import wire

PATH = Path("t.toml")
SHIPPED = [path.read_text() for path in shipped().values()]
SCHEMA = schema()
VALIDATOR = Draft202012Validator(SCHEMA)
unhurried = limits(limits.default, deadline=None)
"""Settings without a deadline per example, which a busy machine would miss."""
TOLD = re.compile(r"t\.toml:(\d+: | --set | \d+ mistakes$| … and \d+ more$)")
"""Beginning of each line of a refusal; its whole last line if that counts the mistakes."""


def fate(text: str, settings: list[str] | None = None) -> Scenario | None:
    """Return the scenario of a file, or None if it is refused with a place in every line."""
    try:
        scenario = parse(text, PATH, settings or [])
    except ScenarioError as error:
        for line in str(error).splitlines():
            assert TOLD.match(line), line
            assert line.isprintable()
        return None
    for case in scenario.cases:
        for each in (case, repeated(case, 1), repeated(case, 2)):
            for command in (each.build, *(step.command for step in each.timeline)):
                assert wire.decode_command(wire.encode(command)) == command
    tree = tomllib.loads(text.replace("\r\n", "\n"))
    if not settings and not {"case", "matrix"} & tree.keys():
        # A case or a matrix may replace a wrong value, so that it is never read.
        assert [error.message for error in VALIDATOR.iter_errors(tree)] == []
    return scenario


# --- files made of the right words ----------------------------------------------------------

NAMES = ("1", "2", "w1", "p1", "c1", "a")
PLACES = ("bottleneck", "r-h2", "r->h2", "h1-r", "h1", "h2")
PATHS = (
    *("seed", "duration", "until", "repeats", "jitter", "topology", "topology.kind", "timeline"),
    *("timeline.0", "timeline.0.cc", "timeline[1].at", "links.bottleneck.queue.limit", "links"),
    *("links.bottleneck.rate", 'links."r->h2".delay', "links.bottleneck.queue", "hosts.h1.cc"),
    *("matrix", "matrix.a", "matrix.a.values", "case", "case.0.name", "title", "expect.0.value"),
)
WORDS = {
    **dict.fromkeys(("flow", "download", "ping", "capture", "after", "class"), NAMES),
    **dict.fromkeys(("src", "dst", "host"), ("h1", "h2", "r")),
    "link": ("bottleneck", "h1-r", "r->h2"),
    "at": ("0 s", "1 s", "2 s"),
    "delay": ("0 ms", "20 ms"),
    "jitter": ("0 ms", "1 ms"),
    "why": ("physics",),
    "tolerance": ("5 %", 1),
    "path": PATHS,
}
"""Values by key that are valid more often than what the schema allows."""
METRICS = ("jain", "checkpoint.ratio", "flows.1.goodput_bps", "queues.r->h2.drops")
AXES: dict[str, Any] = {
    "delay": {"path": 'links."r->h2".delay', "values": ["1 ms", "20 ms"]},
    "topology": {"path": "topology", "values": [{"kind": "linear"}, {}], "names": ["a", "b"]},
    "seed": [1, 2, 3],
    "repeats": [2],
    "about": ["some", "other"],
}
OFTEN = {"timeline": 0.7, "matrix": 0.4, "links": 0.4, "at": 1.0, "case": 0.3, "values": 0.9}
"""Probability by key that a table has it; other keys have a probability of 0.2."""
Chance: TypeAlias = Callable[..., bool]
"""Draws true with the given probability, or with that of an oddity in this file."""
WRITTEN = (
    *("inf", "-nan", "0x1F", "1_000", "true", "[]", "{}", '"10 ms"', '"-1 s"', "[[1]]", '"é\\n"'),
    *("{ a.b = [{}] }", "1979-05-27 07:32:00", "'''x\n'''", '"""\n[[case]]"""', "[ # no\n1,\n]"),
)
JUNK: st.SearchStrategy[Any] = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["10 ms", "-1 s", "5 Mbit/s", "pfifo", "1", "9" * 50 + " s", "\x1b[31m", ""]),
    st.sampled_from([datetime(1979, 5, 27, tzinfo=UTC), datetime(1979, 5, 27, tzinfo=UTC).date()]),
    st.just([]),
    st.just({}),
    st.just([{}]),
    st.just([[1]]),
)


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a file of the schema's keys and values, with some that the schema does not allow."""
    # Hypothesis prefers edge cases, which would be too many oddities for one file.
    chance = Random(draw(st.integers(0, 2**32)))
    oddness = chance.choice((0.0, 0.0, 0.01, 0.1))
    tree = _make(draw, SCHEMA, lambda likely=oddness: chance.random() < likely)
    usual = {"title": "T", "duration": "60 s", "topology": {"kind": "linear"}}
    return (tree if isinstance(tree, dict) else {}) | (usual if chance.random() < 0.9 else {})


def _make(draw: st.DrawFn, part: dict[str, Any], by_chance: Chance) -> Any:
    """Return a random value that a part of the schema describes."""
    if by_chance():
        return draw(JUNK)
    if "$ref" in part:
        return _make(draw, SCHEMA["$defs"][part["$ref"].removeprefix("#/$defs/")], by_chance)
    if "const" in part:
        return part["const"]
    if choices := part.get("enum") or part.get("examples"):
        return draw(st.sampled_from(choices))
    if part.get("type") == "object":
        return _make_table(draw, part, by_chance)
    if "anyOf" in part:
        return _make(draw, draw(st.sampled_from(part["anyOf"])), by_chance)
    kind = part["type"] if isinstance(part["type"], str) else draw(st.sampled_from(part["type"]))
    if kind == "array":
        size = draw(st.integers(part.get("minItems", 0), 2))
        return [
            _make(draw, part.get("items", SCHEMA["$defs"]["count"]), by_chance) for _ in range(size)
        ]
    if kind == "string":
        words = {"metric": METRICS, "name": NAMES}
        known = next((words[name] for name in words if SCHEMA["$defs"][name] == part), PATHS)
        if "pattern" in part and known is PATHS:
            return draw(st.from_regex(part["pattern"].replace("$", r"\Z"), fullmatch=True))
        return draw(st.sampled_from(known))
    low, high = part.get("minimum", 0), part.get("maximum", 1000)
    numbers: dict[str, st.SearchStrategy[Any]] = {
        "boolean": st.booleans(),
        "integer": st.integers(low, min(high, low + 200)),
        "number": st.integers(low, high) | st.floats(low, high),
    }
    return draw(numbers[kind])


def _make_table(draw: st.DrawFn, part: dict[str, Any], by_chance: Chance) -> dict[str, Any]:
    wanted = set(part.get("required", ()))
    rules = [part, *part.get("allOf", ())]
    for rule in [rule[word] for rule in rules for word in ("anyOf", "oneOf") if word in rule]:
        wanted |= set(draw(st.sampled_from(rule)).get("required", ()))
    keys = part.get("properties", {})
    chosen = [key for key in keys if key in wanted or by_chance(OFTEN.get(key, 0.2))]
    table = {
        key: draw(st.sampled_from(WORDS[key]))
        if key in WORDS
        else _make(draw, keys[key], by_chance)
        for key in chosen
    }
    for pattern, each in part.get("patternProperties", {}).items():
        fitting = [place for place in PLACES if re.search(pattern, place)]
        for key in draw(st.lists(st.sampled_from(fitting), max_size=3, unique=True)):
            table[key] = _make(draw, each, by_chance)
    if isinstance(each := part.get("additionalProperties"), dict):
        table |= {key: deepcopy(axis) for key, axis in AXES.items() if by_chance(0.3)}
        if by_chance(0.3):
            table[draw(st.sampled_from(PATHS))] = _make(draw, each, by_chance)
    if by_chance():
        table[draw(st.text(max_size=5))] = draw(JUNK)
    return table


settings = st.lists(
    st.builds(
        "{}={}".format,
        st.sampled_from(PATHS) | st.text(max_size=8),
        JUNK.map(str) | st.sampled_from(["bbr", "[1, 2]", "{ kind = 'codel' }", "'", "[", "3 s"]),
    )
    | st.text(max_size=12),
    max_size=3,
)


def test_files_of_the_right_words_load_or_are_refused() -> None:
    """Random files load or are refused; at least five load, or the test would show little."""
    fates: list[Scenario | None] = []

    @unhurried
    @given(tree=trees())
    def read(tree: dict[str, Any]) -> None:
        fates.append(fate(tomlkit.dumps(tree)))

    read()
    assert sum(each is not None for each in fates) >= 5


@unhurried
@given(text=st.sampled_from(SHIPPED), settings=settings)
def test_anything_set_over_a_file_loads_or_is_refused(text: str, settings: list[str]) -> None:
    fate(text, settings)


# --- files that were right ------------------------------------------------------------------


@unhurried
@given(text=st.sampled_from(SHIPPED), data=st.data())
def test_a_file_with_another_value_somewhere_loads_or_is_refused(
    text: str, data: st.DataObject
) -> None:
    """A shipped file with values changed, removed or moved loads or is refused."""
    tree = tomllib.loads(text)
    for _ in range(data.draw(st.integers(1, 3))):
        tree.setdefault("title", "T")
        places = list(_places(tree))
        holder, key = places[data.draw(st.integers(0, len(places) - 1))]
        match data.draw(st.sampled_from(["change", "drop", "move"])):
            case "change":
                holder[key] = deepcopy(data.draw(JUNK))
            case "drop" if isinstance(holder, dict):
                holder.pop(key, None)
            case "move":
                other, place = places[data.draw(st.integers(0, len(places) - 1))]
                holder[key] = deepcopy(other[place])
    fate(tomlkit.dumps(tree))


def _places(value: Any) -> Any:
    """Yield every table or list with each of its keys."""
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in list(keys):
        yield value, key
        yield from _places(value[key])


@unhurried
@given(
    text=st.sampled_from(SHIPPED),
    cut=st.tuples(st.floats(0, 1), st.floats(0, 0.1)),
    patch=st.text(max_size=20) | st.sampled_from(['"', "'''", "[", "]", "{", "=", "\n[[case]]\n"]),
)
def test_a_mangled_file_loads_or_is_refused(
    text: str, cut: tuple[float, float], patch: str
) -> None:
    start = int(cut[0] * len(text))
    end = start + int(cut[1] * len(text))
    fate(text[:start] + patch + text[end:])


@unhurried
@given(text=st.sampled_from(SHIPPED), which=st.integers(0, 200), value=st.sampled_from(WRITTEN))
def test_anything_written_anywhere_loads_or_is_refused(text: str, which: int, value: str) -> None:
    """A shipped file with one right-hand side replaced loads or is refused."""
    parts = text.split(" = ")
    at = 1 + which % (len(parts) - 1)
    rest = parts[at]
    end = min((rest.find(mark) for mark in (",", " }", "\n") if mark in rest), default=len(rest))
    parts[at] = value + rest[end:]
    fate(" = ".join(parts))


# --- files of anything ----------------------------------------------------------------------

tokens = st.sampled_from(
    [*'[]{}=.,"\n #', "'''", "[[case]]\n", "[matrix]\n", "timeline", "links", "a", "at", "do", "1"]
)


@unhurried
@given(text=st.text() | st.lists(tokens, max_size=30).map("".join), settings=settings)
def test_any_text_loads_or_is_refused(text: str, settings: list[str]) -> None:
    fate(text, settings)
