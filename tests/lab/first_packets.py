"""When each flow, ping and UDP stream sent its first data, read from a capture at the sender."""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ccplay.lab.traffic.iperf import COOKIE_OCTETS
from ccplay.lab.traffic.program import SENDERS
from ccplay.model.base import StartTraffic
from ccplay.model.commands import Build, StartCapture, StartTogether, StopCapture
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting
from ccplay.session import launch
from tests.lab.conftest import running

_ICMP, _TCP, _UDP = 1, 6, 17
_ECHO = 8
_HELLO_OCTETS = 32
"""Length of the IP packet with iperf3's UDP hello, which is not data."""


class Firsts(NamedTuple):
    """Moments in Unix time, in ascending order."""

    packets: list[float]
    """Moments of the first packet of each; for a flow its SYN."""
    data: list[float]
    """Moments of the first data of each; for a ping its first request."""
    flows: list[float]
    """Moments at which each flow began, as reported by the lab."""


def firsts(folder: Path) -> Firsts:
    """Return the moments of each one's first packet and first data; answers do not count.

    ``folder`` has one capture.
    """
    (path,) = folder.iterdir()
    data, at = path.read_bytes(), 0
    first, begun = dict[tuple[int, int], float](), dict[tuple[int, int], float]()
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:  # an enhanced packet block, times in nanoseconds
            high, low = struct.unpack_from("<II", data, at + 12)
            frame = data[at + 28 : at + length]
            if (who := _sender(frame)) is not None:
                first.setdefault(who, (high << 32 | low) * 1e-9)
                if who[0] != _TCP or _payload(frame) > COOKIE_OCTETS:
                    begun.setdefault(who, (high << 32 | low) * 1e-9)
        at += length
    return Firsts(sorted(first.values()), sorted(begun.values()), [])


def _payload(frame: bytes) -> int:
    """Return the number of bytes in a TCP segment's payload."""
    header = 4 * (frame[14] & 15)
    whole = int(struct.unpack_from("!H", frame, 16)[0])
    return whole - header - 4 * (frame[14 + header + 12] >> 4)


def _sender(frame: bytes) -> tuple[int, int] | None:
    """Return protocol, and port or identifier, of a packet sent by traffic; else None."""
    protocol, payload = frame[23], 14 + 4 * (frame[14] & 15)
    if protocol == _ICMP and frame[payload] == _ECHO:
        return protocol, int(struct.unpack_from("!H", frame, payload + 4)[0])
    if protocol in (_TCP, _UDP) and struct.unpack_from("!H", frame, 16)[0] != _HELLO_OCTETS:
        port = int(struct.unpack_from("!H", frame, payload)[0])
        return (protocol, port) if port in SENDERS else None
    return None


async def moments(
    folder: Path, commands: Sequence[StartTraffic], *, together: bool = True
) -> tuple[float, Firsts]:
    """Start traffic from h1; return the intended moment, and the moments of the first data.

    In Unix time. Without ``together`` the commands are sent one after another, and the moment is
    that of the first.
    """
    links = {"bottleneck": LinkSetting(rate=100_000_000, delay_us=5_000)}
    build = Build(topology=Topology(kind="linear"), links=links)
    async with running(build, argv=launch.lab_argv(captures=folder)) as lab:
        lab.send(StartCapture(link="h1->r"))
        await lab.until(lambda state: state.captures)
        at = lab.state.now + 0.5 + 0.05 * len(commands) if together else lab.state.now
        if together:
            lab.source.send(StartTogether(at=at, commands=[*commands]))
        else:
            lab.send(*commands)
        count = len(commands)
        await lab.until(
            lambda state: (
                len(state.traffic) == count
                and all(each.ended is not None for each in state.traffic.values())
            )
        )
        lab.send(StopCapture(capture="c1"))
        await lab.until(lambda state: not state.captures)
        # So long it takes until a lab has looked at itself.
        await lab.until(lambda state: state.healths)
        assert not [each for each in lab.state.traffic.values() if each.error]
        assert lab.state.hello is not None
        wall = lab.state.hello.wall_time
        flows = sorted(wall + each.started for each in lab.state.flows.values())
    found = firsts(folder)
    assert len(found.data) == count
    return wall + at, found._replace(flows=flows)
