"""Starts short flows: one program in each host (``transfers``), and reports what they write."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from ccplay.lab.paths import STREAMS, Packets
from ccplay.lab.traffic import congestion
from ccplay.lab.traffic.gate import GateEntry
from ccplay.lab.traffic.program import Hold
from ccplay.lab.traffic.site import Pair, Site
from ccplay.traffic.short_flows import (
    ShortFlowsEnded,
    ShortFlowsProgress,
    ShortFlowsStarted,
    StartShortFlows,
)

_BEFORE_FIRST_ARRIVAL = Hold("sched_yield")
"""Hold at a call that the script makes only once, for this purpose."""


async def start(
    command: StartShortFlows, site: Site, entry: GateEntry
) -> tuple[StartShortFlows, Pair]:
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

    pair = Pair(command, site, read, report, end)
    port, address = site.ports.server(), site.network.address(dst)
    limits = f"{command.duration_s or 0:g}", str(command.count or 0)
    drawn = str(command.rate_bps), str(command.bytes), command.sizes, str(command.seed)
    sending = ["send", address, str(port), congestion.require(cc), *drawn, *limits]
    packets = Packets((src, dst), STREAMS, None, port)
    site.follow(command, packets)
    with site.sending(command, packets):
        await pair.start(
            Path(__file__).with_name("transfers.py"),
            ["receive", str(port)],
            sending,
            _BEFORE_FIRST_ARRIVAL,
            entry,
        )
    site.emit(
        ShortFlowsStarted(
            t=site.clock(),
            short_flows=name,
            src=src,
            dst=dst,
            cc=cc,
            rate_bps=command.rate_bps,
            port=port,
        )
    )
    return command, pair
