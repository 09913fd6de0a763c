"""Reading a scenario file: from TOML to cases, refused as a whole where anything is wrong."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from ccplay.errors import ScenarioError
from ccplay.scenario import quantities
from ccplay.scenario.evidence import read_expect, read_figures, read_published
from ccplay.scenario.mistakes import Mistakes, quote
from ccplay.scenario.network import read_build
from ccplay.scenario.repeats import MOST_REPEATS, flow_of
from ccplay.scenario.rules import check_timeline
from ccplay.scenario.timeline import read_timeline
from ccplay.scenario.tree import Node, Reader, grow, overlay
from ccplay.scenario.values import Case, Scenario

LARGEST_FILE = 1_000_000
MOST_CASES = 1000
ENDS = ("duration", "all", "first")
"""What can end a case."""

_CASE_KEYS = (
    *("about", "duration", "until", "repeats", "jitter", "balanced", "sampling", "seed"),
    *("topology", "links", "hosts", "timeline", "figures", "expect", "published"),
)
_KEYS = ("title", *_CASE_KEYS, "case")
_LINE_AND_COLUMN = re.compile(r" \(at line (\d+), column (\d+)\)$")


def load(path: Path) -> Scenario:
    """Read a scenario file.

    Raises ``ScenarioError`` with every mistake in it: file, line, place and what was meant.
    """
    return parse(_read(path), path)


def parse(text: str, path: Path) -> Scenario:
    """Read the text of a scenario file; ``path`` names it. Raises ``ScenarioError``."""
    text = text.replace("\r\n", "\n")
    try:
        root = grow(_toml(text, path))
        mistakes = Mistakes(path.name, text)
        scenario = _scenario(root, path, Reader(mistakes))
        mistakes.raise_any()
    except RecursionError:
        raise ScenarioError(f"{path.name}:1: tables or lists are nested too deeply") from None
    return scenario


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ScenarioError(f"can't read scenario {quote(str(path))}: {reason}") from None
    if len(content) > LARGEST_FILE:
        raise ScenarioError(f"{path}: larger than {LARGEST_FILE:,} bytes: that is no scenario")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ScenarioError(
            f"{path.name}:{line}: not UTF-8 text (byte 0x{content[error.start]:02x})"
        ) from None


def _toml(text: str, path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        if match := _LINE_AND_COLUMN.search(message):
            reason = message[: match.start()]
            where = f"{match[1]}: column {match[2]}"
        else:
            reason = message.removesuffix(" (at end of document)")
            where = f"{text.count(chr(10)) + 1}: end of file"
        raise ScenarioError(f"{path.name}:{where}: not TOML: {reason}") from None
    except ValueError as error:
        # Python itself refuses numbers of thousands of digits, and dates such as 30 February.
        raise ScenarioError(f"{path.name}:1: not TOML: {error}") from None


def _scenario(root: Node, path: Path, reader: Reader) -> Scenario:
    table = reader.table(root, _KEYS)
    title = reader.value(table.get("title"), quantities.text, path.stem)
    about = reader.value(table.get("about"), quantities.prose, "")
    common = Node((), {key: node for key, node in table.items() if key in _CASE_KEYS})
    overrides = reader.members(table.get("case"))
    if not overrides:
        if "case" in table:
            reader.mistakes.add(("case",), "an empty list: leave it out, or write [[case]] tables")
        return Scenario(path, title, about, (_case(common, title, title, reader),))
    if len(overrides) > MOST_CASES:
        reader.mistakes.add(("case",), f"more than {MOST_CASES} cases")
        overrides = []
    return Scenario(path, title, about, tuple(_cases(common, overrides, title, reader)))


def _cases(common: Node, overrides: list[Node], title: str, reader: Reader) -> list[Case]:
    cases: list[Case] = []
    for node in overrides:
        own = reader.table(node, ("name", *_CASE_KEYS))
        if "name" not in own:
            reader.mistakes.add(node.place, "name is missing: what this case is called")
        name = reader.value(own.pop("name", None), quantities.text, "")
        if name and name in [case.name for case in cases]:
            reader.mistakes.add((*node.place, "name"), f"another case is called {quote(name)}")
        merged = overlay(common, Node(node.place, own))
        cases.append(_case(merged, name, f"{title}: {name}", reader))
    return cases


def _case(node: Node, name: str, title: str, reader: Reader) -> Case:
    table = reader.table(node)
    if "duration" not in table:
        text = 'duration is missing: how long it runs at the most, such as "60 s"'
        reader.mistakes.add(node.place, text)
    duration_s = reader.value(
        table.get("duration"), quantities.duration, 1.0 * quantities.LONGEST_S
    )
    until = reader.value(table.get("until"), quantities.choice("end", ENDS), "duration")
    build, names = read_build(table, reader)
    drafts = read_timeline(table.get("timeline"), duration_s, reader)
    case = Case(
        name=name,
        title=title,
        about=reader.value(table.get("about"), quantities.prose, ""),
        build=build,
        timeline=check_timeline(drafts, names, reader.mistakes),
        duration_s=duration_s,
        until=until,
        repeats=reader.value(table.get("repeats"), quantities.whole(1, MOST_REPEATS), 1),
        jitter_s=reader.value(table.get("jitter"), quantities.seconds, 0.0),
        balanced=reader.value(table.get("balanced"), quantities.flag, default=False),
        figures=read_figures(table.get("figures"), reader),
        expect=read_expect(table.get("expect"), reader),
        published=read_published(table.get("published"), reader),
    )
    latest = max((step.at_s for step in case.timeline if flow_of(step)), default=None)
    if "jitter" in table and latest is not None and latest + case.jitter_s > duration_s:
        text = f"a flow's step at {latest:g} s could come after the end, {duration_s:g} s"
        reader.mistakes.add(table["jitter"].place, text)
    if until == "first" and not case.sizes and not reader.mistakes.count:
        text = '"first" needs a start-flow with bytes: no other transfer has a fixed size'
        reader.mistakes.add((*node.place, "until"), text)
    return case
