"""``python -m tests.house``: measures the size of the house, and holds each measure to its bound.

A measure is a number that grows when one idea is spread over many places: files, names that several
modules have, structs that repeat each other, functions that only pass on. ``make check`` runs it; a
bound is lowered when the number has become smaller, and never raised without a reason beside it.
"""

from __future__ import annotations

import argparse
import ast
import re
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_Function = ast.FunctionDef | ast.AsyncFunctionDef

SHORT = 60
"""Lines below which a module is short."""
FEW = 3
"""Greatest number of lines of a function's body that is short."""
SHARED = 4
"""Number of fields, each with its type, that two structs share if one mirrors the other."""


@dataclass(frozen=True)
class Module:
    """A parsed file of the package."""

    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of its tree; each measure looks at them again."""
        return list(ast.walk(self.tree))

    @cached_property
    def words(self) -> frozenset[str]:
        """The names and strings of its code, without docstrings."""
        return frozenset(words(self.nodes))

    @property
    def lines(self) -> int:
        """Its number of lines."""
        return len(self.text.splitlines())


class House:
    """All modules of the package, and what is counted of them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package = [
            Module(path, path.read_text(encoding="utf-8"))
            for path in sorted((root / "ccplay").rglob("*.py"))
        ]

    @property
    def lines_of_tests(self) -> int:
        """Number of lines of all tests."""
        files = (self.root / "tests").rglob("*.py")
        return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)

    def wide(self, most: int) -> list[str]:
        """Return the classes of more than ``most`` methods, properties included."""
        return [
            f"{each.path.relative_to(self.root)}:{node.name}"
            for each in self.package
            for node in each.nodes
            if isinstance(node, ast.ClassDef)
            and sum(isinstance(one, _FUNCTIONS) for one in node.body) > most
        ]

    def named(self, word: str, *outside: str) -> list[str]:
        """Return the files whose code has a word, except for those in some folders.

        Docstrings and comments do not count: they may name what the code need not know.
        """
        pattern = re.compile(word, re.IGNORECASE)
        return [
            name
            for each in self.package
            if not (name := str(each.path.relative_to(self.root / "ccplay"))).startswith(outside)
            if any(pattern.search(one) for one in each.words)
        ]

    def structs(self) -> dict[str, set[tuple[str, str]]]:
        """Return the own fields of each class with their types, by file and name of the class."""
        return {
            f"{each.path.relative_to(self.root)}:{node.name}": fields
            for each in self.package
            for node in each.nodes
            if isinstance(node, ast.ClassDef)
            and (
                fields := {
                    (one.target.id, _type(one.annotation))
                    for one in node.body
                    if isinstance(one, ast.AnnAssign)
                    and isinstance(one.target, ast.Name)
                    and "ClassVar" not in ast.unparse(one.annotation)
                }
            )
        }

    def alike(self) -> list[str]:
        """Return the pairs of structs that share at least ``SHARED`` names of fields."""
        return _pairs({key: {name for name, _ in own} for key, own in self.structs().items()})

    def mirrored(self) -> list[str]:
        """Return the pairs of structs that share at least ``SHARED`` fields, and no reason why.

        A field is a name and a type: of fields with other types, no struct could hold the other's.
        """
        return without_reasons(_pairs(self.structs()), MIRRORING)

    def classes_of_one_name(self) -> dict[str, int]:
        """Return how many modules define a class, for names that several do."""
        found = Counter(
            node.name
            for each in self.package
            for node in each.tree.body
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        )
        return {name: count for name, count in found.items() if count > 1}

    def files_of_one_name(self) -> int:
        """Return the number of modules that share their name with another."""
        names = Counter(e.path.stem for e in self.package if not e.path.stem.startswith("__"))
        return sum(count for count in names.values() if count > 1)

    def named_once(self) -> list[str]:
        """Return the private functions of at most ``FEW`` lines that one place names."""
        found = []
        for each in self.package:
            names = Counter(one.id for one in each.nodes if isinstance(one, ast.Name))
            found += [
                f"{each.path.relative_to(self.root)}:{node.name}"
                for node in each.tree.body
                if isinstance(node, _FUNCTIONS)
                and node.name.startswith("_")
                and not node.decorator_list
                and _length(node) <= FEW
                and names[node.name] == 1
            ]
        return found

    def passed_on(self) -> list[str]:
        """Return the functions that only call another one with their own arguments, in order."""
        found = []
        for each in self.package:
            for node in each.nodes:
                if not isinstance(node, _FUNCTIONS) or node.decorator_list:
                    continue
                body = _body(node)
                if len(body) != 1 or not isinstance(body[0], ast.Return | ast.Expr):
                    continue
                call = body[0].value
                call = call.value if isinstance(call, ast.Await) else call
                if not isinstance(call, ast.Call) or call.keywords or node.args.kwonlyargs:
                    continue
                own = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
                own = [one for one in own if one not in ("self", "cls")]
                if own and [ast.unparse(one) for one in call.args] == own:
                    found.append(f"{each.path.relative_to(self.root)}:{node.name}")
        return without_reasons(found, PASSING_ON)

    def interfaces(self) -> list[str]:
        """Return the protocols and abstract classes."""
        return [
            f"{each.path.relative_to(self.root)}:{node.name}"
            for each in self.package
            for node in each.nodes
            if isinstance(node, ast.ClassDef)
            and any(ast.unparse(base).split("[")[0] in ("Protocol", "ABC") for base in node.bases)
        ]


PASSING_ON = {
    "ccplay/bpf/libbpf.py:remove": "no caller sees libbpf's C functions",
    "ccplay/lab/connection.py:add": "the other half of ``remove``, which keeps the member's counts",
    "ccplay/model/quantities.py:write": "a table writes a ``Field`` as it writes a ``Part``",
    "ccplay/model/quantities.py:show": "the other half of ``parse``, which checks the bounds",
    "ccplay/scenario/keys.py:write": "what every ``Part`` can do",
    "ccplay/share/presenter.py:put": "what every ``Sink`` can do",
    "ccplay/ui/dialogs_traffic.py:action_step": "Textual calls it for a key in ``BINDINGS``",
}
"""Functions that only pass on, each with the reason why it is there."""

_STATE = "a state takes over the fields of its events by name, and a result those of its state"
_JSON = "keys of JSON, or columns, in an order of their own"
MIRRORING = {
    "Machine Capabilities": "a result has what explains it, a session what menus offer",
    "HealthResult Health": "of a case and of a second: other values may be unknown",
    "Counts QdiscCounters": "words of shared memory and of netlink, each in its order",
    **dict.fromkeys(("CriterionResult Requirement", "Figure CriterionResult"), _JSON),
    **dict.fromkeys(("Flow FlowEnded", "Flow Subflow", "Flow FlowResult"), _STATE),
    "FlowStarted FlowResult": _STATE,
    "Subflow FlowResult": _JSON,
    **dict.fromkeys(("Subflow ShortFlowsResult", "ShortFlowsResult SizeClass"), _JSON),
}
"""Pairs of structs that share fields, each with the reason."""


def _pairs(structs: Mapping[str, AbstractSet[object]]) -> list[str]:
    return [
        f"{one.partition(':')[2]} {other.partition(':')[2]}"
        for (one, left), (other, right) in combinations(structs.items(), 2)
        if len(left & right) >= SHARED
    ]


def without_reasons(found: list[str], reasons: dict[str, str]) -> list[str]:
    """Return what was found and has no reason, and the reasons for what is no longer there."""
    gone = [f"{name} is gone, but not its reason" for name in reasons if name not in found]
    return [each for each in found if each not in reasons] + gone


def words(nodes: list[ast.AST]) -> Iterator[str]:
    """Yield the names and strings of code, without docstrings."""
    prose = {
        id(node.value)
        for node in nodes
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in nodes:
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.arg(arg=word):
                yield word
            case ast.FunctionDef(name=word) | ast.ClassDef(name=word):
                yield word
            case ast.AsyncFunctionDef(name=word) | ast.alias(name=word):
                yield word
            case ast.keyword(arg=str(word)) | ast.ImportFrom(module=str(word)):
                yield word
            case ast.Constant(value=str(word)) if id(node) not in prose:
                yield word


def _type(annotation: ast.expr) -> str:
    match annotation:
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[plain, *_])):
            return _type(plain)
    return _ALIASES.get(name := ast.unparse(annotation), name)


_ALIASES = {"Count": "int", "ConnectionName": "str", "Name": "str"}
"""Types by the names of ``ccplay.model.base`` for them with bounds."""


def _body(node: _Function) -> list[ast.stmt]:
    first = node.body[0]
    prose = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return node.body[1:] if prose else node.body


def _length(node: _Function) -> int:
    body = _body(node)
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


@dataclass(frozen=True)
class Measure:
    """A number of the house, with the greatest value that is allowed."""

    what: str
    count: Callable[[House], int]
    bound: int
    """Greatest value; lower it when the number has become smaller."""
    listed: Callable[[House], list[str]] | None = None
    """What was counted, for ``--list``."""


def _listed(what: str, found: Callable[[House], list[str]], bound: int) -> Measure:
    return Measure(what, lambda house: len(found(house)), bound, found)


def _kind(name: str, word: str, bound: int) -> Measure:
    what = f"files that know the word {name}"
    return _listed(what, lambda house: house.named(word, f"traffic/{name}/"), bound)


def _command(name: str, bound: int) -> Measure:
    return _listed(f"files that name {name}", lambda house: house.named(rf"^{name}$"), bound)


# Raised for: evaluations, and links that move (20 files, 3,700 lines); an evaluation's table on the
# screen (1, 500, 300 of tests); what is said of a link that moves by its capacity (300, 340 of
# tests); the reasons above, and the test of Textual's private parts (135 of tests); packets that a
# new qdisc dropped, a reply that came late, a folder for each try, a discipline that gets no core
# (10, 95 of tests); the order of captured packets, late flows, and tests that get no CPU (40, 70 of
# tests); the first ACK of a trace (60, 30 of tests); flows that fall back to TCP (27 of tests).
MEASURES = (
    Measure("Python files", lambda h: len(h.package), 291),
    Measure("lines", lambda h: sum(each.lines for each in h.package), 81_859),
    Measure("lines of tests", lambda h: h.lines_of_tests, 54_842),
    _listed(
        f"modules below {SHORT} lines, without __init__",
        lambda h: [
            str(each.path.relative_to(h.root))
            for each in h.package
            if each.lines < SHORT and each.path.stem not in ("__init__", "__main__")
        ],
        25,
    ),
    Measure("lines of the longest module", lambda h: max(each.lines for each in h.package), 700),
    _listed("classes of more than 25 methods", lambda h: h.wide(25), 0),
    Measure(
        "modules at the root", lambda h: sum(e.path.parent.name == "ccplay" for e in h.package), 9
    ),
    _kind("udp", r"(?<![a-z])udp", 3),
    _kind("short_flows", r"short.?flow", 1),
    _kind("download", r"download", 2),
    _kind("ping", r"(?<![a-z])pings?(?![a-z])", 4),
    _command("SetLink", 6),
    _command("SetQdisc", 7),
    _command("SetCongestionControl", 6),
    _listed(f"pairs of structs that share {SHARED} names of fields", House.alike, 34),
    _listed(f"pairs of structs that share {SHARED} fields, unreasoned", House.mirrored, 0),
    Measure("modules that share their name", House.files_of_one_name, 30),
    _listed(
        "names of public classes in several modules",
        lambda h: [f"{name}: {count}" for name, count in h.classes_of_one_name().items()],
        0,
    ),
    _listed(f"functions of up to {FEW} lines that one place names", House.named_once, 73),
    _listed("functions that only pass on, without a reason", House.passed_on, 0),
    _listed("protocols and abstract classes", House.interfaces, 8),
)
"""What is measured, in the order of the table."""


def main() -> int:
    """Print the table; return 1 if a measure exceeds its bound."""
    parser = argparse.ArgumentParser(prog="python -m tests.house", description=__doc__)
    parser.add_argument("--list", metavar="WORD", help="list what the measures with WORD count")
    wanted = parser.parse_args().list
    house = House(ROOT)
    over = 0
    for each in MEASURES:
        value = each.count(house)
        over += value > each.bound
        note = "  too large" if value > each.bound else ""
        print(f"{each.what:52}{value:8,}  of at most {each.bound:,}{note}")
        if wanted and each.listed and wanted in each.what:
            print(*(f"    {one}" for one in each.listed(house)), sep="\n")
    lines = sorted(each.lines for each in house.package)
    print(f"{'median lines of a module':52}{statistics.median(lines):8,.0f}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
