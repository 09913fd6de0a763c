"""A plot's one description is enough for the screen and for reports, with the same unit."""

import pytest
from msgspec.structs import replace

from ccplay.errors import UsageError
from ccplay.model.events import Applied
from ccplay.model.values import Qdisc
from ccplay.model.variables import Rate, Variable, combine
from ccplay.plots import table
from ccplay.plots.levels import Scope, limits
from ccplay.plots.subjects import growth, value_at
from ccplay.plots.table import PLOTS, reported
from ccplay.report.data import curves
from ccplay.report.data.curves import cross_traffic
from ccplay.report.data.scene import scene
from ccplay.session.archive import read_recording
from ccplay.state.lab_state import LabState
from ccplay.traffic import VARIABLES
from ccplay.traffic.flow import FlowStarted
from ccplay.traffic.plot import Line, Plot
from ccplay.traffic.udp import StopUdp, Udp, UdpEnded, UdpSample, UdpStarted
from ccplay.traffic.udp import _sent_rates as sent_rates
from tests.events import PLAYGROUND, folded, link_changed, monitored, series_of

COUNTS = (0.0, 100.0, 300.0, 300.0, 1300.0)
"""Values of a counter, one each half second."""


@pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)
def test_all_that_a_plot_draws_has_one_unit(plot: Plot) -> None:
    for in_bytes in (False, True):
        drawn = plot.drawn(in_bytes=in_bytes)
        assert len({each.variable.axis() for each in drawn}) == 1
    assert {each.variable.axis() for each in plot.companions} <= {plot.variable.axis()}
    assert plot.help
    assert plot.help[0].islower()
    assert len(plot.help) < 100


@pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)
def test_what_a_plot_draws_is_kept(plot: Plot) -> None:
    drawn = [each.variable for each in (*plot.lines, *plot.companions)]
    for variable in (*drawn, *(each.variable for each in plot.counts)):
        if variable.subject is None:
            # A queue reports this own value of itself, so the table of variables does not list it.
            known = ("queue", "trace")
            assert variable.algorithm in known, "tests/unit/software has who reports it"
            continue
        assert VARIABLES[variable.subject][variable.series].kept


def test_variables_that_state_keeps_have_columns_of_their_own() -> None:
    for variables in VARIABLES.values():
        columns = [each.column for each in variables.values()]
        assert len({*columns}) == len(columns)


def test_several_subjects_make_one_value() -> None:
    assert combine("sum", [1.0, 2.0, 6.0]) == 9.0
    assert combine("mean", [1.0, 2.0, 6.0]) == 3.0
    assert combine("greatest", [1.0, 6.0, 2.0]) == 6.0
    assert combine("", [4.0]) == 4.0
    assert combine("", [4.0, 5.0]) is None
    assert combine("sum", []) is None


def test_a_rate_is_over_its_window_and_in_bits() -> None:
    series = series_of(COUNTS, interval=0.5)
    assert growth(series, 1.0, 1.0) == pytest.approx(300)
    assert growth(series, 2.0, 1.0) == pytest.approx(1000)
    assert growth(series, 0.5, 1.0, least_s=0.6) is None, "too little of it"
    assert growth(series, 9.0, 1.0) is None, "nothing is known of that time"
    goodput = table.GOODPUT.variable
    assert value_at(series, goodput, 2.2) == pytest.approx(8000), "as of the sample before"
    drops = Variable("drop_rate", unit="packets", subject="queue", rate=Rate("drops", over_s=0.5))
    assert value_at(series, drops, 1.0) == pytest.approx(400)


def test_a_report_draws_a_rate_of_a_queue_s_counter_too() -> None:
    variable = Variable("x", unit="bps", subject="queue", rate=Rate("bytes", over_s=1.0))
    line = curves.rates(series_of(COUNTS, interval=0.5), variable, 0.0, 2.0, 1e-3)
    assert line.t == [1.0, 2.0]
    assert line.y == pytest.approx([2.4, 8.0])


def test_a_plot_that_nobody_has_is_refused_with_those_on_request() -> None:
    with pytest.raises(UsageError, match=r"no plot nix; .*pacing-rate"):
        reported(["unacked", "nix"])
    unasked = [plot.name for plot in reported()]
    assert unasked[:6] == ["cwnd", "queue", "sojourn", "udp", "call", "call-delay"]
    assert unasked[6:] == ["rtt", "throughput", "transfer", "acked"]
    assert [plot.name for plot in reported(["unacked", "cwnd"])] == [
        "cwnd",
        "unacked",
        *unasked[1:],
    ]


@pytest.mark.parametrize(("mtu", "frame"), [(None, 1514), (400, 414)])
def test_a_limit_is_converted_by_full_frames_of_its_link(mtu: int | None, frame: int) -> None:
    state = LabState()
    for t, kind, limit in ((1.0, "pfifo", 100), (2.0, "bfifo", 30_000)):
        queue = Qdisc(kind=kind, options={"limit": limit})
        state.apply(link_changed(t, "a->b", mtu=mtu, qdisc=queue))
    scope = Scope(state, "a->b", in_bytes=True)
    assert limits(scope) == ((1.0, None), (2.0, 30_000.0))
    assert limits(replace(scope, converts=True)) == ((1.0, 100.0 * frame), (2.0, 30_000.0))
    packets = replace(scope, in_bytes=False, converts=True)
    assert limits(packets) == ((1.0, 100.0), (2.0, 30_000 / frame))


# --- cross traffic ------------------------------------------------------------------------------


def udp(name: str, t: float, rate_bps: int) -> UdpStarted:
    return UdpStarted(t=t, udp=name, src="a", dst="b", rate_bps=rate_bps, packet_bytes=1000, port=1)


def sample(t: float, sent: int, received: int) -> UdpSample:
    return UdpSample(t=t, udp="u1", monitored=monitored(sent, received, 1.0))


def ended(name: str, t: float, sent: int, received: int, duration_s: float) -> UdpEnded:
    return UdpEnded(
        t=t, udp=name, sent=sent, received=received, jitter_us=None, duration_s=duration_s
    )


def crossed() -> LabState:
    """Return 3 s of monitored cross traffic with growing loss, and 2 s of some without samples."""
    return folded(
        udp("u1", 10.0, 1_000_000),
        udp("u2", 11.0, 2_000_000),
        sample(11.0, 125, 125),
        sample(12.0, 250, 200),
        sample(13.0, 375, 225),
        Applied(t=13.0, command=StopUdp(udp="u1")),
        ended("u2", 13.5, 500, 250, 2.0),
        ended("u1", 13.6, 375, 225, 3.0),
    )


def test_what_cross_traffic_is_set_to_send_is_the_sum() -> None:
    changes = sent_rates(Scope(crossed()))
    assert changes == ((10.0, 1e6), (11.0, 3e6), (13.0, None))


def test_what_arrived_is_drawn_as_sampled_and_as_a_mean_where_it_was_not() -> None:
    state = crossed()
    moments, sent, received = cross_traffic([*state.of(Udp).values()], 10.0, 20.0)
    assert moments == [0.0, 1.0, 2.0, 3.0]
    assert sent == [1e6, 3e6, 3e6]
    assert received == pytest.approx([1e6, 0.6e6 + 1e6, 0.2e6 + 1e6])


# --- on screen and on paper ---------------------------------------------------------------------


def test_one_entry_is_a_plot_and_a_panel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new entry of the table alone adds a pane on the screen and a panel to the report."""
    pytest.importorskip("matplotlib")
    import numpy as np

    from ccplay.report.figures.lines import PlotPart
    from ccplay.report.figures.run_figures import panels, stacked
    from ccplay.report.figures.style import Inks, look
    from ccplay.ui.plot_pane import Pane

    lines = (Line(VARIABLES["flow"]["delivery_rate"]),)
    entry = Plot(
        name="delivered",
        title="delivery rate",
        help="rate at which data arrives",
        lines=lines,
        reported=True,
    )
    monkeypatch.setitem(table.PLOTS, entry.name, entry)
    run = scene(read_recording(PLAYGROUND))
    inks = Inks(["1", "2"])
    [panel] = [each for each in panels(run, inks) if each.name == "delivered"]
    assert (panel.title, panel.label) == ("delivery rate", "delivery rate (Mbit/s)")
    with look():
        figure = stacked(run, inks)
    [axes] = [each for each in figure.axes if each.get_ylabel() == panel.label]
    drawn = [line for line in axes.get_lines() if line.get_color() == inks["1"].colour]
    values = [float(y) for line in drawn for y in np.asarray(line.get_ydata()) if y == y]
    series = run.state.flows["1"].series["delivery_rate"]
    extremes = series.extremes(series.first, series.end)
    assert extremes is not None
    assert max(values) == pytest.approx(extremes[1] * 1e-6)
    # The screen has the same title, unit and factor.
    pane = Pane(entry)
    assert f"{pane.plot.title} ({pane.axis(entry.lines[0])[0]})" == panel.label
    part = PlotPart(entry, run, inks, run.flows)
    assert pane.axis(entry.lines[0])[1] == part.factor(entry.lines[0])


def test_a_run_without_its_subject_has_no_panel_of_it() -> None:
    pytest.importorskip("matplotlib")
    from ccplay.report.figures.run_figures import panels
    from ccplay.report.figures.style import Inks

    state = folded(FlowStarted(t=0.0, flow="1", src="s", dst="d", cc="reno", port=1))
    run = replace(scene(state), queues=[])
    assert panels(run, Inks(["1"]), [*PLOTS]) == []
    for event in (udp("u1", 0.0, 1_000_000), sample(1.0, 125, 125)):
        state.apply(event)
    run = replace(scene(state), queues=[])
    assert [each.label for each in panels(run, Inks(["1"]), [*PLOTS])] == [
        "UDP (Mbit/s)",
        "UDP loss (%)",
        "UDP delay (ms)",
        "goodput (Mbit/s)",
        "transfer (kB)",
    ]
