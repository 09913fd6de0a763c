"""Hand-made labs: a dumbbell on a kernel with few algorithms and queues, or with all of them."""

from msgspec.structs import replace

from ccplay.model.disciplines import DISCIPLINES
from ccplay.model.events import HostChanged, LinkChanged, Ready
from ccplay.model.network import Link, Network, Node, Topology
from ccplay.model.values import Capabilities, Feature, LinkSetting, Qdisc
from ccplay.state.lab_state import LabState
from ccplay.traffic.flow import FlowStarted
from tests.events import HELLO

ALGORITHMS = {
    "reno": "the classic: adds one segment a round trip, halves on loss (RFC 5681)",
    "cubic": "Linux's default: grows as a cubic of the time since the last loss (RFC 9438)",
    "bbr": "models bandwidth and round trip instead of waiting for loss",
    "bic": "searches the window by halving the gap; CUBIC's parent",
    "dctcp": "reacts to how many packets were marked; for data centres (RFC 8257)",
    "htcp": "grows faster the longer ago the last loss was; for long fat paths",
    "vegas": "slows down when the round trip grows, before anything is lost",
    "westwood": "measures bandwidth to choose the window after a loss; for wireless",
}

REASON = "not built into this kernel, and it can load no modules"
REMEDY = "start with --guest for a full kernel"


def capabilities(*, full: bool) -> Capabilities:
    """Return capabilities of a full kernel, or of one with Reno, CUBIC, BBR and plain queues."""
    return Capabilities(
        kernel="6.18.0",
        privilege="root",
        congestion_controls=[
            _feature(name, text, full or name in ("reno", "cubic", "bbr"))
            for name, text in ALGORITHMS.items()
        ],
        qdiscs=[
            _feature(each.kind, each.summary, full or each.kind in ("pfifo", "bfifo", "tbf"))
            for each in DISCIPLINES.values()
        ],
        delay_engines=[_feature("netem", "", full), _feature("delay line", "", True)],
        tools=[],
        markers=[_feature("threshold", "marks in front of any discipline", full)],
        monitors=[_feature("packets", "one-way delay and loss of a flow's packets", full)],
        mptcp=[_feature("mptcp", "flows over several paths", full)],
        schedulers=[_feature(each, "", full) for each in ("default", "burst")],
    )


def dumbbell(pairs: int = 2) -> Network:
    """Return a dumbbell of senders s1, s2 …, routers r1 and r2, and receivers d1, d2 …."""
    nodes = [Node(name=f"r{n}", role="router", address=f"10.0.0.{n}") for n in (1, 2)]
    ends = [("r1", "r2")]
    for n in range(1, pairs + 1):
        nodes.append(Node(name=f"s{n}", role="sender", address=f"10.0.1.{n}"))
        nodes.append(Node(name=f"d{n}", role="receiver", address=f"10.0.2.{n}"))
        ends += [(f"s{n}", "r1"), ("r2", f"d{n}")]
    links = [
        Link(name=f"{one}->{other}", src=one, dst=other, interface=f"{one}-eth0")
        for pair in ends
        for one, other in (pair, pair[::-1])
    ]
    return Network(
        topology=Topology(kind="dumbbell", pairs=pairs),
        nodes=nodes,
        links=links,
        bottlenecks=["r1->r2", "r2->r1"],
    )


def lab(*, full: bool = False, flows: int = 1, pairs: int = 2) -> LabState:
    """Return a ready lab of 10 Mbit/s, 20 ms base RTT and pfifo 100, with ``flows`` running."""
    state = LabState()
    known = {"capabilities": capabilities(full=full), "network": dumbbell(pairs)}
    state.apply(replace(HELLO, version="0.2.0", sample_hz=50.0, **known))
    for name, delay in (("r1->r2", 10_000), ("r2->r1", 10_000)):
        setting = LinkSetting(
            rate=10_000_000,
            delay_us=delay,
            jitter_us=0,
            loss=0.0,
            qdisc=Qdisc(kind="pfifo", options={"limit": 100}),
        )
        state.apply(
            LinkChanged(t=0.1, link=name, setting=setting, offloads=False, delay_engine="netem")
        )
    for n in range(1, pairs + 1):
        state.apply(HostChanged(t=0.1, host=f"s{n}", cc="cubic"))
        state.apply(HostChanged(t=0.1, host=f"d{n}", cc="reno"))
    state.apply(Ready(t=0.2))
    for n in range(1, flows + 1):
        state.apply(
            FlowStarted(
                t=float(n), flow=str(n), src=f"s{n}", dst=f"d{n}", cc="cubic", port=5200 + n
            )
        )
    return state


def _feature(name: str, summary: str, available: bool) -> Feature:
    if available:
        return Feature(name=name, available=True, summary=summary)
    return Feature(name=name, available=False, summary=summary, reason=REASON, remedy=REMEDY)
