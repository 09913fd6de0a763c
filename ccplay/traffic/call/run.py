"""Starts one direction of a video call: one program in each host (``video``), and reports of it."""

from __future__ import annotations

from pathlib import Path

from ccplay.lab.paths import DATAGRAMS, Packets
from ccplay.lab.traffic.gate import GateEntry
from ccplay.lab.traffic.program import Hold
from ccplay.lab.traffic.site import Pair, Site
from ccplay.model.values import Monitored
from ccplay.traffic.call import CallEnded, CallSample, CallStarted, StartCall

_FINDS_ITS_ADDRESS = Hold("connect")
"""Hold just before the first packet, at the call by which the sender finds its source address."""


async def start(command: StartCall, site: Site, entry: GateEntry) -> tuple[StartCall, Pair]:
    """Start both programs; the first frame is sent at the moment of ``entry``."""
    name, src, dst = command.call or "", command.src or "", command.dst or ""
    seen: Monitored | None = None
    freezes, frozen_us, rate_bps, sent = 0, 0, 0, 0

    def read(line: str) -> None:
        nonlocal seen, freezes, frozen_us, rate_bps, sent
        match line.split():
            case ["seen", *words]:
                counts = [*map(int, words)]
                seen = Monitored(
                    sent=counts[0],
                    received=counts[1],
                    received_bytes=counts[2],
                    delay_mean_us=counts[3] / counts[1],
                    delay_min_us=counts[4],
                    delay_max_us=counts[5],
                )
                freezes, frozen_us, rate_bps = counts[6:]
            case ["sent", packets]:
                sent = int(packets)

    def report() -> None:
        if seen is not None:
            sample = CallSample(
                t=site.clock(),
                call=name,
                monitored=seen,
                freezes=freezes,
                frozen_us=frozen_us,
                rate_bps=rate_bps,
            )
            site.emit(sample)

    def end(error: str | None) -> None:
        now = site.clock()
        duration_s = max(now - began, 0.0)
        site.emit(CallEnded(t=now, call=name, sent=sent, duration_s=duration_s, error=error))

    port, (sport,) = site.ports.server(), site.ports.senders(1)
    began = site.clock()
    pair = Pair(command, site, read, report, end)
    packets = Packets((src, dst), DATAGRAMS, range(sport, sport + 1), port)
    site.follow(command, packets)
    site.connected(name, name, sport, port)
    words = str(port), str(sport), str(command.rate_bps), f"{command.duration_s or 0:g}"
    with site.sending(command, packets):
        await pair.start(
            Path(__file__).with_name("video.py"),
            ["receive", str(port)],
            ["send", site.network.address(dst), *words],
            _FINDS_ITS_ADDRESS,
            entry,
        )
    began = site.clock()
    site.emit(CallStarted(t=began, call=name, src=src, dst=dst, rate_bps=command.rate_bps))
    return command, pair
