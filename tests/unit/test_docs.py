"""What the documentation says: its commands parse, its files load, and it leaves nothing out."""

import re
import runpy
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from ccplay import cli
from ccplay.lab.custom.trial import try_discipline
from ccplay.lesson import library as lessons
from ccplay.scenario import library as scenarios
from ccplay.scenario.reading import load

ROOT = Path(__file__).parents[2]
REFERENCE = runpy.run_path(str(ROOT / "docs" / "generate.py"))["PAGES"]
"""Pages made from the code: their text, by name."""
PAGES = [
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.stem not in REFERENCE),
    *(ROOT / "README.md", ROOT / "scenarios" / "README.md"),
]


def _blocks(language: str) -> Iterator[tuple[str, str]]:
    """Yield the page and the text of each block in a language."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in re.findall(rf"(?ms)^ *```{language}\n(.*?)^ *```", text):
            yield page.relative_to(ROOT).as_posix(), block


def _commands() -> list[tuple[str, str]]:
    found = [
        (page, line.strip())
        for page, block in _blocks("sh")
        for line in block.splitlines()
        if "ccplay" in line
    ]
    for page in PAGES:
        # `ccplay …` in the text, where it is a command and no form of one.
        text = re.sub(r"(?ms)^ *```.*?^ *```", "", page.read_text(encoding="utf-8"))
        inline = re.findall(r"`(ccplay(?: [^`]*)?)`", text)
        forms = r"FILE|NAME|COMMAND|SHELL|HOST|RUN|DIR\b|KIND|PACKAGE|SESSION|TOPOLOGY"
        found += [(page.name, each) for each in inline if not re.search(forms, each)]
    return list(dict.fromkeys(found))


def _words(line: str) -> list[str]:
    words = shlex.split(line, comments=True)
    # Of `ssh HOST ccplay …` and of `… | head` only what is ccplay's.
    words = words[words.index("ccplay") + 1 :]
    ends = [n for n, word in enumerate(words) if word in ("|", ">", "&&")]
    return words[: ends[0]] if ends else words


@pytest.mark.parametrize(("page", "line"), _commands())
def test_a_command_of_the_documentation_is_understood(
    page: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "$(" in line or not line.startswith(("ccplay", "ssh")) or "ccplay" not in line.split():
        return
    monkeypatch.setattr("ccplay.session.archive.named", Path)
    words = _words(line)
    if "--help" in words:
        assert words[0] in cli.COMMANDS or words[0] == "--help"
        return
    arguments = cli._parse(cli._with_command(words))
    named = getattr(arguments, "scenario", None) or getattr(arguments, "lesson", None)
    if named and not named.endswith(".toml"):
        assert named in {*scenarios.shipped(), *lessons.shipped()}, page


@pytest.mark.parametrize(("page", "text"), _blocks("toml"))
def test_toml_of_the_documentation_is_valid(page: str, text: str, tmp_path: Path) -> None:
    found = tomllib.loads(text)
    if "duration" not in found:
        return
    (tmp_path / "page.toml").write_text(text, encoding="utf-8")
    assert load(tmp_path / "page.toml").cases, page


def test_the_discipline_of_the_tutorial_works() -> None:
    page = ROOT / "docs" / "tutorials" / "own-discipline.md"
    source = page.read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
    assert len(source.splitlines()) < 25
    found = try_discipline("late", source)
    assert found.mistakes == []
    assert found.dropped > 0


def test_the_reference_leaves_nothing_out() -> None:
    """The lists of the code, each against the page that should have all of it."""
    import typing

    from ccplay.analysis.results import CaseResult, QueueResult
    from ccplay.assets import algorithms
    from ccplay.model.disciplines import DISCIPLINES
    from ccplay.model.topologies import TOPOLOGIES
    from ccplay.plots.table import PLOTS
    from ccplay.scenario.schema import schema
    from ccplay.stream.wire import EVENTS
    from ccplay.traffic import VARIABLES
    from ccplay.ui.keys import REMAPPABLE
    from ccplay.ui.preferences import Preferences

    today = [k for k, each in schema()["properties"].items() if not each.get("deprecated")]
    step = schema()["$defs"]["step"]["anyOf"]
    expected = {
        "commands": list(cli.COMMANDS),
        "keys": list(REMAPPABLE),
        "settings": [*today, *(each["properties"]["do"]["const"] for each in step)],
        "metrics": [*CaseResult.__struct_fields__, *QueueResult.__struct_fields__],
        "plots": list(PLOTS),
        "variables": [name for known in VARIABLES.values() for name in known],
        "topologies": list(TOPOLOGIES),
        "algorithms": list(algorithms()),
        "disciplines": [*DISCIPLINES, *(n for each in DISCIPLINES.values() for n in each.names)],
        "events": [(typing.get_origin(each) or each).__struct_config__.tag for each in EVENTS],
        "result": ["statistics", "discarded", "cases"],
        "exit-codes": ["0", "1", "2", "3", "4", "5", "6", "129", "130", "143"],
        "preferences": [each for each in Preferences.__struct_fields__ if each != "mistakes"],
    }
    assert expected.keys() == REFERENCE.keys()
    for name, items in expected.items():
        page = REFERENCE[name]()
        assert [each for each in items if each not in page] == [], name
        assert re.findall(r"(?m)^(\| [^|]+) \|  \|", page) == [], "each row has a meaning"


def test_every_page_is_in_the_table_of_contents() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"(?m)^(\w[\w-]*/[\w-]+)$", index))
    there = {
        page.relative_to(ROOT / "docs").with_suffix("").as_posix()
        for page in (ROOT / "docs").glob("*/*.md")
    }
    assert there <= listed
    assert len(listed - there) <= 13, "only the pages made from the code may be missing"


def test_readme_is_short() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 130
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", readme):
        assert (ROOT / target).exists(), target


def test_the_moving_picture_is_small_and_moves() -> None:
    from PIL import Image

    assert callable(runpy.run_path(str(ROOT / "docs" / "pictures.py"))["write"])
    file = ROOT / "docs" / "_static" / "playground.gif"
    assert file.stat().st_size <= 2_000_000
    with Image.open(file) as picture:
        assert getattr(picture, "n_frames", 1) > 100
