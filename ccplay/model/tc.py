"""The commands of tc(8) that are equivalent to ccplay's settings of a queue or a link."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from ccplay.model.algorithms import UNIFORM
from ccplay.model.base import Option
from ccplay.model.disciplines import described, plain, validate
from ccplay.model.network import Link, Network
from ccplay.model.qdiscs import KERNEL, Parameter
from ccplay.model.quantities import RATE, SHARE, SWITCH, TIME_US
from ccplay.model.values import LinkFields, LinkSetting, Qdisc

CLASS = "1:1"
"""HTB class that has a link's queue as its leaf."""

_UNITS = ((1_000_000, "s"), (1000, "ms"), (1, "us"))
_RATES = ((1_000_000_000, "Gbit"), (1_000_000, "Mbit"), (1000, "kbit"), (1, "bit"))

_MILLISECONDS = ("rehash", "db")
"""Names of times that tc reads as plain numbers of milliseconds."""

_NEEDED = {"red": {"avpkt": 1000}}
"""Options that tc requires although the kernel does not, by kind of queue."""


def queue_line(qdisc: Qdisc, interface: str, parent: str = CLASS) -> str | None:
    """Return the tc command for the same queue on an interface.

    For a discipline in software, the command creates the kernel's discipline of the same name.
    Return None if no single command can create the queue, or if it is unknown or invalid.
    """
    words = queue_words(qdisc)
    if words is None:
        return None
    return " ".join(["tc", "qdisc", "replace", "dev", interface, "parent", parent, *words])


def queue_words(qdisc: Qdisc) -> list[str] | None:
    """Return a queue's kind and parameters in the syntax of tc; None if it can't be written so."""
    found = described(qdisc.kind)
    if found is None or not found.in_kernel:
        return None
    try:
        qdisc = validate(qdisc)
    except ValueError:
        # A recording from elsewhere may have any options.
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


def queue_lines(
    qdisc: Qdisc, traffic_class: str | None, links: Sequence[Link], classes: Sequence[str] = ()
) -> list[str]:
    """Return the tc commands that put a queue in front of links, one for each interface.

    ``classes`` are the names of the links' classes, in order. Empty if tc can't make the queue, or
    the class is unknown.
    """
    parent = CLASS
    if traffic_class is not None:
        if traffic_class not in classes:
            return []
        parent = f"1:{_FIRST + classes.index(traffic_class):x}"
    lines = (queue_line(qdisc, each.interface, parent) for each in links)
    return _harmless([line for line in lines if line is not None])


_HARMLESS = re.compile(r"[A-Za-z0-9 ._:/%-]*")


def _harmless(lines: list[str]) -> list[str]:
    """Return lines for a person's shell; none if one has a character that a shell interprets.

    Names of interfaces and distributions may come from an untrusted recording.
    """
    return lines if all(_HARMLESS.fullmatch(line) for line in lines) else []


def link_lines(
    change: LinkFields, links: Sequence[Link], network: Network, now: Callable[[str], LinkSetting]
) -> list[str]:
    """Return the tc commands for a change of links; ``now`` returns a direction's setting.

    The rate is that of HTB's class. Delay, jitter and faults are netem's, on an ifb device that
    receives the packets arriving at the link's end (tc-mirred(8)), whether ccplay uses netem or its
    own delay line; the commands that create this device come first. Empty if tc can't make the
    change.
    """
    lines = []
    for link in links:
        if change.rate:
            most = burst(change.rate)
            words = f"rate {scaled(change.rate, _RATES)} burst {most} cburst {most} quantum {FRAME}"
            lines.append(
                f"tc class replace dev {link.interface} parent 1: classid {CLASS} htb {words}"
            )
        if any(getattr(change, name) is not None for name in _IMPAIRMENTS):
            lines += _netem_lines(link, network, now(link.name).changed_by(change))
    return _harmless(lines)


_IMPAIRMENTS = (
    *("delay_us", "jitter_us", "distribution", "loss", "gemodel"),
    *("reorder", "duplicate", "corrupt"),
)
"""Fields of a link's setting that netem implements."""

FRAME = 1514
"""Length of a full packet with its Ethernet header in bytes."""


def burst(rate: int) -> int:
    """Return the bytes that HTB may send at once at a rate in bit/s: two frames or 1 ms of data.

    The greater of the two applies; a timer that is late by less than that does not reduce the rate.
    """
    return max(2 * FRAME, rate // 8 // 1000)


def _netem_lines(link: Link, network: Network, setting: LinkSetting) -> list[str]:
    arrives = network.opposite(link).interface
    ifb = f"ifb{network.links.index(link) + 1}"
    return [
        f"ip link add {ifb} type ifb",
        f"ip link set {ifb} up",
        f"tc qdisc add dev {arrives} ingress",
        f"tc filter add dev {arrives} ingress matchall action mirred egress redirect dev {ifb}",
        " ".join([f"tc qdisc replace dev {ifb} root", *netem_words(setting)]),
    ]


def netem_words(setting: LinkSetting) -> Iterator[str]:
    """Return netem's name and parameters for a link's setting."""
    # With a rate, here one that delays next to nothing, netem keeps packets in order.
    yield f"netem limit {NETEM_LIMIT} rate {scaled(NETEM_RATE, _RATES)}"
    if setting.delay_us or setting.jitter_us:
        yield f"delay {scaled(setting.delay_us or 0, _UNITS)}"
    if setting.jitter_us:
        yield scaled(setting.jitter_us, _UNITS)
        if setting.distribution not in (None, UNIFORM):
            yield f"distribution {setting.distribution}"
    if setting.gemodel:
        yield " ".join(["loss gemodel", *map(_percent, setting.gemodel)])
    elif setting.loss:
        yield f"loss {_percent(setting.loss)}"
    for name in ("duplicate", "corrupt", "reorder"):
        if share := getattr(setting, name):
            yield f"{name} {_percent(share)}"


NETEM_LIMIT = 1 << 17
"""Largest number of packets in flight: full frames at 1 Gbit/s for 1.5 s."""

NETEM_RATE = 34_000_000_000
"""Rate in bits per second that delays a frame by 0.4 us. With a rate, netem keeps packets in order
if jitter or a shorter delay would let later ones overtake (``netem_enqueue``,
net/sched/sch_netem.c)."""


def _percent(share: float) -> str:
    return f"{share * 100:.9f}".rstrip("0").rstrip(".") + "%"


_FIRST = 0x10
"""Minor number of the first class that shares a link's rate."""

_SELECTOR, _MASK = "ce_threshold_selector", "ce_threshold_mask"
"""Two parameters of the kernel that tc combines as ``SELECTOR/MASK``."""


def _words(parameter: Parameter, value: Option) -> list[str]:
    """Return one parameter in the syntax of tc."""
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
    """Return a whole number in the largest unit that leaves no fraction."""
    return next(f"{value // unit}{name}" for unit, name in units if value % unit == 0)
