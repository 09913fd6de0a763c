"""Queue disciplines in a scenario: a kind and its parameters, read into ``model.Qdisc``."""

from __future__ import annotations

from typing import Any

from ccplay.model.base import Option
from ccplay.model.disciplines import DISCIPLINES, validate
from ccplay.model.values import Qdisc
from ccplay.scenario.fields import quantities
from ccplay.scenario.file.mistakes import Place, quote
from ccplay.scenario.file.tree import Node, Reader, unknown_key

_NEEDS_UNIT = {"us": "5 ms", "bytes": "150 kB", "bit/s": "10 Mbit/s"}


def read_qdisc(place: Place, table: dict[str, Node], reader: Reader) -> Qdisc | None:
    """Read ``{ kind = "codel", target = "5 ms" }``; None where it is a mistake."""
    if "kind" not in table:
        reader.mistakes.add(place, 'kind is missing: which queue, such as "pfifo"')
        return None
    kinds = tuple(DISCIPLINES)
    kind = reader.value(table["kind"], quantities.Choice("queue discipline", kinds), "")
    if not kind:
        return None
    before = reader.mistakes.count
    known = [parameter.name for parameter in DISCIPLINES[kind].parameters]
    options: dict[str, Option] = {}
    for name, node in table.items():
        if name == "kind":
            continue
        if name in known:
            options[name] = reader.value(node, _parameter(kind, name), 0)
        else:
            reader.mistakes.add(node.place, f"{kind}: {unknown_key(name, known)}")
    if reader.mistakes.count > before:
        return None
    return reader.value(
        Node(place, None), lambda _: validate(Qdisc(kind=kind, options=options)), None
    )


def _parameter(kind: str, name: str) -> Any:
    parameter = DISCIPLINES[kind].parameter(name)

    def read(value: Any) -> Option:
        if isinstance(value, str):
            return parameter.read(value)
        if parameter.unit in _NEEDS_UNIT and not isinstance(value, bool):
            example = _NEEDS_UNIT[parameter.unit]
            raise quantities.MisfitError(
                f'{quote(value)} has no unit: write it such as "{example}"'
            )
        if isinstance(value, float) or not isinstance(value, bool | int):
            raise quantities.MisfitError(f"{name} can't be {quote(value)}")
        return parameter.check(value)

    return read
