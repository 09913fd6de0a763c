"""Where scenarios are found: by path, or by the name of one that comes with ccplay."""

from __future__ import annotations

from pathlib import Path

from ccplay.assets import assets
from ccplay.errors import ScenarioError
from ccplay.scenario.file.mistakes import did_you_mean, quote


def find(name_or_path: str | Path) -> Path:
    """Return the path of a scenario: ``bufferbloat`` comes with ccplay, ``./mine.toml`` is yours.

    Raises ``ScenarioError`` with what was probably meant.
    """
    word = str(name_or_path)
    known = shipped()
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
    raise ScenarioError(f"no scenario {quote(word)}, neither a file nor one of ours{suggestion}")


def shipped() -> dict[str, Path]:
    """Return the scenarios that come with ccplay, by name."""
    return {path.stem: path for path in sorted(assets("scenarios").glob("*.toml"))}
