"""Finds scenarios: by path, or by the name of one that comes with ccplay."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import msgspec

from ccplay.assets import assets
from ccplay.errors import ScenarioError
from ccplay.model.quantities import did_you_mean, quote
from ccplay.scenario import document
from ccplay.scenario.reading import TABLES, load, read
from ccplay.visible import printable

MOST_LISTED = 100
"""Largest number of files listed from a folder: each takes up to a second to read."""


class ScenarioEntry(msgspec.Struct, frozen=True):
    """A scenario in a listing."""

    name: str
    """Argument for ``ccplay run``."""
    title: str
    cases: int
    """Number of cases; 0 if the file is refused."""


def find(name_or_path: str | Path) -> Path:
    """Return the path of a scenario: ``bufferbloat`` is shipped, ``./mine.toml`` is a file.

    Raises ``ScenarioError`` with a suggestion.
    """
    word = str(name_or_path)
    known = shipped() | {f"evaluation/{name}": path for name, path in criteria().items()}
    if word in known:
        return known[word]
    path = Path(word)
    try:
        path = path.expanduser()
        if path.exists():
            return path
    except (OSError, ValueError, RuntimeError) as error:
        raise ScenarioError(f"no scenario {quote(word)}: {error}") from None
    suggestion = did_you_mean(path.stem, known)
    raise ScenarioError(
        f"no scenario {quote(word)}: neither a file nor one that comes with ccplay{suggestion}"
    )


def shipped() -> dict[str, Path]:
    """Return the scenarios shipped with ccplay, by name."""
    return {path.stem: path for path in sorted(assets("scenarios").glob("*.toml"))}


def criteria() -> dict[str, Path]:
    """Return the scenarios of ``ccplay evaluate``, by name: each evaluates a criterion."""
    return {path.stem: path for path in sorted(assets("scenarios").glob("evaluation/*.toml"))}


def shipped_entries() -> list[ScenarioEntry]:
    """Return listing entries of the scenarios shipped with ccplay."""
    return [_entry(name, path) for name, path in shipped().items()]


def in_folder(folder: Path) -> list[ScenarioEntry]:
    """Return listing entries of a folder, at most a hundred."""
    try:
        paths = sorted(folder.glob("*.toml"))
    except OSError:
        return []
    scenarios = (path for path in paths if _is_meant_as_one(path))
    return [_entry(str(path), path) for path in islice(scenarios, MOST_LISTED)]


def _entry(name: str, path: Path) -> ScenarioEntry:
    try:
        scenario = load(path)
    except ScenarioError:
        return ScenarioEntry(printable(name), "", 0)
    return ScenarioEntry(printable(name), scenario.title, len(scenario.cases))


def _is_meant_as_one(path: Path) -> bool:
    """Return whether a TOML file has a table that only scenarios have."""
    try:
        keys = document.loads(read(path)).keys()
    except (ScenarioError, ValueError):
        return False
    return "duration" in keys and not keys.isdisjoint((*TABLES, "case"))
