"""The result sums up the stream in documented units, and is always valid JSON."""

import io
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.console import Console

from ccplay.analysis.metrics import metrics_of
from ccplay.analysis.results import Result
from ccplay.analysis.summary import machine, summarise
from ccplay.model.columns import percentile
from ccplay.model.events import Failed, LinkChanged, Ready
from ccplay.model.network import Network, Topology
from ccplay.model.samples import Sweep
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.report.terminal.terminal_tables import show
from ccplay.state.lab_state import LabState
from ccplay.stream import wire
from ccplay.traffic.download import DownloadEnded, DownloadStarted
from ccplay.traffic.flow import FlowEnded, FlowStarted
from ccplay.traffic.ping import PingEnded, PingSample, PingStarted
from ccplay.ui.status_lines import trouble
from tests.events import CAPABILITIES, folded, health, qdisc, tcp
from tests.events import HELLO as NOTHING

HELLO = replace(
    NOTHING,
    version="0.2.0",
    capabilities=replace(CAPABILITIES, kernel="6.18.0", cpus=2, python="3.11.2"),
    network=Network(topology=Topology(kind="linear"), nodes=[], links=[], bottlenecks=["r->h2"]),
)


def sweep(t: float, flows: dict[str, int], *, cc: str = "reno", qlen: int = 0) -> Sweep:
    """Return a sweep of flows with these cwnds, and 1000 bytes acknowledged per segment of them."""
    thousands = [cwnd * 1000 for cwnd in flows.values()]
    return Sweep(
        t=t,
        tcp=tcp(
            flows,
            cc=cc,
            cwnd=[*flows.values()],
            srtt_us=thousands,
            min_rtt_us=20_000,
            bytes_acked=thousands,
            ssthresh=None,
        ),
        qdisc=qdisc("r->h2", qlen=qlen, backlog=qlen * 1514, drops=qlen // 10, ecn_marks=None),
    )


def link(t: float, kind: str) -> LinkChanged:
    """Return a change of the bottleneck's queue."""
    setting = LinkSetting(rate=1_500_000, qdisc=Qdisc(kind=kind))
    return LinkChanged(
        t=t, link="r->h2", setting=setting, offloads=False, delay_engine="delay line"
    )


def session() -> LabState:
    """Return a session with every kind of event that a result sums up."""
    return folded(
        HELLO,
        link(0.1, "pfifo"),
        Ready(t=0.5),
        FlowStarted(t=1.0, flow="1", src="h1", dst="h2", cc="reno", port=5201, streams=2),
        FlowStarted(t=1.0, flow="2", src="h1", dst="h2", cc="cubic", port=5202),
        PingStarted(t=1.0, ping="p1", src="h1", dst="h2", interval_s=0.5),
        DownloadStarted(t=1.0, download="w1", src="h1", dst="h2", bytes=177_669),
        *(
            sweep(1 + i / 10, {"1": i, "1/2": 2 * i, "2": 5, "w1": 7}, qlen=i)
            for i in range(1, 101)
        ),
        link(11.0, "bfifo"),
        PingSample(t=11.0, ping="p1", seq=1, rtt_us=20_500.0),
        PingSample(t=11.1, ping="p1", seq=2, rtt_us=None),
        PingSample(t=11.2, ping="p1", seq=3, rtt_us=800_000.0),
        PingEnded(t=11.3, ping="p1", sent=3, lost=1),
        DownloadEnded(t=11.4, download="w1", bytes=177_669, duration_s=1.0),
        sweep(11.5, {"1": 100, "1/2": 200}, cc="bbr"),
        FlowEnded(t=11.6, flow="2", bytes=1_250_000, duration_s=10.0, retransmits=3),
        health(11.9, rate_accuracy=0.99),
        health(12.0, late_p99_us=2000.0),
    )


def test_flows_of_each_direction_are_added_up_where_there_are_several() -> None:
    state = session()
    assert summarise(state, "x").directions == []
    state.apply(FlowStarted(t=11.7, flow="3", src="h2", dst="h1", cc="reno", port=5203))
    state.apply(FlowEnded(t=13.7, flow="3", bytes=500_000, duration_s=2.0, retransmits=0))
    result = summarise(state, "x")
    rates = {each.id: each.goodput_bps or 0.0 for each in result.flows}
    there, back = result.directions
    assert (there.id, back.id) == ("h1->h2", "h2->h1")
    assert there.goodput_bps == pytest.approx(rates["1"] + rates["2"], abs=0.2)
    assert there.goodput_mean_bps == pytest.approx(there.goodput_bps / 2, abs=0.2)
    assert back.goodput_bps == back.goodput_mean_bps == 2_000_000
    assert metrics_of(result)["directions.h2->h1.goodput_bps"] == 2_000_000


def test_a_flow_that_runs_is_counted_until_now_with_all_its_streams() -> None:
    flow = summarise(session(), "x").flows[0]
    assert (flow.id, flow.streams, flow.cc) == ("1", 2, "reno")
    assert [(s.t, s.cc) for s in flow.switches] == [(11.5, "bbr")]
    assert flow.bytes == 300_000
    assert flow.duration_s == 11.0
    assert flow.goodput_bps == pytest.approx(300_000 * 8 / 11, abs=0.1)
    assert flow.cwnd_max == 200
    assert flow.min_rtt_ms == 20.0


def test_a_flow_that_ended_has_the_lab_s_own_figures() -> None:
    flow = summarise(session(), "x").flows[1]
    assert (flow.bytes, flow.duration_s, flow.retransmits) == (1_250_000, 10.0, 3)
    assert flow.goodput_bps == 1_000_000
    assert flow.cwnd_p50 == flow.cwnd_p99 == 5


def test_queues_pings_and_downloads() -> None:
    case = summarise(session(), "x")
    (queue,), (ping,), (download,) = case.queues, case.pings, case.downloads
    assert (queue.link, queue.kind, queue.kinds) == ("r->h2", "pfifo", ["pfifo", "bfifo"])
    assert (queue.qlen_p50, queue.qlen_max, queue.marks) == (50, 100, None)
    assert (ping.sent, ping.lost, ping.min_ms, ping.max_ms) == (3, 1, 20.5, 800.0)
    assert (download.bytes, download.seconds, download.cwnd_max) == (177_669, 1.0, 7)
    assert download.rate_bps == 177_669 * 8
    assert case.duration_s == 11.5


def test_a_queue_counts_while_traffic_runs_only() -> None:
    """Only the time with traffic counts for a queue, not that before or after it."""
    state = LabState()
    flow = FlowStarted(t=1.0, flow="1", src="a", dst="b", cc="reno", port=1)
    ended = FlowEnded(t=2.5, flow="1", bytes=1, duration_s=1.5, retransmits=0)
    before = [HELLO, Ready(t=0.5), sweep(0.6, {}, qlen=90)]
    runs = [flow, sweep(1.5, {"1": 5}, qlen=10), sweep(2.0, {"1": 5}, qlen=30), ended]
    for event in (*before, *runs, sweep(9.0, {}, qlen=0)):
        state.apply(event)
    (queue,) = summarise(state, "x").queues
    assert (queue.qlen_mean, queue.qlen_max) == (20.0, 30.0)


def test_a_download_is_no_flow() -> None:
    assert [flow.id for flow in summarise(session(), "x").flows] == ["1", "2"]


def test_a_case_that_measured_nothing_has_nulls_not_nans() -> None:
    state = folded(
        HELLO,
        Ready(t=0.5),
        FlowStarted(t=1.0, flow="1", src="a", dst="b", cc="reno", port=1),
        PingStarted(t=1.0, ping="p1", src="a", dst="b", interval_s=1.0),
        DownloadStarted(t=1.0, download="w1", src="a", dst="b", bytes=5),
        Failed(t=1.0, command=None, message="no such thing"),
    )
    case = summarise(state, "x", interrupted=True, errors=("too bad",))
    result = Result(scenario="s", title="S", machine=machine(state), cases=[case])
    text = wire.encode_value(result).decode()
    assert "NaN" not in text
    data = json.loads(text)["cases"][0]
    assert data["flows"][0]["goodput_bps"] is None
    assert data["pings"][0]["p50_ms"] is None
    assert data["downloads"][0]["seconds"] is None
    assert data["errors"] == ["no such thing", "too bad"]
    assert data["interrupted"] is True
    assert data["health"]["trustworthy"] is False


def test_the_documented_keys_are_there() -> None:
    """The result has the keys documented in scenarios/README.md, on which programs rely."""
    state = session()
    result = Result(scenario="s", title="S", machine=machine(state), cases=[summarise(state, "x")])
    data = json.loads(wire.encode_value(result))
    assert {"format", "scenario", "machine", "cases"} <= data.keys()
    assert {"kernel", "cpus", "python", "ccplay", "privilege"} <= data["machine"].keys()
    case = data["cases"][0]
    assert {"name", "flows", "queues", "pings", "downloads", "health"} <= case.keys()
    flow = {"id", "cc", "goodput_bps", "bytes", "duration_s", "retransmits"}
    assert flow <= case["flows"][0].keys()
    queue = {"link", "kind", "qlen_mean", "qlen_p50", "qlen_p99", "drops", "marks"}
    assert queue <= case["queues"][0].keys()
    ping = {"id", "sent", "lost", "min_ms", "p50_ms", "p95_ms", "max_ms"}
    assert ping <= case["pings"][0].keys()
    assert {"bytes", "seconds", "rate_bps"} <= case["downloads"][0].keys()
    assert case["health"]["trustworthy"] is True
    assert data["machine"]["delay_engines"] == ["delay line"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"missed": 5}, "samples were missed"),
        ({"steal": 0.17}, "the hypervisor took 17%"),
        ({"rate_accuracy": 0.92}, "a busy link carried 92% of its rate"),
        ({"host_cpu": 0.99}, "the machine was 99% busy"),
        ({"delay_late_p99_us": 9000.0}, "9.0 ms late"),
        ({"events_dropped": 4}, "4 samples were lost"),
    ],
)
def test_a_run_that_the_machine_spoilt_reports_it(changes: dict[str, float], reason: str) -> None:
    state = folded(health(1.0, **changes))
    verdict = summarise(state, "x").health
    assert not verdict.trustworthy
    assert reason in verdict.reasons[0]


@pytest.mark.parametrize("width", [80, 120])
def test_tables_fit_and_hold_every_figure(width: int) -> None:
    state = session()
    result = Result(scenario="s", title="S", machine=machine(state), cases=[summarise(state, "x")])
    out = io.StringIO()
    show(result, Console(file=out, width=width))
    text = out.getvalue()
    assert max(len(line) for line in text.splitlines()) <= width
    for figure in ("1 Mbit/s", "reno →", "bbr", "pfifo → bfifo", "20.5 / ", "800 ms", "177,669"):
        assert figure in text


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.floats(0, 100))
def test_percentiles_lie_within_the_values(values: list[float], percent: float) -> None:
    result = percentile(values, percent)
    assert result is not None
    assert min(values) - 1e-6 <= result <= max(values) + 1e-6
    assert math.isfinite(result)


def test_percentiles_are_linear_between_values() -> None:
    assert percentile([], 50) is None
    assert percentile([3.0, 1.0], 50) == 2.0
    assert percentile([1.0, 2.0, 3.0, 4.0], 0) == 1.0
    assert percentile([1.0, 2.0, 3.0, 4.0], 100) == 4.0
    assert percentile(list(range(101)), 95) == 95


@pytest.mark.parametrize(
    ("missed", "words"),
    [
        ([1], []),
        ([3], ["3 of 53 samples missed"]),
        ([1] * 20, ["20 samples missed in 20 s"]),
        ([1] * 20 + [0], ["20 samples missed in 21 s"]),
        ([0] * 59 + [1], []),
    ],
    ids=str,
)
def test_the_header_reports_missed_samples_that_could_change_a_conclusion(
    missed: list[int], words: list[str]
) -> None:
    """One of the first 51 samples changes none, one in each of 20 seconds does."""
    assert trouble([health(float(t), missed=n) for t, n in enumerate(missed)]) == words
