"""Queue disciplines in a scenario: a kind and its parameters, read into ``model.Qdisc``."""

from __future__ import annotations

from typing import Any

from ccplay.model.base import Option
from ccplay.model.disciplines import NOT_OF_CLASS, described, kinds, software_only, validate
from ccplay.model.quantities import Plain
from ccplay.model.quoting import MisfitError, quote
from ccplay.model.texts import choice
from ccplay.model.values import Qdisc
from ccplay.scenario.file.mistakes import Place
from ccplay.scenario.file.tree import Node, Reader, unknown_key


def _kind(value: Any) -> str:
    """Read a kind, possibly the user's own. Raises ``ValueError`` with a suggestion."""
    try:
        return str(choice("queue discipline", kinds()).read(value))
    except ValueError as error:
        if str(error).endswith("?") or not isinstance(value, str) or not value.isidentifier():
            raise
        raise MisfitError(f"{error}; if it is your own, add --discipline {value}.py") from None


def read_qdisc(
    place: Place, table: dict[str, Node], reader: Reader, *, of_class: bool = False
) -> Qdisc | None:
    """Read ``{ kind = "codel", target = "5 ms" }``; None if it has a mistake.

    ``of_class`` is whether it is the queue of a class, which must be the kernel's.
    """
    if "kind" not in table:
        reader.mistakes.add(place, 'kind is missing: which queue, such as "pfifo"')
        return None
    kind = reader.value(table["kind"], _kind, "")
    discipline = described(kind) if kind else None
    if discipline is None:
        return None
    before = reader.mistakes.count
    if of_class and software_only(kind):
        reader.mistakes.add(table["kind"].place, f"{kind} {NOT_OF_CLASS}")
    known = discipline.names
    options: dict[str, Option] = {}
    nothing: Option = False
    for name, node in table.items():
        if name == "kind":
            continue
        if discipline.open:
            # The lab has its file, and reads values as people write them.
            options[name] = reader.value(node, _any, nothing)
        elif name in known:
            options[name] = reader.value(node, discipline.parameter(name).read, 0)
        else:
            reader.mistakes.add(node.place, f"{kind}: {unknown_key(name, known)}")
    if reader.mistakes.count > before:
        return None
    return reader.value(
        Node(place, None), lambda _: validate(Qdisc(kind=kind, options=options)), None
    )


def _any(value: Any) -> Option:
    if not isinstance(value, bool | int | float | str):
        raise MisfitError(f"must be a number, text, or true or false, not {quote(value)}")
    return value


def write_qdisc(qdisc: Qdisc) -> dict[str, Plain]:
    """Write a queue discipline with its given parameters."""
    known = described(qdisc.kind)
    parameters = {} if known is None else {each.name: each for each in known.parameters}
    written: dict[str, Plain] = {"kind": qdisc.kind}
    for name, value in qdisc.options.items():
        parameter = parameters.get(name)
        # A stranger's recording may have text or a flag where a number belongs.
        written[name] = value
        if parameter is not None and not isinstance(value, str):
            written[name] = parameter.write(parameter.quantity.type(value))
    return written
