"""Events for tests: a Hello, healths, links, and samples of flows and queues by what matters."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ccplay.model.events import Health, Hello, LinkChanged
from ccplay.model.network import Topology
from ccplay.model.samples import QdiscSamples, TcpSamples
from ccplay.model.series import Series, Timeline
from ccplay.model.topologies import plan
from ccplay.model.values import Capabilities, LinkSetting, Monitored
from ccplay.state.lab_state import LabState
from ccplay.stream import wire
from ccplay.stream.sinks import Recorder

PLAYGROUND = Path(__file__).parent / "ui" / "recordings" / "playground.ccplay"
"""Recording of a real lab, in format 1."""

CAPABILITIES = Capabilities(
    kernel="", privilege="root", congestion_controls=[], qdiscs=[], delay_engines=[], tools=[]
)
HELLO = Hello(
    t=0.0,
    format=wire.FORMAT,
    version="0",
    wall_time=0.0,
    sample_hz=50,
    capabilities=CAPABILITIES,
    network=plan(Topology()),
)
HEALTH = Health(
    t=1.0,
    ticks=50,
    missed=0,
    late_p50_us=100.0,
    late_p99_us=900.0,
    sweep_p50_us=200.0,
    lab_cpu=0.05,
    host_cpu=0.2,
    steal=0.0,
)
"""The health of a good second."""


def folded(*events: object) -> LabState:
    """Return the state after these events."""
    state = LabState()
    for event in events:
        state.apply(event)
    return state


def recorded(path: Path, events: Iterable[Any], title: str = "") -> Path:
    """Record events as a session does; return the path."""
    recorder = Recorder(path, title)
    for event in events:
        recorder.put(event)
    recorder.close()
    return path


def health(t: float, **changes: Any) -> Health:
    """Return the health of a good second, except for ``changes``."""
    return replace(HEALTH, t=t, **changes)


def link_changed(
    t: float, link: str, setting: LinkSetting | None = None, **settings: Any
) -> LinkChanged:
    """Return the change of a link to a setting, which is given whole or by its fields."""
    return LinkChanged(
        t=t,
        link=link,
        setting=setting or LinkSetting(**settings),
        offloads=False,
        delay_engine="netem",
    )


def series_of(values: Iterable[float | None], interval: float = 0.02) -> Series:
    """Return a series with a value every ``interval`` seconds."""
    timeline = Timeline()
    series = Series(timeline)
    for at, value in enumerate(values):
        series.put(timeline.append(at * interval), value)
    return series


def tcp(flows: str | Iterable[str] = "1", fill: int = 0, **columns: Any) -> TcpSamples:
    """Return the samples of flows in a sweep.

    A column is a list with a value for each flow, or one value for all; others are ``fill``.
    """
    names = [flows] if isinstance(flows, str) else list(flows)
    return TcpSamples(
        **_columns(TcpSamples.__struct_fields__, names, fill, _NOTHING | columns) | {"flow": names}
    )


def qdisc(links: str | Iterable[str] = "r1->r2", fill: int = 0, **columns: Any) -> QdiscSamples:
    """Return the samples of queues in a sweep, with columns as those of ``tcp``."""
    names = [links] if isinstance(links, str) else list(links)
    return QdiscSamples(
        **_columns(QdiscSamples.__struct_fields__, names, fill, {"kind": "pfifo"} | columns)
        | {"link": names}
    )


def monitored(
    sent: int, received: int, mean_us: float | None, *, size: int = 1000, **delays: float
) -> Monitored:
    """Return the counts of packets of ``size`` bytes; each took ``mean_us``, but for ``delays``."""
    alike = Monitored(sent, received, received * size, mean_us, mean_us, mean_us)
    return replace(alike, **delays)


_NOTHING = {"cc": "reno", "ssthresh": None}


def _columns(
    fields: Sequence[str], names: Sequence[str], fill: int, given: Mapping[str, Any]
) -> dict[str, Any]:
    values = {name: given.get(name, fill) for name in fields}
    return {
        name: each if isinstance(each, list) else [each] * len(names)
        for name, each in values.items()
    }
