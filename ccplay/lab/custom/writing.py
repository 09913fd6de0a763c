"""The text of a new discipline: the template, or the source of one of ccplay's disciplines."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from ccplay.errors import UsageError
from ccplay.lab import disciplines
from ccplay.lab.custom import template
from ccplay.lab.custom.loading import write_declaration
from ccplay.lab.disciplines.table import CLASSES
from ccplay.model.base import Option
from ccplay.model.disciplines import DISCIPLINES, SUFFIX, complete
from ccplay.model.qdiscs import SOFTWARE
from ccplay.model.quantities import did_you_mean, quote

_INSTEAD: dict[str, Option] = {"bandwidth": 10_000_000}
"""Values of parameters that are required and have no default."""


def fill_template(name: str) -> str:
    """Return the text of the template with a discipline of this name."""
    text = Path(template.__file__).read_text(encoding="utf-8")
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
    folder = Path(next(iter(disciplines.__path__)))
    text = (folder / f"{kind}{SUFFIX}").read_text(encoding="utf-8")
    # Statistics are named after their discipline.
    text = re.sub(rf'(?<=["\']){kind}_(?=[a-z{{])', f"{name}_", text)
    text = re.sub(rf"\b{CLASSES[kind]}\b(?=[(.:])", _class_name(name), text)
    lines = text.splitlines()
    imports = [
        node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    at = max((node.end_lineno or 0 for node in imports), default=0)
    return "\n".join([*lines[:at], "", _declaration(kind), *lines[at:], ""])


def _declaration(kind: str) -> str:
    values = complete(kind, {})
    needed = {
        each.name: _INSTEAD[each.name]
        for each in DISCIPLINES[kind].of(SOFTWARE)
        if each.required and values[each.name] is None
    }
    values = {**values, **needed}
    return write_declaration(
        {each.name: (each, values[each.name]) for each in DISCIPLINES[kind].of(SOFTWARE)}
    )


def _class_name(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))
