"""Starts short flows: one program in each host (``transfers``), and reports what they write."""

from __future__ import annotations

import socket
from pathlib import Path

from msgspec.structs import replace

from ccplay.lab.htb import tcp_packets
from ccplay.lab.paths import Packets
from ccplay.lab.traffic import congestion
from ccplay.lab.traffic.gate import Entry, Pair
from ccplay.lab.traffic.program import Hold
from ccplay.lab.traffic.site import Site
from ccplay.traffic.short_flows import (
    ShortFlowsEnded,
    ShortFlowsProgress,
    ShortFlowsStarted,
    StartShortFlows,
)

_BEFORE_FIRST_ARRIVAL = Hold("sched_yield")
"""Hold at a call that the script makes only once, for this purpose."""


async def start(command: StartShortFlows, site: Site, entry: Entry) -> tuple[StartShortFlows, Pair]:
    """Start both programs; transfers begin at the moment of ``entry``."""
    name, src, dst = command.short_flows or "", command.src or "", command.dst or ""
    cc = site.choose_cc(src, command.cc)
    command = replace(command, cc=cc)
    started, failed, sizes, fct_us, taken = 0, 0, list[int](), list[float](), list[int]()

    def read(line: str) -> None:
        nonlocal started, failed
        match line.split():
            case ["done", size, took, sport]:
                sizes.append(int(size))
                fct_us.append(float(took))
                if site.paths is not None:
                    path = site.paths.transfer(name, int(sport), port)
                    taken.extend([] if path is None else [path])
            case ["failed"]:
                failed += 1
            case ["started"]:
                started += 1

    def report() -> None:
        site.emit(
            ShortFlowsProgress(
                t=site.clock(),
                short_flows=name,
                started=started,
                failed=failed,
                bytes=[*sizes],
                fct_us=[*fct_us],
                path=[*taken],
            )
        )
        for each in (sizes, fct_us, taken):
            each.clear()

    def end(error: str | None) -> None:
        site.emit(ShortFlowsEnded(t=site.clock(), short_flows=name, error=error))

    pair = Pair(src, dst, read, report, end)
    port, address, rate = site.ports.server(), site.address(dst), command.rate_bps
    limits = f"{command.duration_s or 0:g}", str(command.count or 0)
    drawn = str(rate), str(command.bytes), command.sizes, str(command.seed)
    sending = ["send", address, str(port), congestion.require(cc), *drawn, *limits]
    site.follow(name, Packets((src, dst), socket.IPPROTO_TCP, None, port), command.via)
    with site.admitted(tcp_packets("short-flows", name, address, port)):
        await pair.start(
            Path(__file__).with_name("transfers.py"),
            (site.namespace(dst), ["receive", str(port)]),
            (site.namespace(src), sending),
            _BEFORE_FIRST_ARRIVAL,
            entry,
        )
    site.emit(
        ShortFlowsStarted(
            t=site.clock(), short_flows=name, src=src, dst=dst, cc=cc, rate_bps=rate, port=port
        )
    )
    return command, pair
