"""The package has no circular imports; ``tests/house.py`` limits the sizes of its modules."""

import ast
import functools
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import ccplay

PACKAGE = Path(ccplay.__file__).parent


@functools.cache
def modules(root: Path) -> dict[str, ast.Module]:
    """Return every module of the package at ``root`` by its dotted name, parsed."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = (root.name, *path.relative_to(root).with_suffix("").parts)
        name = ".".join(parts).removesuffix(".__init__")
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imports(name: str, parsed: Mapping[str, ast.Module]) -> set[str]:
    """Return the package's modules that a module imports, also in functions and for type hints."""
    found: set[str] = set()
    for node in ast.walk(parsed[name]):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: a relative import"
            inside = {f"{node.module}.{each.name}" for each in node.names}
            # ``from package import name`` imports the package only if ``name`` is not a module.
            found |= inside & set(parsed)
            if inside - set(parsed):
                found.add(node.module or "")
    return found & set(parsed) - {name}


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """Return a cycle of a graph; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [*reversed(error.args[1])]
    return []


def circle_of(root: Path) -> list[str]:
    parsed = modules(root)
    return circle({name: imports(name, parsed) for name in parsed})


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle_of(PACKAGE) == []


def test_an_import_for_hints_alone_closes_a_circle(tmp_path: Path) -> None:
    root = tmp_path / "house"
    (root / "ui").mkdir(parents=True)
    for name, text in {
        "__init__.py": "",
        "ui/__init__.py": "",
        "ui/app.py": "from house.ui.screen import Screen\n",
        "ui/screen.py": "def show():\n    from house.ui import marks\n",
        "ui/marks.py": "if TYPE_CHECKING:\n    from house.ui.app import App\n",
        "ui/view.py": "import house.ui.marks\n",
    }.items():
        (root / name).write_text(text)
    assert {*circle_of(root)} == {"house.ui.app", "house.ui.screen", "house.ui.marks"}


def folder(name: str) -> str:
    """Return the folder of a module; beside a kind of traffic lie its runners, part of the lab."""
    here = name.rpartition(".")[0]
    runs = here.startswith("ccplay.traffic.")
    return f"ccplay.lab.runners.{here.rpartition('.')[2]}" if runs else here


def test_no_folders_of_a_room_import_each_other_in_a_circle() -> None:
    parsed = modules(PACKAGE)
    rooms = {name.rpartition(".")[0] for name in parsed}
    graph: dict[str, set[str]] = {each: set() for each in (*rooms, *map(folder, parsed))}
    for name in parsed:
        here = folder(name)
        for other in imports(name, parsed):
            there = other if other in rooms else folder(other)
            # A folder's own modules may import some of its subfolders and be imported by others.
            if not (f"{here}.".startswith(f"{there}.") or f"{there}.".startswith(f"{here}.")):
                graph[here].add(there)
    assert circle(graph) == []
