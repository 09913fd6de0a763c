"""The receiver's table shows bytes by whole seconds, and the same checkpoint as a result."""

import pytest
from msgspec.structs import replace

from ccplay.analysis.results import Checkpoint, checkpoint
from ccplay.analysis.summary import Receiver
from ccplay.model.commands import Build
from ccplay.model.events import Applied, Ready
from ccplay.report.data.scene import scene
from ccplay.report.terminal.terminal_tables import ReceiverLines
from ccplay.state.lab_state import LabState
from ccplay.traffic.flow import FlowEnded, FlowStarted, StartFlow
from tests.unit.test_checkpoint import sweep
from tests.unit.test_summary import HELLO


def race(
    rates: dict[str, int],
    sizes: dict[str, int],
    *,
    seconds: float,
    starts: dict[str, float] | None = None,
    streams: int = 1,
) -> tuple[LabState, Checkpoint | None]:
    """Play flows at their rates in bytes/s, swept at 50 Hz; return the state and the checkpoint."""
    state, found = LabState(), None
    state.apply(Ready(t=0.5))
    starts = dict.fromkeys(rates, 1.0) | (starts or {})
    started: set[str] = set()
    for tick in range(49, int((1.0 + seconds) * 50) + 1):
        t = tick / 50
        for flow in rates:
            if starts[flow] <= t and flow not in started:
                started.add(flow)
                command = StartFlow(flow=flow, bytes=sizes.get(flow), streams=streams)
                state.apply(Applied(t=t - 0.01, command=command))
                event = FlowStarted(
                    t=starts[flow],
                    flow=flow,
                    src="h1",
                    dst="h2",
                    cc="reno",
                    port=1,
                    streams=streams,
                )
                state.apply(event)
        acked: dict[str, int] = {}
        for flow in started:
            total = round(rates[flow] * (t - starts[flow]))
            for stream in range(1, streams + 1):
                share = total // streams + (total % streams if stream == 1 else 0)
                acked[flow if stream == 1 else f"{flow}/{stream}"] = share
        state.apply(sweep(t, acked))
        found = found or checkpoint(state, sizes)
    return state, found


def test_each_second_has_what_every_flow_has_brought() -> None:
    state, _ = race({"1": 500_000, "2": 600_000}, {}, seconds=3.5)
    table = Receiver(state, state.now)
    rows = table.rows()
    assert table.flows == ("1", "2")
    assert [row.elapsed_s for row in rows] == [1, 2, 3]
    assert [row.bytes for row in rows] == [
        (500_000, 600_000),
        (1_000_000, 1_200_000),
        (1_500_000, 1_800_000),
    ]
    assert rows[1].rates_bps == pytest.approx((4e6, 4.8e6))
    assert table.checkpoint() is None


def test_the_last_rows_are_those_of_the_whole_table() -> None:
    state, _ = race({"1": 500_000}, {}, seconds=20)
    table = Receiver(state, state.now)
    assert table.rows(most=3) == table.rows()[-3:]
    assert len(table.rows()) == 20


def test_it_shows_the_past_as_it_was() -> None:
    """At an earlier moment, a flow that starts later and a later checkpoint are not shown."""
    rates, sizes = {"1": 500_000, "2": 500_000}, {"1": 2_000_000}
    state, _ = race(rates, sizes, seconds=6, starts={"2": 3.5})
    then = Receiver(state, 3.4)
    assert then.flows == ("1",)
    assert then.rows() == [
        type(row)(row.elapsed_s, row.bytes[:1], row.rates_bps[:1])
        for row in Receiver(state, state.now).rows()[:2]
    ]
    assert then.checkpoint() is None
    assert Receiver(state, 5.0).checkpoint() is not None
    later = Receiver(state, state.now).rows()
    assert [row.bytes[1] for row in later] == [None, None, 250_000, 750_000, 1_250_000, 1_750_000]


def test_before_any_flow_there_is_nothing() -> None:
    state = LabState()
    assert Receiver(state, 0.0).rows() == []
    assert Receiver(state, 0.0).checkpoint() is None


@pytest.mark.parametrize("streams", [1, 3])
def test_the_checkpoint_of_table_and_report_is_that_of_a_result(streams: int) -> None:
    rates, sizes = {"1": 390_000, "2": 531_000}, {"1": 2_000_000, "2": 2_000_000}
    state, found = race(rates, sizes, seconds=5, starts={"2": 1.3}, streams=streams)
    finish, drawn = Receiver(state, state.now).checkpoint(), scene(state).finish
    assert found is not None
    assert finish is not None
    assert drawn is not None
    assert finish.first == found.first == "2"
    assert drawn.t == pytest.approx(found.t - 0.5)
    assert finish.elapsed_s == pytest.approx(found.elapsed_s, abs=1e-6)
    for each in (finish, drawn):
        assert dict(each.bytes) == found.bytes
        assert each.ratio == pytest.approx(found.ratio, abs=1e-6)


def test_flows_of_a_fixed_size_come_first_and_count_the_seconds() -> None:
    state, found = race(
        {"long": 100_000, "1": 500_000}, {"1": 1_000_000}, seconds=6, starts={"1": 3.0}
    )
    table = Receiver(state, state.now)
    finish = table.checkpoint()
    assert table.flows == ("1", "long")
    assert [row.bytes for row in table.rows()][:2] == [(500_000, 300_000), (1_000_000, 400_000)]
    assert found is not None
    assert finish is not None
    assert (finish.ratio, found.ratio) == (None, None)
    assert finish.elapsed_s == pytest.approx(2.0)
    assert finish.bytes == {"1": 1_000_000, "long": 400_000}


def test_it_ends_with_the_last_flow_whose_end_tells_all() -> None:
    """A flow's end supplies the bytes and time of the checkpoint if no sweep has them."""
    state, _ = race({"1": 500_000}, {"1": 1_600_000}, seconds=3)
    state.apply(FlowEnded(t=4.2, flow="1", bytes=1_650_000, duration_s=3.2, retransmits=0))
    state.apply(sweep(30.0, {}))
    table = Receiver(state, state.now)
    finish = table.checkpoint()
    assert [row.bytes for row in table.rows()] == [(500_000,), (1_000_000,), (1_500_000,)]
    assert finish is not None
    assert finish.elapsed_s == pytest.approx(3.2)
    assert finish.bytes == {"1": 1_650_000}


def test_the_lines_come_one_a_second_and_the_checkpoint_in_between() -> None:
    """Each line is printed once, however often they are read; the ratio is Reno's over CUBIC's."""
    rates, sizes = {"1": 390_000, "2": 531_000}, {"1": 1_000_000, "2": 1_000_000}
    whole, _ = race(rates, sizes, seconds=3.05)
    lines = ReceiverLines()
    assert list(lines.fresh(whole)) == [
        " receiver     flow 1 reno                  flow 2 reno             ",
        "      1 s         390,000  3.12 Mbit/s         531,000  4.25 Mbit/s",
        (
            "   1.90 s         741,000                    1,008,900         done"
            "   checkpoint, ratio 0.734"
        ),
        "      2 s         780,000  3.12 Mbit/s       1,062,000  4.25 Mbit/s",
        "      3 s       1,170,000  3.12 Mbit/s       1,593,000  4.25 Mbit/s",
    ]
    assert list(lines.fresh(whole, at_once=True)) == []


def test_the_last_line_comes_even_at_once() -> None:
    """With ``at_once`` the last lines do not wait for more: a race ends at its checkpoint."""
    rates, sizes = {"1": 500_000}, {"1": 1_000_000}
    lines = ReceiverLines()
    state, _ = race(rates, sizes, seconds=1.98)
    assert len(list(lines.fresh(state))) == 2
    state.apply(sweep(3.0, {"1": 1_000_000}))
    assert list(lines.fresh(state)) == []
    finish, second = lines.fresh(state, at_once=True)
    assert finish.endswith("done   checkpoint")
    assert second.startswith("      2 s")


def test_the_ratio_keeps_the_scenarios_order_whoever_starts_first() -> None:
    """The ratio is not inverted in every other repeat, in which flow 2 starts first."""
    rates, sizes = {"2": 1_000_000, "1": 500_000}, {"1": 3_000_000, "2": 3_000_000}
    state, _ = race(rates, sizes, seconds=4)
    state.apply(replace(HELLO, build=Build(reserved=["1", "2"])))
    finish = Receiver(state, state.now).checkpoint()
    assert finish is not None
    assert finish.first == "2"
    assert finish.ratio == pytest.approx(0.5, abs=0.02)
