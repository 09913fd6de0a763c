"""Reads a scenario file into cases; any mistake refuses the whole file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from ccplay.errors import ScenarioError
from ccplay.files.reading import open_regular
from ccplay.model.quoting import quote
from ccplay.model.texts import LINE, PROSE
from ccplay.scenario import bounded
from ccplay.scenario.bounded import LARGEST_FILE
from ccplay.scenario.cases import FILE_KEYS, read_cases, read_pages
from ccplay.scenario.file.mistakes import Mistakes
from ccplay.scenario.file.older_names import renewed
from ccplay.scenario.file.settings import lay_over, read_settings
from ccplay.scenario.file.tree import Node, Reader, grow
from ccplay.scenario.values import Scenario
from ccplay.visible import printable

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
    root = renewed(grow(_toml(text, path, mistakes)), mistakes)
    scenario = _scenario(root, path, settings, Reader(mistakes))
    mistakes.raise_any()
    return scenario


def _scenario(root: Node, path: Path, settings: Sequence[str], reader: Reader) -> Scenario:
    over = read_settings(settings, reader.mistakes)
    root = lay_over(root, [each for each in over if each.path[0] == "title"], reader)
    over = [each for each in over if each.path[0] != "title"]
    table = reader.table(root, FILE_KEYS)
    title = reader.value(table.get("title"), LINE.read, printable(path.stem))
    about = reader.value(table.get("about"), PROSE.read, "")
    cases = read_cases(table, title, over, reader)
    return Scenario(
        path, title, about, tuple(cases), tuple(settings), lesson=read_pages(table, cases, reader)
    )


def read(path: Path) -> str:
    """Return the text of a scenario file. Raises ``ScenarioError`` if it is not one."""
    try:
        with open_regular(path) as file:
            content = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ScenarioError(
            f"can't read scenario {quote(str(path))}: {reason}{_run_in(path)}"
        ) from None
    if content.startswith(_RECORDING) or path.suffix in (".c", ".py"):
        raise ScenarioError(f"{path} is not a scenario{_meant(path)}")
    if len(content) > LARGEST_FILE:
        raise ScenarioError(f"{path}: larger than {LARGEST_FILE:,} bytes, so not a scenario")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ScenarioError(
            f"{path.name}:{line}: not UTF-8 text (byte 0x{content[error.start]:02x})"
        ) from None


def _run_in(path: Path) -> str:
    """Return a hint about the scenario in a directory written by ``ccplay run --out``."""
    inside = path / "scenario.toml"
    return f"; the scenario that was run there is {inside}" if inside.is_file() else ""


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
        return bounded.loads(text)
    except bounded.ControlError as error:
        if error.line:
            raise ScenarioError(f"{path.name}:{error.line}: {error}") from None
        mistakes.add(error.place, str(error))
        mistakes.raise_any()
        raise
    except bounded.TooMuchError as error:
        raise ScenarioError(f"{path.name}: {error}: too much for a scenario") from None
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
