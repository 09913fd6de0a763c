"""Expands a command that starts traffic from several senders or in both directions."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.model.base import Command
from ccplay.model.network import Network
from ccplay.model.traffic import started_by

AnyStart = TypeVar("AnyStart", bound=Command)


def singly(command: AnyStart, network: Network | None) -> tuple[AnyStart, ...]:
    """Return a command for each sender and, if traffic is bidirectional, for each direction.

    The traffic from ``dst`` to ``src`` is named ``NAME-back``, or has no name yet if ``command``
    has none. Raises ``CommandError`` if there are too few hosts.
    """
    return tuple(each for one in several(command, network) for each in _directions(one, network))


def several(command: AnyStart, network: Network | None) -> tuple[AnyStart, ...]:
    """Return a command for each sender of a start: the hosts in order, beginning with ``src``.

    Raises ``CommandError`` if there are too few hosts.
    """
    start: Any = command
    count = getattr(start, "senders", 1)
    if count == 1 or network is None:
        return (command,)
    src, dst = ends_of(start, network)
    hosts = [each for each in network.hosts if each != dst]
    if src in hosts:
        first = hosts.index(src)
        hosts = [*hosts[first:], *hosts[:first]]
    if count > len(hosts):
        raise CommandError(f"{count} senders to {dst}: the network has {len(hosts)} other hosts")
    name = start.flow
    return tuple(
        replace(start, src=host, dst=dst, senders=1, flow=name and _numbered(name, number))
        for number, host in enumerate(hosts[:count], 1)
    )


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}-{number}"


def _directions(command: AnyStart, network: Network | None) -> tuple[AnyStart, ...]:
    kind = started_by(command)
    if kind is None or not getattr(command, "bidir", False):
        return (command,)
    start: Any = command
    name = kind.name_of(start)
    src, dst = (start.src, start.dst) if network is None else ends_of(start, network)
    there = replace(start, src=src, dst=dst, bidir=False)
    via = None if there.via is None else there.via[::-1]
    back = replace(there, src=dst, dst=src, via=via, **{kind.field: name and f"{name}-back"})
    return (there, back)


def ends_of(start: Any, network: Network) -> tuple[str | None, str | None]:
    """Return the source and destination of a start, with the defaults that a lab fills in."""
    src, dst = start.src, start.dst
    if src is None and network.senders:
        src = network.senders[0]
        if src == dst:
            src = next((each for each in network.hosts if each != dst), None)
    if dst is None and src in network.hosts:
        dst = network.peer(src)
    return src, dst
