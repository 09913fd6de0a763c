"""An hour of a real lab's stream: 20 s of it, repeated, while its counters keep growing."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from msgspec.structs import replace

from ccplay.model.base import Event
from ccplay.model.commands import Build
from ccplay.model.events import Health
from ccplay.model.network import Topology
from ccplay.model.samples import QdiscSamples, Sweep, TcpSamples
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.traffic.flow import StartFlow
from ccplay.traffic.ping import PingSample, StartPing
from tests.bench._running import running

FLOWS = 8
HZ = 50
HOUR_S = 3600.0

_LAP_S = 20.0
_ALGORITHMS = ("reno", "cubic")
_COUNTERS = (
    *("bytes_acked", "bytes_sent", "total_retrans", "delivered_ce"),
    *("drops", "ecn_marks", "overlimits", "requeues", "bytes", "packets"),
)
S = TypeVar("S", TcpSamples, QdiscSamples)


async def sample(rate: int) -> list[Event]:
    """Run a lab with 8 flows and a ping at ``rate`` bits per second; return its events."""
    queue = Qdisc(kind="pfifo", options={"limit": 100})
    build = Build(
        topology=Topology(pairs=FLOWS),
        links={"bottleneck": LinkSetting(rate=rate, delay_us=10_000, qdisc=queue)},
        sample_hz=HZ,
    )
    async with running(build) as lab:
        starts = [
            StartFlow(src=f"s{n}", cc=_ALGORITHMS[n % len(_ALGORITHMS)])
            for n in range(1, FLOWS + 1)
        ]
        await lab.send(*starts, StartPing())
        # All flows have left slow start before the part that is repeated.
        await lab.run_for(5.0 + _LAP_S)
        return list(lab.events)


def hour(events: Sequence[Event]) -> Iterator[Event]:
    """Yield an hour of events: the given ones, then samples of their last 20 s repeatedly."""
    end = events[-1].t
    lap = [
        each
        for each in events
        if each.t > end - _LAP_S and isinstance(each, Sweep | PingSample | Health)
    ]
    sweeps = [each for each in lap if isinstance(each, Sweep)]
    yield from events
    turn = 1
    while (begins := end + (turn - 1) * _LAP_S) < HOUR_S:
        for event in lap:
            t = event.t + turn * _LAP_S
            # Rounding makes the last digits differ from lap to lap, as they do on a real clock.
            moved = replace(event, t=max(round(t, 6), begins))
            yield _grown(moved, turn, sweeps[0], sweeps[-1]) if isinstance(moved, Sweep) else moved
        turn += 1


def _grown(sweep: Sweep, laps: int, first: Sweep, last: Sweep) -> Sweep:
    assert sweep.tcp
    assert sweep.qdisc
    assert first.tcp
    assert first.qdisc
    assert last.tcp
    assert last.qdisc
    return replace(
        sweep,
        tcp=_more(sweep.tcp, laps, first.tcp, last.tcp),
        qdisc=_more(sweep.qdisc, laps, first.qdisc, last.qdisc),
    )


def _more(samples: S, laps: int, first: S, last: S) -> S:
    grown = {}
    for name in set(_COUNTERS).intersection(samples.__struct_fields__):
        rows = zip(*(getattr(each, name) for each in (samples, first, last)), strict=True)
        grown[name] = [None if n is None else n + laps * (b - a) for n, a, b in rows]
    return replace(samples, **grown)
