"""A cwnd that does no good is told once it lasts; what may be right never is."""

import pytest
from msgspec.structs import replace
from rich.console import Console

from ccplay.analysis.results import Result
from ccplay.analysis.summary import summarise
from ccplay.lab.traffic.congestion import PATIENCE_S, Watchdog
from ccplay.model.events import Log, Misbehaved
from ccplay.model.samples import TcpSamples
from ccplay.report.data.findings import misbehaviours
from ccplay.report.page.page import troubles
from ccplay.report.terminal.terminal_tables import case_table
from ccplay.traffic.flow import FlowStarted
from tests.events import folded, tcp

Told = list[tuple[float, str]]


def samples(
    cwnd: int, unacked: int, *, ca_state: int = 0, ssthresh: int | None = None, cc: str = "mine"
) -> TcpSamples:
    return tcp(cc=cc, cwnd=cwnd, unacked=unacked, ca_state=ca_state, ssthresh=ssthresh)


def told(watchdog: Watchdog, each: TcpSamples, *, seconds: float, start: float = 0.0) -> Told:
    """Return when the watchdog said what, over some seconds of the same samples."""
    moments = [start + i / 50 for i in range(int(seconds * 50) + 1)]
    news = [news for t in moments for news in watchdog.look(t, each)]
    return [(each.t, each.wrong) for each in news if isinstance(each, Misbehaved)]


@pytest.mark.parametrize(
    ("each", "words"),
    [
        (samples(1, 1), "keeps cwnd at 1"),
        (samples(100_000, 60), "keeps cwnd above 8 times what is in flight"),
    ],
)
def test_what_lasts_is_reported_once(each: TcpSamples, words: str) -> None:
    watchdog = Watchdog()
    assert told(watchdog, each, seconds=PATIENCE_S - 0.1) == []
    assert told(watchdog, each, seconds=20, start=PATIENCE_S) == [(PATIENCE_S, words)]


@pytest.mark.parametrize(
    "each",
    [
        samples(1, 1, ca_state=4),  # after a timeout
        samples(1, 0),  # nothing to send
        samples(5000, 0),
        samples(2, 2),
        samples(5000, 4000),  # 1 Gbit/s over 60 ms
        samples(900, 10),
    ],
)
def test_what_may_be_right_is_never_told(each: TcpSamples) -> None:
    assert told(Watchdog(), each, seconds=20) == []


@pytest.mark.parametrize(
    "each",
    [samples(1 << 31, 0), samples(20, 20, ssthresh=1 << 31), samples(1, 1, ssthresh=1 << 31)],
)
def test_a_window_that_no_path_holds_is_reported_at_once_and_once(each: TcpSamples) -> None:
    """Of each algorithm, and again of one that was saved anew; what is not known is no window."""
    watchdog = Watchdog()
    (news,) = watchdog.look(0.0, each)
    assert isinstance(news, Log)
    said = "the kernel skipped a call of mine, or mine is wrong"
    assert news.text == f"flow 1: no path can hold a window of 2,147,483,648: {said}"
    assert watchdog.look(0.02, each) == []
    watchdog.forget("1", 0.04)
    assert len(watchdog.look(0.06, each)) == 1
    assert watchdog.look(0.08, samples(20, 20)) == []


def test_what_it_has_not_done_for_long_enough_is_over() -> None:
    watchdog = Watchdog()
    assert told(watchdog, samples(1, 1), seconds=2) == []
    assert told(watchdog, samples(10, 10), seconds=PATIENCE_S, start=2.02) == []
    assert told(watchdog, samples(1, 1), seconds=2, start=5.04) == []
    assert len(told(watchdog, samples(1, 1), seconds=2, start=7.06)) == 1
    assert [wrong for _, wrong in told(watchdog, samples(10, 10), seconds=4, start=9.08)] == [""]


def test_while_losses_are_repaired_ssthresh_reports_what_it_wants() -> None:
    """TCP holds cwnd down then: one that grows by 1000 an ACK is hardly ever seen to."""
    repairing = samples(90, 200, ca_state=3, ssthresh=24_000)
    assert len(told(Watchdog(), repairing, seconds=20)) == 1
    assert told(Watchdog(), samples(90, 200, ca_state=3, ssthresh=130), seconds=20) == []


def test_a_timeout_speaks_neither_for_it_nor_against_it() -> None:
    watchdog = Watchdog()
    runaway = samples(100_000, 60)
    assert told(watchdog, runaway, seconds=0.1) == []
    assert told(watchdog, samples(1, 60, ca_state=4, ssthresh=50_000), seconds=4, start=0.12) == []
    assert told(watchdog, samples(90, 60), seconds=0.1, start=4.14) == []
    assert len(told(watchdog, runaway, seconds=0.1, start=4.26)) == 1


def test_another_algorithm_ends_it_and_is_suspected_on_its_own() -> None:
    watchdog = Watchdog()
    assert len(told(watchdog, samples(1, 1), seconds=4)) == 1
    other = samples(1, 1, cc="other")
    assert told(watchdog, other, seconds=4, start=5) == [(5, ""), (8, "keeps cwnd at 1")]


def test_what_is_forgiven_has_another_chance() -> None:
    """The program was saved anew: its name says nothing of it."""
    watchdog = Watchdog()
    assert len(told(watchdog, samples(1, 1), seconds=4)) == 1
    assert [each.wrong for each in watchdog.forget("1", 4.5)] == [""]
    assert watchdog.forget("1", 4.5) == []
    assert told(watchdog, samples(1, 1), seconds=3, start=5) == [(8, "keeps cwnd at 1")]


def test_a_result_tells_from_when_to_when_and_the_state_as_of_any_moment() -> None:
    state = folded(
        FlowStarted(t=0.0, flow="1", src="s1", dst="d1", cc="mine", port=5201, streams=2)
    )
    for t, flow, wrong in ((3.0, "1/2", "keeps cwnd at 1"), (5.0, "1/2", ""), (9.0, "1", "grows")):
        state.apply(Misbehaved(t=t, flow=flow, cc="mine", wrong=wrong))
    second = state.flows["1/2"]
    assert [second.wrong_at(t) for t in (2.9, 3.0, 4.9, 5.0)] == [
        *("", "keeps cwnd at 1", "keeps cwnd at 1", "")
    ]
    assert state.log[0].kind == "warning"
    run = summarise(state, "case")
    assert misbehaviours(run) == [
        "flow 1: mine grows, from 9.0 s on",
        "flow 1: mine keeps cwnd at 1, from 3.0 to 5.0 s",
    ]
    health = replace(run.health, reasons=["flow 1 had a window of 2,165,326,096 segments"])
    first = replace(run, health=health)
    found = Result(scenario="x", title="x", machine=None, cases=[run], discarded=[first])
    assert "case, run 1: flow 1: mine grows, from 9.0 s on" in troubles(found)
    why = "1 run was repeated because flow 1 had a window of 2,165,326,096 segments; see below."
    assert troubles(found)[-1] == why
    console = Console(width=120)
    with console.capture() as printed:
        console.print(case_table(run))
    assert "warning: flow 1: mine keeps cwnd at 1, from 3.0 to 5.0 s" in printed.get()
