"""Reads what the source of a discipline declares, its summary and parameters, without running it.

``PARAMETERS`` is a dictionary of literals. Each value gives a parameter its kind and default:

    "5 ms"  "10 Mbit/s"  "1000 packets"  "150 kB"    a time, a rate, packets, bytes
    "time"  "rate"  "packets"  "bytes"               one of these kinds, off by default
    8  0.5  True                                     a whole number, a number, a switch
    ("first", "second")                              one of these words, the first by default
"""

from __future__ import annotations

import ast
from typing import Any

from ccplay.lab.custom.faults import SourceError, fault, file_of
from ccplay.model.base import Option
from ccplay.model.discipline import Discipline, Parameter, parameter
from ccplay.model.fields import Field
from ccplay.model.quantities import COUNT, NUMBER, PACKETS, QUEUE_SIZE, RATE, SWITCH, TIME_US
from ccplay.model.texts import choice

_DECLARATION = "PARAMETERS"

_MEASURES = {"time": TIME_US, "rate": RATE, "packets": PACKETS, "bytes": QUEUE_SIZE}
"""Quantities by the word that declares a parameter of this quantity, off by default."""

_BY_ITSELF = {"limit": "1000 packets"}
"""Parameters of a source that declares none."""

_MOST = 16


def declared(name: str, source: str) -> Discipline:
    """Return the description of a discipline from its source. Raises ``SourceError``."""
    try:
        tree = ast.parse(source, file_of(name))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise fault(name, error) from None
    summary = (ast.get_docstring(tree) or "your own").strip().splitlines()[0].rstrip(".")
    parameters = tuple(
        _parameter(name, key, value, line) for key, (value, line) in _values(name, tree).items()
    )
    return Discipline(name, summary, parameters, in_kernel=False)


def written(values: dict[str, tuple[Field, Option | None]]) -> str:
    """Return the source text that declares parameters with these values."""
    lines = (f"    {key!r}: {_literal(field, value)!r}," for key, (field, value) in values.items())
    return "\n".join([f"{_DECLARATION} = {{", *lines, "}"]).replace("'", '"')


def _literal(field: Field, value: Option | None) -> Any:
    if isinstance(field.quantity.shape.get("enum"), list):
        words = field.quantity.shape["enum"]
        return (value, *(each for each in words if each != value))
    for word, quantity in _MEASURES.items():
        if quantity is field.quantity:
            return word if value is None else field.show(value)
    return value


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
