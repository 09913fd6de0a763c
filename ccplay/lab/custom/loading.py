"""Loads a discipline from its source: runs it once, finds its class, and makes an object.

The source is code of the user who named its file on a command line. It runs with the rights of the
process that loads it: in a lab that is ``software queue``, in the lab's namespaces.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping
from types import ModuleType

from ccplay.lab.custom.declaring import SourceError, file_of, read_declaration, source_error
from ccplay.lab.disciplines.base import Discipline, Options
from ccplay.model.base import Option

MOST_STATISTICS = 15
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
    if len(statistics) > MOST_STATISTICS:
        raise SourceError(
            name, line, f"at most {MOST_STATISTICS} statistics, not {len(statistics)}"
        )
    for each, value in statistics.items():
        if not isinstance(each, str) or _STATISTIC.fullmatch(each) is None:
            raise SourceError(
                name, line, f"{each!r} can't be the name of a statistic: write {name}_delay_us"
            )
        if not isinstance(value, int | float):
            raise SourceError(name, line, f"the statistic {each} is not a number: {value!r}")
