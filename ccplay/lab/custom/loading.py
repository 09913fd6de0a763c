"""A user's own discipline: a new source, what it declares, its class, an object, its mistakes.

``PARAMETERS`` is a dictionary of literals, read without running the source. Each value gives a
parameter its kind and default:

    "5 ms"  "10 Mbit/s"  "1000 packets"  "150 kB"    a time, a rate, packets, bytes
    "time"  "rate"  "packets"  "bytes"               one of these kinds, off by default
    8  0.5  True                                     a whole number, a number, a switch
    ("first", "second")                              one of these words, the first by default

The source is code of the user who named its file on a command line. It runs with the rights of the
process that loads it: in a lab that is ``software queue``, in the lab's namespaces.
"""

from __future__ import annotations

import ast
import keyword
import re
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from ccplay.errors import CcplayError, UsageError
from ccplay.files.reading import SavedFiles, by_name, missing, open_regular
from ccplay.lab.disciplines import CLASSES
from ccplay.lab.disciplines.base import Discipline, Options
from ccplay.model import disciplines
from ccplay.model.base import Option
from ccplay.model.disciplines import DISCIPLINES, SUFFIX, complete
from ccplay.model.qdiscs import SOFTWARE, DisciplineKind, Parameter, parameter
from ccplay.model.quantities import (
    COUNT,
    NUMBER,
    PACKETS,
    QUEUE_SIZE,
    RATE,
    SWITCH,
    TIME_US,
    Field,
    did_you_mean,
    quote,
)
from ccplay.model.texts import choice

# --- mistakes in a user's own discipline, with their lines ----------------------------------------

MEMORY = 1 << 30
"""Bytes of memory that a discipline may use, besides those of ccplay."""


class SourceError(CcplayError):
    """A mistake in the file of a discipline: ``mine.py:12: NameError: ...``."""

    def __init__(self, name: str, line: int | None, words: str) -> None:
        """``name`` is the discipline's; ``line`` counts from 1, None if no line is known."""
        self.name, self.line, self.words = name, line, words
        place = f"{name}{SUFFIX}" if line is None else f"{name}{SUFFIX}:{line}"
        super().__init__(f"{place}: {words}")


class MisuseError(RuntimeError):
    """A discipline misused a packet; the text of the exception describes how."""


def file_of(name: str) -> str:
    """Return the file name under which the source of a discipline is compiled."""
    return f"<discipline {name}>"


def source_error(name: str, error: BaseException, otherwise: int | None = None) -> SourceError:
    """Return a ``SourceError`` for an exception, with the file's innermost line in its traceback.

    ``otherwise`` is the line to report if the traceback has no line of the file.
    """
    if isinstance(error, SourceError):
        return error
    if isinstance(error, SyntaxError) and error.filename == file_of(name):
        return SourceError(name, error.lineno, f"{type(error).__name__}: {error.msg}")
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == file_of(name)]
    words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, MisuseError):
        words = str(error)
    elif isinstance(error, MemoryError):
        words = f"MemoryError: a discipline may use {MEMORY >> 30} GiB"
    elif isinstance(error, PermissionError) and error.filename is None:
        words += ": a discipline may not start or signal processes"
    return SourceError(name, lines[-1] if lines else otherwise, words)


# --- checks the names and reads the text of files with a user's own discipline, ``NAME.py`` -------

_NAME = re.compile(r"[a-z][a-z0-9_]{0,14}")

_MOST_BYTES = 1 << 18

_OF_LINUX = {
    *("bpf", "cbs", "etf", "ets", "fifo", "gred", "hfsc", "hhf", "htb", "ingress", "mq", "mqprio"),
    *("multiq", "netem", "noqueue", "pfifo_fast", "plug", "qfq", "sfb", "taprio", "teql"),
}
"""Names of disciplines of Linux, most of which ccplay lacks; a user's own can't have them."""


def custom_disciplines(paths: Iterable[Path]) -> dict[str, Path]:
    """Return the files by the names of their disciplines: ``mine`` for ``mine.py``.

    Raises ``UsageError`` for names that are invalid or taken.
    """
    rule = f"a discipline is named after its file, NAME{SUFFIX}"
    return by_name(paths, _name_of, check_name, rule)


def _name_of(path: Path) -> str:
    if path.suffix != SUFFIX:
        raise UsageError(f"{path}: a discipline is named after its file, which ends in {SUFFIX}")
    return path.name.removesuffix(SUFFIX)


def no_file(path: Path) -> str:
    """Return the message for a missing file, with a suggestion."""
    return missing(path, SUFFIX)


def check_name(name: str) -> None:
    """Raise ``UsageError`` if a user's discipline can't have this name."""
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise UsageError(
            f"{name!r} is not a valid name: use up to 15 characters of a-z, 0-9 and '_', "
            "a letter first"
        )
    if name in DISCIPLINES or name in _OF_LINUX:
        raise UsageError(f"there already is a queue discipline {name!r}: choose another name")


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file. Raises ``UsageError`` with the reason if it can't be read."""
    try:
        with open_regular(path) as file:
            data = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise UsageError(no_file(path)) from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    if len(data) > _MOST_BYTES:
        raise UsageError(f"{path}: a discipline may have {_MOST_BYTES // 1024} KiB at most")
    return data


def read_source(path: Path) -> str:
    """Return the source in a file. Raises ``CcplayError`` with the reason if it can't be read."""
    data = read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CcplayError(f"{path.name}:{line}: not UTF-8 text") from None


# --- reads what the source of a discipline declares, without running it ---------------------------

_DECLARATION = "PARAMETERS"

_MEASURES = {"time": TIME_US, "rate": RATE, "packets": PACKETS, "bytes": QUEUE_SIZE}
"""Quantities by the word that declares a parameter of this quantity, off by default."""

_BY_ITSELF = {"limit": "1000 packets"}
"""Parameters of a source that declares none."""

_MOST = 16


def read_declaration(name: str, source: str) -> DisciplineKind:
    """Return the description of a discipline from its source. Raises ``SourceError``."""
    try:
        tree = ast.parse(source, file_of(name))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise source_error(name, error) from None
    summary = (ast.get_docstring(tree) or "your own").strip().splitlines()[0].rstrip(".")
    parameters = tuple(
        _parameter(name, key, value, line) for key, (value, line) in _values(name, tree).items()
    )
    return DisciplineKind(name, summary, parameters, in_kernel=False)


def _values(name: str, tree: ast.Module) -> dict[str, tuple[Any, int | None]]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == _DECLARATION:
                return _literals(name, value)
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if (
                target == _DECLARATION
            ):
                return _literals(name, value)
    return {key: (value, None) for key, value in _BY_ITSELF.items()}


def _literals(name: str, value: ast.expr) -> dict[str, tuple[Any, int | None]]:
    if not isinstance(value, ast.Dict):
        raise SourceError(name, value.lineno, f"{_DECLARATION} must be a dictionary")
    if len(value.keys) > _MOST:
        raise SourceError(name, value.lineno, f"at most {_MOST} parameters")
    found: dict[str, tuple[Any, int | None]] = {}
    for key, each in zip(value.keys, value.values, strict=True):
        try:
            word, held = ast.literal_eval(key) if key is not None else None, ast.literal_eval(each)
        except (ValueError, TypeError):
            raise SourceError(
                name, each.lineno, f"{_DECLARATION} may have literal values only"
            ) from None
        if not isinstance(word, str) or not word.isidentifier() or word in ("kind", "link"):
            raise SourceError(name, each.lineno, f"{word!r} can't be the name of a parameter")
        found[word] = held, each.lineno
    return found


def _parameter(name: str, key: str, value: Any, line: int | None) -> Parameter:
    meaning = f"a parameter of {name}.py"
    match value:
        case bool():
            return parameter(key, SWITCH, meaning, value)
        case int() if 0 <= value < 2**31:
            return parameter(key, COUNT, meaning, value)
        case float():
            return parameter(key, NUMBER, meaning, value)
        case str() if value in _MEASURES:
            return parameter(key, _MEASURES[value], meaning, unset="off")
        case str() if (read := _measured(value)) is not None:
            return parameter(key, read[0], meaning, read[1])
        case (str(), *_) if all(isinstance(each, str) for each in value):
            return parameter(key, choice(key, value), meaning, value[0])
    raise SourceError(
        name,
        line,
        f'{key}: {value!r} is not the value of a parameter: write "5 ms", "10 Mbit/s", '
        '"1000 packets", "150 kB", "time" for one that is off, a number, True, or several words',
    )


def _measured(value: str) -> tuple[Any, int] | None:
    """Return the quantity and the value of a text with a unit; None for any other text."""
    for quantity in (TIME_US, RATE, QUEUE_SIZE, PACKETS):
        if value.strip()[-1:].isdecimal():
            break
        try:
            return quantity, quantity.parse(value)
        except ValueError:
            continue
    return None


# --- the text of a new discipline: the template, or the source of one of ccplay's -----------------

_INSTEAD: dict[str, Option] = {"bandwidth": 10_000_000}
"""Values of parameters that are required and have no default."""

_OURS = Path(__file__).parents[1] / "disciplines"


def fill_template(name: str) -> str:
    """Return the text of the template with a discipline of this name."""
    text = Path(__file__).with_name("template.py").read_text(encoding="utf-8")
    return text.replace("template_", f"{name}_").replace("Template", _class_name(name))


def copy_source(name: str, kind: str) -> str:
    """Return the source of one of ccplay's disciplines, with its parameters declared in it.

    Raises ``UsageError`` for an unknown ``kind``.
    """
    kind = kind.removesuffix(SUFFIX)
    if kind not in CLASSES:
        raise UsageError(
            f"ccplay has no discipline {quote(kind)} in software{did_you_mean(kind, CLASSES)}"
        )
    text = (_OURS / f"{kind}{SUFFIX}").read_text(encoding="utf-8")
    # Statistics are named after their discipline.
    text = re.sub(rf'(?<=["\']){kind}_(?=[a-z{{])', f"{name}_", text)
    text = re.sub(rf"\b{CLASSES[kind]}\b(?=[(.:])", _class_name(name), text)
    lines = text.splitlines()
    imports = [
        node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    at = max((node.end_lineno or 0 for node in imports), default=0)
    return "\n".join([*lines[:at], "", _declaration_of(kind), *lines[at:], ""])


def _class_name(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _declaration_of(kind: str) -> str:
    """Return the source text that declares the parameters of one of ccplay's disciplines."""
    values = complete(kind, {})
    lines = []
    for each in DISCIPLINES[kind].of(SOFTWARE):
        value = values[each.name]
        if each.required and value is None:
            value = _INSTEAD[each.name]
        lines.append(f"    {each.name!r}: {_literal(each, value)!r},")
    return "\n".join([f"{_DECLARATION} = {{", *lines, "}"]).replace("'", '"')


def _literal(field: Field, value: Option | None) -> Any:
    if isinstance(field.quantity.shape.get("enum"), list):
        words = field.quantity.shape["enum"]
        return (value, *(each for each in words if each != value))
    for word, quantity in _MEASURES.items():
        if quantity is field.quantity:
            return word if value is None else field.show(value)
    return value


# --- the user's own disciplines that a lab's command line names -----------------------------------


class DisciplineLibrary:
    """The files of the user's disciplines, by name; a process has one library."""

    def __init__(self) -> None:
        self.files: dict[str, Path] = {}
        self._saved = SavedFiles()

    def add(self, paths: Iterable[Path]) -> None:
        """Add files, and their disciplines to ``model.disciplines``.

        Raises ``CcplayError`` for invalid names and for mistakes in the files.
        """
        for name, path in custom_disciplines(paths).items():
            self.files[name] = path
            self.source(name)

    def source(self, name: str) -> str:
        """Read and return the current source of a discipline; empty for one of ccplay's.

        Raises ``CcplayError`` with the reason if it can't be read or is not Python.
        """
        if (path := self.files.get(name)) is None:
            return ""
        self._saved.note(name, path)
        source = read_source(path)
        disciplines.custom[name] = read_declaration(name, source)
        return source

    def changed(self) -> list[str]:
        """Return the names of disciplines whose files were saved after their source was read."""
        return self._saved.changed(self.files.items())


library = DisciplineLibrary()
"""The user's disciplines in this process."""

MOST_OWN_STATISTICS = 15
"""Largest number of statistics that a user's own discipline may report."""

_STATISTIC = re.compile(r"[a-z][a-z0-9_]{0,39}")

_KEPT = {"qlen": int, "backlog": int, "drops": Counter, "marks": int, "dropped": list}
"""Types of the base class's attributes, which a discipline may read but not replace."""

_NEEDED = ("enqueue", "dequeue")


def load(name: str, source: str) -> type[Discipline]:
    """Run a source and return its discipline: the last subclass of ``Discipline`` in it.

    Raises ``SourceError`` with the line.
    """
    module = ModuleType(f"discipline_{name}")
    # Dataclasses look up their module in ``sys.modules``.
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, file_of(name), "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - that is what the file is for
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the user's code
        raise source_error(name, error) from None
    found = [
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, Discipline)
        and each.__module__ == module.__name__
    ]
    if not found:
        raise SourceError(name, None, "it defines no class that derives from Discipline")
    kind = found[-1]
    for needed in _NEEDED:
        if getattr(kind, needed) is getattr(Discipline, needed):
            raise SourceError(name, None, f"{kind.__name__} has no method {needed}")
    return kind


def make_discipline(name: str, source: str, options: Mapping[str, Option], seed: int) -> Discipline:
    """Return a discipline made from its source; ``options`` that it does not declare are ignored.

    Raises ``SourceError`` with the line.
    """
    parameters = read_declaration(name, source).parameters
    values = {each.name: options.get(each.name, each.default) for each in parameters}
    kind = load(name, source)
    try:
        discipline = kind(Options(values), seed)
        _check_attributes(name, discipline)
        statistics = discipline.statistics()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is the user's code
        raise explain_error(name, error, kind) from None
    check_statistics(name, kind, statistics)
    return discipline


def _check_attributes(name: str, discipline: Discipline) -> None:
    """Raise ``SourceError`` if a discipline has replaced an attribute of the base class."""
    for attribute, kind in _KEPT.items():
        if not isinstance(getattr(discipline, attribute), kind):
            raise SourceError(
                name, None, f"self.{attribute} is kept by the base class: choose another name"
            )


def explain_error(name: str, error: BaseException, kind: type[Discipline]) -> SourceError:
    """Return a ``SourceError`` for an exception that a discipline raised while it ran."""
    if isinstance(error, KeyError):
        words = f"KeyError: {error}"
        if "_values" in _names_of(error):
            words = f"there is no parameter {error}: declare it in PARAMETERS"
        return SourceError(name, source_error(name, error).line, words)
    return source_error(name, error, line_of(kind, "dequeue"))


def line_of(kind: type[Discipline], method: str) -> int | None:
    """Return the line of the source that defines a method; None if it does not define it."""
    code = getattr(getattr(kind, method), "__code__", None)
    return code.co_firstlineno if code and code.co_filename.startswith("<discipline ") else None


def _names_of(error: BaseException) -> tuple[str, ...]:
    """Return the names that the innermost function of a traceback uses."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return () if trace is None else trace.tb_frame.f_code.co_names


def check_statistics(name: str, kind: type[Discipline], statistics: object) -> None:
    """Raise ``SourceError`` for statistics that can't be recorded or plotted."""
    line = line_of(kind, "statistics")
    if not isinstance(statistics, dict):
        raise SourceError(name, line, "statistics must return a dictionary")
    if len(statistics) > MOST_OWN_STATISTICS:
        raise SourceError(
            name, line, f"at most {MOST_OWN_STATISTICS} statistics, not {len(statistics)}"
        )
    for each, value in statistics.items():
        if not isinstance(each, str) or _STATISTIC.fullmatch(each) is None:
            raise SourceError(
                name, line, f"{each!r} can't be the name of a statistic: write {name}_delay_us"
            )
        if not isinstance(value, int | float):
            raise SourceError(name, line, f"the statistic {each} is not a number: {value!r}")
