"""A guest: the time to its first sample, and the link rates that it carries in good health."""

import asyncio
import tempfile
import time
from pathlib import Path

from rich.console import Console

from ccplay.analysis.trust import judge
from ccplay.guest import boot
from ccplay.model.commands import Build
from ccplay.model.events import Ready
from ccplay.model.network import Topology
from ccplay.model.samples import Sweep
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.session import launch
from ccplay.state.lab_state import LabState
from ccplay.stream.sources import LabSource
from ccplay.traffic.flow import StartFlow
from tests.bench._figures import table

RATES = (10, 20, 50, 100)
"""Rates of the bottleneck in Mbit/s."""
_BUSY_S = 12.0
"""Seconds of the guest's clock for which a CUBIC flow fills the link; long enough for the sweeps
missed while programs start to be fewer than one in a hundred."""
_MOST_S = 600.0
"""Seconds that the measurement of one rate may take on a busy machine."""


async def run(console: Console) -> None:
    """Measure and print."""
    if (lack := boot.lack()) is not None:
        console.print(f"no guest: {lack}")
        return
    heads = ("bottleneck", "start to first sample s", "goodput of the rate", "health")
    sheet = table(f"a guest, {boot.seen_to_work()}", "first sample within 20 s", heads)
    for rate in RATES:
        started_s, state = await _busy(rate * 1_000_000)
        health = judge(state)
        carried = state.flows["1"].acked * 8 / _BUSY_S / (rate * 1e6)
        sheet.add_row(
            f"{rate} Mbit/s",
            f"{started_s:.1f}",
            f"{carried:.1%}",
            "good" if health.trustworthy else "; ".join(health.reasons),
        )
    console.print(sheet)


async def _busy(rate: int) -> tuple[float, LabState]:
    """Return the seconds to the first sample, and the state of a lab with a busy link."""
    link = LinkSetting(rate=rate, delay_us=5_000, qdisc=Qdisc(kind="fq_codel"))
    build = Build(topology=Topology(kind="linear"), links={"bottleneck": link})
    state, first = LabState(), 0.0
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        source = LabSource(launch.guest_argv(Path(folder)), build, boots=True)
        try:
            async with asyncio.timeout(_MOST_S):
                async for event in source.events():
                    state.apply(event)
                    if isinstance(event, Ready):
                        source.send(StartFlow(flow="1", cc="cubic"))
                    if isinstance(event, Sweep):
                        first = first or time.monotonic() - begun
                    if "1" in state.flows and event.t > state.flows["1"].started + _BUSY_S:
                        break
        finally:
            await source.close()
    return first, state
