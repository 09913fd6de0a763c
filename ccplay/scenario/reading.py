"""Reads a scenario file into cases; any mistake refuses the whole file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ccplay.errors import ScenarioError
from ccplay.files.reading import open_regular
from ccplay.model.quantities import Field, quote
from ccplay.model.settings import DAY_S
from ccplay.model.texts import LINE, PROSE
from ccplay.model.topologies import plan
from ccplay.scenario import document
from ccplay.scenario.document import LARGEST_FILE, Mistakes
from ccplay.scenario.evidence import (
    CRITERION,
    EXPECT,
    METRICS,
    PUBLISHED,
    read_criterion,
    read_expect,
    read_metrics,
    read_published,
)
from ccplay.scenario.keys import BUILD, HOSTS, LINKS, TOPOLOGY, read_build
from ccplay.scenario.lesson import LESSON, read_lesson
from ccplay.scenario.matrix import AXIS, Point, check_settings, flow_of, points, read_matrix, size
from ccplay.scenario.parts import Items, Named, TomlTable, keys_of
from ccplay.scenario.timeline import (
    MOST_STEPS,
    STEP,
    check_classes,
    check_overruled,
    check_timeline,
    read_timeline,
)
from ccplay.scenario.tree import (
    GivenSetting,
    Placed,
    Reader,
    apply_settings,
    locate,
    overlay,
    read_settings,
    use_todays_keys,
)
from ccplay.scenario.values import Case, Scenario
from ccplay.visible import printable

# --- the cases of a file: its common part merged with a case, the settings and the matrix ---------

MOST_CASES = 1000

VALUES = keys_of(Case)
"""Single values of a case, apart from those of its network."""
TABLES = {
    "topology": TOPOLOGY,
    "links": LINKS,
    "hosts": HOSTS,
    "timeline": Items(of=STEP, most=MOST_STEPS, meaning="The steps, each with its moment"),
    "metrics": METRICS,
    "expect": EXPECT,
    "published": PUBLISHED,
}
CASE_KEYS = VALUES | BUILD | TABLES
"""Keys of a case, in the common part of a file or in a ``[[case]]``."""
_MATRIX = {
    "matrix": Named(
        of=AXIS,
        meaning="Every case is run at every point: NAME = { path = …, values = […] } or "
        '"PATH" = […]',
    )
}
OWN_KEYS = {"name": Field(LINE, "Name of this case", required=True), **CASE_KEYS, **_MATRIX}
"""Keys that a ``[[case]]`` may have."""
FILE_KEYS = {
    "title": Field(LINE, "One line, for people"),
    **CASE_KEYS,
    **_MATRIX,
    "case": Items(
        of=TomlTable(keys=OWN_KEYS),
        words={"minItems": 1, "maxItems": MOST_CASES},
        meaning="Cases, each run in its own lab; each has only the keys that differ from the rest",
    ),
    "lesson": LESSON,
    "evaluation": CRITERION,
}


class _Draft(msgspec.Struct, frozen=True):
    """A case that has not been read yet."""

    name: str
    """Name of the case; empty if the file has only one."""
    node: Placed
    point: Point


def read_cases(
    table: dict[str, Placed], title: str, settings: list[GivenSetting], reader: Reader
) -> list[Case]:
    """Read every case at every point of its matrix."""
    cases = []
    seen: set[str] = set()
    for draft in _drafts(table, settings, reader):
        name = draft.point.name(draft.name)
        if name and name in seen:
            reader.mistakes.add((*draft.node.place, "name"), f"another case is named {quote(name)}")
        seen.add(name)
        reader.mistakes.within(name or title)
        node = draft.point.apply(draft.node, reader)
        case = replace(
            _case(node, draft.point, reader),
            name=name or title,
            title=f"{title}: {name}" if name else title,
            parameters=draft.point.parameters,
        )
        cases.append(case)
    return cases


def _drafts(
    table: dict[str, Placed], settings: list[GivenSetting], reader: Reader
) -> Iterator[_Draft]:
    common = Placed((), {key: node for key, node in table.items() if key in OWN_KEYS})
    cases = 0
    for name, merged in _merged(common, table.get("case"), reader):
        node = apply_settings(merged, settings, reader)
        inner = dict(node.value)
        matrix = inner.pop("matrix", None)
        axes = read_matrix(matrix, reader)
        check_settings(axes, settings, reader)
        cases += size(axes)
        if cases > MOST_CASES:
            place = merged.place if matrix is None else matrix.place
            reader.mistakes.add(place, f"more than {MOST_CASES} cases, all points counted")
            return
        for point in points(axes):
            yield _Draft(name, Placed(node.place, inner), point)


def _merged(common: Placed, cases: Placed | None, reader: Reader) -> Iterator[tuple[str, Placed]]:
    """Yield the name of each ``[[case]]``, and its keys merged over the common part."""
    if cases is None:
        yield "", common
        return
    overrides = reader.members(cases)
    if not overrides:
        reader.mistakes.add(cases.place, "an empty list: leave it out, or write [[case]] tables")
    for node in overrides:
        own = reader.table(node, OWN_KEYS)
        if "name" not in own:
            reader.mistakes.add(node.place, "name is missing: every case needs one")
        name = reader.value(own.pop("name", None), LINE.read, "")
        yield name, overlay(common, Placed(node.place, own))


def _case(node: Placed, at: Point, reader: Reader) -> Case:
    table = reader.table(node, CASE_KEYS)
    if "duration" not in table:
        reader.mistakes.add((), 'duration is missing: how long a run may take, such as "60 s"')
    single = TomlTable(keys=VALUES).values(Placed(node.place, table), reader)
    build, names = read_build(table, reader)
    if names is not None:
        check_overruled(table.get("links"), names, reader)
    before = reader.mistakes.count
    drafts = read_timeline(table.get("timeline"), single.get("duration_s", DAY_S), reader)
    whole = reader.mistakes.count == before
    if names is not None and whole:
        check_classes(drafts, build.links, names, reader.mistakes)
    case = Case(
        name="",
        title="",
        build=build,
        timeline=check_timeline(drafts, names, reader.mistakes, whole=whole),
        metrics=read_metrics(table.get("metrics"), reader, names),
        expect=read_expect(table.get("expect"), reader, names),
        published=read_published(table.get("published"), reader, names, at),
        **single,
    )
    _check_ends(case, table, reader)
    return case


def _check_ends(case: Case, table: dict[str, Placed], reader: Reader) -> None:
    """Refuse an impossible end, and steps that may come after the end."""
    if case.until == "first" and not case.sizes and not reader.mistakes.count:
        text = '"first" needs a start-flow with bytes: no other transfer has a fixed size'
        reader.mistakes.add(table["until"].place, text)
    latest = max((step.at_s for step in case.timeline if flow_of(step)), default=None)
    if "jitter" in table and latest is not None and latest + case.jitter_s > case.duration_s:
        text = f"a flow's step at {latest:g} s could come after the end, {case.duration_s:g} s"
        reader.mistakes.add(table["jitter"].place, text)


# --- reads a scenario file into cases; any mistake refuses the whole file -------------------------

_RECORDING = b'{"event":"hello"'
_LINE_AND_COLUMN = re.compile(r" \(at line (\d+), column (\d+)\)$")


def load(path: Path, settings: Sequence[str] = ()) -> Scenario:
    """Read a scenario file, with ``settings`` as in ``--set``, each ``PATH=VALUE``.

    Raises ``ScenarioError`` with every mistake: file, line (or setting), place and suggestion.
    """
    return parse(read(path), path, settings)


def parse(text: str, path: Path, settings: Sequence[str] = ()) -> Scenario:
    """Read the text of a scenario file called ``path``. Raises ``ScenarioError``."""
    text = text.replace("\r\n", "\n")
    mistakes = Mistakes(path.name, text)
    root = use_todays_keys(locate(_toml(text, path, mistakes)), mistakes)
    scenario = _scenario(root, path, settings, Reader(mistakes, path.parent))
    mistakes.raise_any()
    return scenario


def _scenario(root: Placed, path: Path, settings: Sequence[str], reader: Reader) -> Scenario:
    over = read_settings(settings, reader.mistakes)
    root = apply_settings(root, [each for each in over if each.path[0] == "title"], reader)
    over = [each for each in over if each.path[0] != "title"]
    table = reader.table(root, FILE_KEYS)
    title = reader.value(table.get("title"), LINE.read, printable(path.stem))
    about = reader.value(table.get("about"), PROSE.read, "")
    cases = read_cases(table, title, over, reader)
    # A lesson's steps name hosts and links, which a wrong topology does not have.
    whole = not reader.mistakes.count and cases
    network = plan(cases[0].build.topology) if whole else None
    lesson = read_lesson(table.get("lesson"), network, reader)
    axes = dict.fromkeys(axis for case in cases for axis in case.parameters)
    criterion = read_criterion(table.get("evaluation"), axes, reader, network)
    if criterion is not None:
        named = [each.metric for each in criterion.measures]
        cases = [replace(e, metrics=tuple(dict.fromkeys((*named, *e.metrics)))) for e in cases]
    return Scenario(
        *(path, title, about, tuple(cases), tuple(settings)),
        lesson=lesson,
        criterion=criterion,
        files=reader.files,
    )


def read(path: Path) -> str:
    """Return the text of a scenario file. Raises ``ScenarioError`` if it is not one."""
    try:
        with open_regular(path) as file:
            content = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        # A directory written by ``ccplay run --out`` has the scenario of its runs.
        inside = path / "scenario.toml"
        hint = f"; the scenario that was run there is {inside}" if inside.is_file() else ""
        raise ScenarioError(f"can't read scenario {quote(str(path))}: {reason}{hint}") from None
    if content.startswith(_RECORDING) or path.suffix in (".c", ".py"):
        raise ScenarioError(f"{path} is not a scenario{_meant(path)}")
    if len(content) > LARGEST_FILE:
        raise ScenarioError(f"{path}: a scenario may have {LARGEST_FILE:,} bytes at most")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ScenarioError(
            f"{path.name}:{line}: not UTF-8 text (byte 0x{content[error.start]:02x})"
        ) from None


def _meant(path: Path) -> str:
    """Return a hint about another kind of ccplay's files that was given as a scenario."""
    file = shlex.quote(str(path))
    if path.suffix == ".c":
        return f"; offer your own algorithm with ccplay --algorithm {file}"
    if path.suffix == ".py":
        return (
            f"; offer your own discipline with ccplay --discipline {file}, or a network of "
            f"Mininet's with ccplay --custom {file} --topo NAME"
        )
    return (
        f", but a recording: ccplay replay {file} shows it, ccplay script {file} turns it into one"
    )


def _toml(text: str, path: Path, mistakes: Mistakes) -> dict[str, object]:
    try:
        return document.loads(text)
    except document.ControlError as error:
        if error.line:
            raise ScenarioError(f"{path.name}:{error.line}: {error}") from None
        mistakes.add(error.place, str(error))
        mistakes.raise_any()
        raise
    except document.TooMuchError as error:
        raise ScenarioError(f"{path.name}: {error}, which is too much for a scenario") from None
    except ValueError as error:
        message = str(error)
        if match := _LINE_AND_COLUMN.search(message):
            reason = message[: match.start()]
            where = f"{match[1]}: column {match[2]}"
        elif (reason := message.removesuffix(" (at end of document)")) != message:
            where = f"{text.count(chr(10)) + 1}: end of file"
        else:
            # Python itself refuses numbers of thousands of digits.
            where = "1"
        raise ScenarioError(f"{path.name}:{where}: not TOML: {reason}") from None
