"""Where on a session's time axis a ghost lies, and what of it is seen."""

import math
from pathlib import Path

import pytest

from ccplay.errors import RecordingError
from ccplay.model.commands import Mark, SetLink
from ccplay.model.events import Applied, Ready
from ccplay.session.archive import find
from ccplay.state.lab_state import LabState
from ccplay.stream import wire
from ccplay.traffic.flow import StartFlow
from ccplay.ui.plot_ghosts import ShiftedTrace
from ccplay.ui.plot_traces import Pen, SeriesTrace
from ccplay.ui.view import Choice, Ghost, Ghosts, next_action, of_run, of_session
from tests.events import folded, series_of
from tests.ui.synthetic import stream


def session(*moments: float, ready: float = 1.0) -> LabState:
    """A session in which something was done at each of some moments."""
    state = folded(Ready(t=ready))
    for t in moments:
        state.apply(Applied(t=t, command=SetLink(loss=0.01)))
    return state


def test_two_runs_are_aligned_where_their_networks_stood() -> None:
    """Building takes as long as it takes; what is compared begins after it."""
    assert of_run(session(ready=1.5), "earlier").shift(session(ready=4.0)) == 2.5


def test_before_the_network_stands_nothing_is_laid_on_it() -> None:
    assert of_run(session(), "earlier").shift(LabState()) is None


def test_an_earlier_attempt_waits_for_the_action_that_repeats_it() -> None:
    """The cause of then lies on the cause of now, however long a dialog took."""
    state = session(10.0)
    ghost = of_session(state, 10.0, waits_since=20.0)
    state.apply(Applied(t=21.0, command=Mark(text="a remark")))
    state.apply(Applied(t=22.0, command=StartFlow()))
    assert ghost.shift(state) is None
    state.apply(Applied(t=25.0, command=SetLink(loss=0.02)))
    state.apply(Applied(t=29.0, command=SetLink(loss=0.03)))
    assert ghost.shift(state) == 15.0


def test_from_where_nothing_was_done_it_waits_for_anything() -> None:
    state = session(10.0)
    ghost = of_session(state, 12.0, waits_since=20.0)
    state.apply(Applied(t=21.0, command=Mark(text="a remark")))
    assert ghost.shift(state) is None
    state.apply(Applied(t=22.0, command=StartFlow()))
    assert ghost.shift(state) == 10.0


def test_an_earlier_attempt_ends_where_it_was_taken() -> None:
    """What is done now does not come back as its own ghost."""
    state = session(10.0, 20.0)
    assert of_session(state, 10.0, waits_since=20.0).last == 20.0


def test_the_next_action_is_one_after_the_moment() -> None:
    state = session(2.0, 5.0)
    found = [next_action(state, t) for t in (0.0, 2.0, 5.0)]
    assert [each and each.t for each in found] == [2.0, 5.0, None]


def shifted(*, first: float = 0.0, last: float = math.inf) -> ShiftedTrace:
    """Values 0, 1, 2 … one a second, laid 100 s later."""
    series = series_of([float(each) for each in range(20)], interval=1.0)
    trace = SeriesTrace(series, Pen("#ffffff", under=True), interval=1.0)
    return ShiftedTrace(trace, 100.0, first, last)


def test_a_shifted_trace_has_its_values_later() -> None:
    assert shifted().spans([103.0, 104.0]) == [(2.0, 3.0)]
    assert shifted().peak(103.0, 106.5) == 6.0


def test_nothing_is_shown_beyond_a_ghosts_ends() -> None:
    edges = [100.0, 101.0, 102.0, 107.0, 108.0, 109.0]
    spans = shifted(first=2.0, last=7.0).spans(edges)
    assert [span is None for span in spans] == [True, True, False, True, True]
    assert shifted(first=2.0, last=7.0).peak(100.0, 119.0) == 6.0
    assert shifted(first=2.0, last=7.0).peak(110.0, 119.0) == 0.0


def record(path: Path, seconds: float = 5.0) -> Path:
    """Write a made-up recording."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(wire.encode(event) for event in stream(seconds=seconds)))
    return path


async def test_a_recording_becomes_a_ghost(tmp_path: Path) -> None:
    ghosts = Ghosts(session())
    await ghosts.choose(Choice(record(tmp_path / "a.ccplay")))
    assert ghosts.shown is not None
    assert (ghosts.shown.name, ghosts.shown.first) == ("a.ccplay", 0.12)
    assert list(ghosts.shown.state.flows) == ["1", "2"]
    await ghosts.choose(Choice())
    assert ghosts.shown is None


async def test_the_first_flow_of_a_recording_may_start_with_the_next_one(tmp_path: Path) -> None:
    state = session(25.0)
    ghosts = Ghosts(state)
    await ghosts.choose(Choice(record(tmp_path / "a.ccplay"), waits_since=20.0))
    assert ghosts.shown is not None
    assert ghosts.shown.first == pytest.approx(1.0)
    assert ghosts.shown.shift(state) is None
    state.apply(Applied(t=30.0, command=StartFlow()))
    assert ghosts.shown.shift(state) == pytest.approx(29.0)


async def test_a_ghost_stays_when_another_can_t_be_read(tmp_path: Path) -> None:
    state = session(3.0)
    ghosts = Ghosts(state)
    ghosts.shown = Ghost(state, "kept", first=0.0)
    (tmp_path / "b.ccplay").write_bytes(b"no recording\n")
    with pytest.raises(RecordingError, match=r"b\.ccplay"):
        await ghosts.choose(Choice(tmp_path / "b.ccplay"))
    assert ghosts.shown.name == "kept"
    assert ghosts.reading == ""


def test_recordings_are_found_with_what_a_glance_tells(tmp_path: Path) -> None:
    """Also those in directories of runs; what can't be read is named, with the reason, last."""
    record(tmp_path / "a.ccplay")
    record(tmp_path / "results" / "runs" / "one-1.ccplay", seconds=9.0)
    (tmp_path / "broken.ccplay").write_bytes(b"{}\n")
    (tmp_path / "other.txt").write_bytes(b"")
    found = find(tmp_path)
    assert {each.name for each in found[:2]} == {"a.ccplay", "results/runs/one-1.ccplay"}
    lengths = {each.name: each.seconds for each in found}
    assert lengths["a.ccplay"] == pytest.approx(5.0, abs=0.1)
    assert found[0].algorithms[0] == "cubic"
    assert found[2].name == "broken.ccplay"
    assert found[2].problem
