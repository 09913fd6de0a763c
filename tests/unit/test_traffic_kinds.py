"""Every kind of traffic is kept, summed up and shown: the tables of kinds are consistent."""

import msgspec
import pytest
from msgspec.structs import replace

from ccplay.analysis.results import INTERFACES, QUEUES, CaseResult, InterfaceResult, Result
from ccplay.analysis.summary import summarise
from ccplay.report.data.naming import words
from ccplay.report.data.report_tables import result_tables
from ccplay.report.page.page import grids
from ccplay.traffic import KINDS, TRAFFIC, TrafficResults
from ccplay.traffic.base import TrafficKind
from ccplay.traffic.flow import Subflow
from ccplay.traffic.routes import Route
from ccplay.traffic.short_flows import SizeClass
from ccplay.traffic.udp import UdpResult
from tests.events import folded
from tests.unit import test_call, test_monitored, test_short_flows, test_summary


@pytest.fixture(scope="module")
def runs() -> list[CaseResult]:
    """Return results with each kind of traffic, a queue and an interface."""
    monitored = folded(*test_monitored.EVENTS, *test_call.EVENTS)
    found = [
        summarise(state, "x")
        for state in (test_summary.session(), test_short_flows.told(), monitored)
    ]
    numbers = {"sent": 1, "sent_bytes": 2, "received": 3, "received_bytes": 4, "dropped": 5}
    counted = InterfaceResult(id="r-eth1", node="r", link="r->h2", lost=None, **numbers)
    route = Route(1.0, "1", ["h1", "leaf1", "spine1", "leaf2", "h2"], back=["h2", "h1"])
    subflow = Subflow(
        id="1/2",
        src="10.0.0.1",
        dst="10.0.1.1",
        cc="reno",
        started_s=0.0,
        duration_s=1.0,
        goodput_bps=8.0,
        bytes=1,
        retransmits=0,
        cwnd_p50=1.0,
        srtt_p50_ms=None,
        min_rtt_ms=None,
    )
    routed = replace(found[0].flows[0], routes=[route], subflows=[subflow])
    first = replace(found[0], interfaces=[counted], flows=[routed, *found[0].flows[1:]])
    return [first, *found[1:]]


@pytest.mark.parametrize("kind", TRAFFIC, ids=lambda kind: kind.name)
def test_a_command_goes_by_the_name_of_its_traffic(kind: TrafficKind) -> None:
    """A field that a kind describes anew, as ``src`` of a download, is not taken for the name."""
    start, stop = kind.starting(**{kind.field: "x"}, src="h1", dst="h2"), kind.stopping("x")
    assert (start.name, stop.name) == ("x", "x")
    assert start.name_field == stop.name_field == kind.field
    assert start.describe().startswith(f"{kind.word} x starts")
    assert kind.start(src="h1").name is None


def test_each_kind_is_kept_and_has_its_list_in_a_result() -> None:
    assert list(KINDS) == [kind.name for kind in TRAFFIC]
    lists = [name for name, hint in TrafficResults.__annotations__.items() if "list[" in hint]
    assert sorted(lists) == sorted(kind.group for kind in TRAFFIC)


def test_every_column_of_every_table_has_its_value(runs: list[CaseResult]) -> None:
    """Every column has a value in some row: a wrong attribute would fail only with a row."""
    shown = dict(result_tables(runs))
    described = {table for kept in KINDS.values() for table in kept.tables}
    assert shown.keys() == described | {QUEUES, INTERFACES}
    for table, rows in shown.items():
        for column in table.columns:
            assert len(column.parts) in (0, len(column.values)), column.title
            for _, row in rows:
                assert column.cell(row) or isinstance(row, SizeClass)
                assert column.brief_cell(row).count("/") <= column.cell(row).count("/")


def test_every_metric_of_traffic_has_words(runs: list[CaseResult]) -> None:
    """Every metric of traffic has a readable name, without underscores."""
    for kind in TRAFFIC:
        (result, *_) = (each for run in runs for each in getattr(run, kind.group))
        known = {field.name for field in msgspec.structs.fields(type(result))}
        assert KINDS[kind.name].metrics.keys() <= known
    assert words("short_flows.x1.small_fct_p99_ms").text == (
        "99th percentile of FCT below 100 kB of short flows x1"
    )
    assert words("short_flows.x1.goodput_bps").text == "goodput of short flows x1"
    assert words("udp.u1.sent").text == "packets sent of UDP u1"
    assert words("pings.p1.sent").text == "pings sent of ping p1"
    assert words("pings.p1.p95_ms").text == "95th percentile of RTT of ping p1"
    assert words("downloads.w1.bytes").text == "bytes that arrived of download w1"
    assert words("queues.r->h2.bytes").text == "bytes carried of queue r → h2"
    assert words("queues.r->h2.self_inflicted_delay_ms").quantity == "self-inflicted delay"


def test_the_page_shows_short_flows_by_size(runs: list[CaseResult]) -> None:
    found = grids(Result(scenario="x", title="x", machine=None, cases=runs[1:2]))
    (grid,) = (each for each in found if each.title == "Short flows")
    assert grid.heads[-1] == ("flow completion time", "mean / p50 / p95 / p99, ms")
    assert grid.rows[1] == ["", "below 100 kB", "2", "808 kbit/s", "30.0 / 30.0 / 39.0 / 39.8"]
    assert grid.left == [True, True, False, False, False]


def test_what_is_not_known_yet_is_reported() -> None:
    running = UdpResult(
        id="u1",
        src="h1",
        dst="h2",
        packet_bytes=1000,
        started_s=1.0,
        duration_s=None,
        sent=None,
        received=None,
        tx_bps=None,
        rx_bps=None,
        loss=None,
        jitter_ms=None,
        error=None,
    )
    (table, monitored, _) = KINDS["udp"].tables
    cells = [column.cell(running) for column in table.columns]
    assert cells == ["u1", "h1 → h2", "1,000", "–", "–", "–", "– / –", "–"]
    assert monitored.rows(running) == ()
