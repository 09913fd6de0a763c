"""What a monitor has seen of packets becomes figures of merit, words, tables and rows."""

from pathlib import Path

import pytest
from rich.console import Console

from ccplay.analysis.metrics import metric_problem, metrics_of
from ccplay.analysis.results import CaseResult, Result
from ccplay.analysis.summary import summarise
from ccplay.cli.runs import gather
from ccplay.model.events import Hello, InterfaceCounters, Ready
from ccplay.model.variables import DELAY, LOSS, RECEIVED
from ccplay.report.data.export import batches
from ccplay.report.data.naming import words
from ccplay.report.page.page import grids
from ccplay.report.terminal.terminal_tables import case_table
from ccplay.scenario.reading import parse
from ccplay.state.lab_state import LabState
from ccplay.stream import wire
from ccplay.stream.sources import recorded_events
from ccplay.traffic.flow import FlowEnded, FlowStarted, StartFlow
from ccplay.traffic.monitored import rates_between
from ccplay.traffic.udp import StartUdp, UdpEnded, UdpSample, UdpStarted
from ccplay.units import format_part
from tests.events import PLAYGROUND, folded, monitored

SEEN = monitored(1000, 980, 93_070.4, delay_min_us=90_000, delay_max_us=140_000)

EVENTS = (
    Ready(t=1.0),
    FlowStarted(t=2.0, flow="1", src="h1", dst="h2", cc="reno", port=5201),
    UdpStarted(
        t=2.0, udp="u1", src="h1", dst="h2", rate_bps=1_000_000, packet_bytes=1000, port=5202
    ),
    UdpSample(t=3.0, udp="u1", monitored=monitored(50, 50, 20_000.0)),
    UdpSample(t=4.0, udp="u1", monitored=monitored(90, 80, 50_000.0)),
    UdpEnded(t=5.0, udp="u1", sent=100, received=98, jitter_us=1.0, duration_s=2.0, monitored=SEEN),
    FlowEnded(t=12.0, flow="1", bytes=970_000, duration_s=10.0, retransmits=20, monitored=SEEN),
    InterfaceCounters(
        t=13.0,
        interface=["r-eth1"],
        node=["r"],
        link=["r->h2"],
        sent=[7],
        sent_bytes=[7000],
        received=[5],
        received_bytes=[500],
        dropped=[2],
        lost=[None],
    ),
)


@pytest.fixture
def result() -> CaseResult:
    state = LabState()
    for event in EVENTS:
        # As they come from a lab or a recording.
        state.apply(wire.decode_event(wire.encode(event)))
    return summarise(state, "x")


def test_what_is_new_since_the_count_before() -> None:
    first = monitored(100, 90, 20_000.0)
    assert rates_between(None, first, 2.0) == {
        RECEIVED.name: 360_000,
        LOSS.name: pytest.approx(0.1),
        DELAY.name: 20_000,
    }
    # Thirty more at 60 ms make a mean of 30 ms.
    found = rates_between(first, monitored(150, 120, 30_000.0), 1.0)
    assert found == {RECEIVED.name: 240_000, LOSS.name: 0.4, DELAY.name: 60_000}


def test_what_nobody_knows_is_not_reported() -> None:
    seen = monitored(100, 90, 20_000.0)
    assert rates_between(seen, seen, 1.0) == {RECEIVED.name: 0, LOSS.name: None, DELAY.name: None}
    assert rates_between(None, monitored(0, 0, None), 0.0) == {
        RECEIVED.name: None,
        LOSS.name: None,
        DELAY.name: None,
    }


def test_what_comes_behind_others_is_no_gain() -> None:
    """Where jitter reorders, more may come than were sent since."""
    assert rates_between(monitored(100, 90, 1.0), monitored(101, 93, 1.0), 1.0)[LOSS.name] == 0


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (1_931_000, 4_000_000, "1.93 of 4 Mbit/s"),
        (980_000, 1_000_000, "0.98 of 1 Mbit/s"),
        (150_400, 200_000, "150 of 200 kbit/s"),
        (0, 1_000_000_000, "0 of 1 Gbit/s"),
    ],
)
def test_a_part_has_the_unit_of_the_whole(part: float, whole: float, text: str) -> None:
    assert format_part(part, whole) == text


def test_what_is_under_way_at_the_end_is_not_lost() -> None:
    state = folded(EVENTS[2])
    ended = UdpEnded(
        t=5.0, udp="u1", sent=100, received=45, jitter_us=1.0, duration_s=2.0, under_way=50
    )
    state.apply(wire.decode_event(wire.encode(ended)))
    assert summarise(state, "x").udp[0].loss == 0.1
    assert state.log[-1].text == "UDP u1 ended: 100 sent, 10 % lost"
    nothing = UdpEnded(
        t=5.0, udp="u1", sent=9, received=0, jitter_us=None, duration_s=2.0, under_way=9
    )
    state.apply(nothing)
    assert summarise(state, "x").udp[0].loss is None
    assert state.log[-1].text == "UDP u1 ended: 9 sent, none arrived"


def test_figures_of_merit(result: CaseResult) -> None:
    found = metrics_of(result)
    for name in ("flows.1", "udp.u1"):
        assert found[f"{name}.delay_mean_ms"] == 93.07
        assert found[f"{name}.delay_min_ms"] == 90.0
        assert found[f"{name}.delay_max_ms"] == 140.0
    assert found["flows.1.rx_bps"] == 784_000
    assert found["flows.1.packets"] == 1000
    assert found["flows.1.packet_loss"] == 0.02


def test_a_file_asks_for_it() -> None:
    text = (
        'timeline = [ { at = "0 s", do = "start-flow", flow = "1", monitor = true },'
        '{ at = "0 s", do = "start-udp", udp = "u1", monitor = true } ]\n'
    )
    (case,) = parse(f'title = "x"\nduration = "9 s"\n{text}', Path("x.toml")).cases
    assert [step.command for step in case.timeline] == [
        StartFlow(flow="1", monitor=True),
        StartUdp(udp="u1", monitor=True),
    ]
    assert not metric_problem("flows.1.delay_mean_ms", case)
    assert not metric_problem("udp.u1.delay_max_ms", case)


def test_words() -> None:
    assert words("flows.1.delay_mean_ms").text == "mean one-way delay of flow 1"
    assert words("udp.u1.delay_max_ms").text == "greatest one-way delay of UDP u1"
    assert words("queues.r->h2.delay_p50_ms").text == "median queueing delay of r → h2"
    assert words("flows.1.packet_loss").text == "packet loss of flow 1"


def test_tables_have_it_where_it_was_measured(result: CaseResult) -> None:
    console = Console(width=120)
    with console.capture() as shown:
        console.print(case_table(result))
    assert shown.get().count("93.1 / 90.0 / 140 ms") == 2
    grid = {each.title: each for each in grids(_of(result))}["Packets, from host to host"]
    delays = "93.1 / 90.0 / 140"
    assert grid.rows == [
        ["1", "h1 → h2", "– / 784 kbit/s", "1,000", "2.00", delays],
        ["u1", "h1 → h2", "400 kbit/s / 392 kbit/s", "100", "2.00", delays],
    ]
    plain = summarise(LabState(), "x")
    assert "Packets, from host to host" not in [each.title for each in grids(_of(plain))]


def _of(result: CaseResult) -> Result:
    return Result(scenario="x", title="x", machine=None, cases=[result])


def test_rows_of_an_export(tmp_path: Path) -> None:
    path = tmp_path / "x.ccplay"
    hello = next(each for each in recorded_events(PLAYGROUND) if isinstance(each, Hello))
    path.write_bytes(b"".join(wire.encode(each) for each in (hello, *EVENTS)))
    found: dict[str, list[tuple[object, ...]]] = {}
    for name, batch in batches(gather([path]), ("udp", "monitor", "variables", "interfaces")):
        own = [batch[key] for key in batch if key not in ("run", "case", "repeat")]
        rows = zip(*own, strict=True)
        found.setdefault(name, []).extend(rows)
    delays = (93_070.4, 90_000.0, 140_000.0)
    assert found == {
        "udp": [(4.0, "u1", 100, 98, 0, 1.0, 2.0)],
        "monitor": [
            (4.0, "u1", 1000, 980, 980_000, *delays),
            (11.0, "1", 1000, 980, 980_000, *delays),
        ],
        "variables": [
            (2.0, "u1", None, RECEIVED.name, 400_000.0),
            (2.0, "u1", None, LOSS.name, 0.0),
            (2.0, "u1", None, DELAY.name, 20_000.0),
            (3.0, "u1", None, RECEIVED.name, 240_000.0),
            (3.0, "u1", None, LOSS.name, 0.25),
            (3.0, "u1", None, DELAY.name, 100_000.0),
        ],
        "interfaces": [(12.0, "r-eth1", "r", "r->h2", 7, 7000, 5, 500, 2, None)],
    }
