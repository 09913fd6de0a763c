"""The command of tc(8) that makes the same queue as ccplay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ccplay.errors import CommandError
from ccplay.model.base import Option
from ccplay.model.commands import SetQdisc
from ccplay.model.discipline import KERNEL, Parameter
from ccplay.model.disciplines import described, plain, validate
from ccplay.model.network import Network
from ccplay.model.quantities import RATE, SHARE, SWITCH, TIME_US
from ccplay.model.values import Qdisc

CLASS = "1:1"
"""HTB's class that has a link's queue as its leaf."""

_UNITS = ((1_000_000, "s"), (1000, "ms"), (1, "us"))
_RATES = ((1_000_000_000, "Gbit"), (1_000_000, "Mbit"), (1000, "kbit"), (1, "bit"))

_MILLISECONDS = ("rehash", "db")
"""Names of times that tc reads as a plain number of milliseconds."""

_NEEDED = {"red": {"avpkt": 1000}}
"""Options that tc requires and the kernel does not, by kind."""


def queue_line(qdisc: Qdisc, interface: str, parent: str = CLASS) -> str | None:
    """Return the tc command that makes the same queue on an interface as ccplay does.

    For a discipline in software it makes the kernel's of the same name. None if no single command
    can make it, or the discipline is unknown.
    """
    words = queue_words(qdisc)
    if words is None:
        return None
    return " ".join(["tc", "qdisc", "replace", "dev", interface, "parent", parent, *words])


def queue_words(qdisc: Qdisc) -> list[str] | None:
    """Return a queue's kind and parameters as tc takes them; None as in ``queue_line``."""
    found = described(qdisc.kind)
    if found is None or not found.in_kernel:
        return None
    try:
        qdisc = validate(qdisc)
    except ValueError:
        # A stranger's recording may have any options.
        return None
    kind = plain(qdisc.kind)
    options: Mapping[str, Option] = {**_NEEDED.get(kind, {}), **qdisc.options}
    words = [kind]
    hidden = {_MASK, "ack_filter" if options.get("ack_filter_aggressive") else ""}
    for each in found.of(KERNEL):
        if (value := options.get(each.name)) is not None and each.name not in hidden:
            words += _words(each, value)
            if each.name == _SELECTOR:
                words[-1] = f"{value:#x}/{int(options.get(_MASK, 0)):#x}"
    return words


def queue_lines(command: SetQdisc, network: Network, classes: Sequence[str] = ()) -> list[str]:
    """Return the tc commands for a ``SetQdisc``, one for each interface of its link.

    ``classes`` are the names of the link's classes, in order. The list is empty if tc has no such
    command or the link is unknown.
    """
    parent = CLASS
    if command.traffic_class is not None:
        if command.traffic_class not in classes:
            return []
        parent = f"1:{_FIRST + classes.index(command.traffic_class):x}"
    try:
        links = network.resolve(command.link)
    except CommandError:
        return []
    lines = (queue_line(command.qdisc, each.interface, parent) for each in links)
    return [line for line in lines if line is not None]


_FIRST = 0x10
"""Minor number of the first class that shares a link's rate."""

_SELECTOR, _MASK = "ce_threshold_selector", "ce_threshold_mask"
"""Two of the kernel's parameters that are one word for tc."""


def _words(parameter: Parameter, value: Option) -> list[str]:
    """Return the words for one parameter."""
    if parameter.quantity is SWITCH:
        on, _, off = (parameter.tc or parameter.name).partition("|")
        return [word for word in (on if value else off,) if word]
    text = _text(parameter, value)
    return (parameter.tc or f"{parameter.name} {{}}").format(text).split()


def _text(parameter: Parameter, value: Option) -> str:
    if parameter.name in _MILLISECONDS:
        return str(int(value) // 1000)
    if parameter.quantity is TIME_US:
        return scaled(int(value), _UNITS)
    if parameter.quantity is RATE:
        return scaled(int(value), _RATES)
    if parameter.quantity is SHARE:
        return f"{float(value):.9f}".rstrip("0").rstrip(".")
    return str(value)


def scaled(value: int, units: tuple[tuple[int, str], ...]) -> str:
    """Return a whole number in the largest unit that has no fraction."""
    return next(f"{value // unit}{name}" for unit, name in units if value % unit == 0)
