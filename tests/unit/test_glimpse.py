"""A glimpse of a recording is what its whole state has around that moment, and comes first."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ccplay.model.base import Event
from ccplay.model.events import Ready
from ccplay.model.samples import Sweep
from ccplay.session.archive import AFTER_S, BEFORE_S, preview, read_recording
from ccplay.session.session import Session
from ccplay.state.lab_state import LabState
from ccplay.stream import wire
from ccplay.stream.sources import ReplaySource
from ccplay.traffic.flow import FlowStarted
from ccplay.traffic.ping import PingSample, PingStarted
from tests.events import HELLO, health, recorded, tcp
from tests.unit.mutants import mutants
from tests.unit.test_recordings import everything

HZ, SECONDS, AT = 10, 600, 400.0


def sweep(n: int) -> Sweep:
    return Sweep(t=n / HZ, tcp=tcp(fill=n, ca_state=n % 5))


def long() -> list[Event]:
    """Return ten minutes of a flow and a ping, another flow beginning in the middle of it."""
    names: dict[str, Any] = {"src": "s1", "dst": "d1"}
    start = FlowStarted(t=0.0, flow="1", cc="reno", port=1, **names)
    events: list[Event] = [HELLO, Ready(t=0.0), start, PingStarted(
        t=0.0, ping="p1", interval_s=1.0, **names)]  # fmt: skip
    for n in range(SECONDS * HZ):
        events.append(sweep(n))
        if not n % HZ:
            events.append(PingSample(t=n / HZ, ping="p1", seq=n, rtt_us=20.0 + n))
            events.append(health(n / HZ))
        if n == SECONDS * HZ // 2:
            events.append(FlowStarted(t=n / HZ, flow="2", cc="cubic", port=2, **names))
    return events


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("long") / "x.ccplay", long())


def around(state: LabState, name: str) -> Sequence[float]:
    """Return the values of a flow's series that a window around the moment shows."""
    edges = (AT - BEFORE_S + 2.0, AT + AFTER_S - 2.0)
    return state.flows["1"].series[name].window(*map(state.sweeps.at_or_after, edges))


def test_a_glimpse_is_what_the_whole_state_has_around_the_moment(path: Path) -> None:
    whole, seen = read_recording(path), preview(path, AT)
    assert seen is not None
    for name in ("cwnd", "ca_state", "srtt_us", "bytes_acked"):
        assert list(around(seen, name)) == list(around(whole, name))
        assert len(around(seen, name)) > 80 * HZ
    assert list(seen.flows) == ["1", "2"]
    assert everything(seen.applied) == everything(whole.applied)
    assert AT < seen.now <= AT + AFTER_S + 2.0
    assert AT - BEFORE_S <= seen.sweeps.time(0) < AT - BEFORE_S + 2.0


def test_a_glimpse_decodes_only_what_it_shows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = []
    real = wire.decode_event

    def decode(line: bytes) -> object:
        decoded.append(line)
        return real(line)

    monkeypatch.setattr("ccplay.stream.wire.decode_event", decode)
    preview(path, AT)
    few = len(decoded)
    read_recording(path)
    assert few < (len(decoded) - few) / 4


async def test_a_session_shows_the_glimpse_until_it_has_read_as_much(path: Path) -> None:
    session = Session(ReplaySource(path), preview=partial(preview, path, AT))
    shown: list[tuple[float, float]] = []
    take = session._process

    def watched(event: Event, **how: bool) -> None:
        take(event, **how)
        shown.append((session.known_from, session.state.now))

    session._process = watched  # type: ignore[assignment, method-assign]
    await session.run()
    assert session.error is None
    # From the first event on the moment can be drawn.
    assert all(since <= AT <= now for since, now in shown)
    assert (seen := preview(path, AT)) is not None
    assert shown[0][0] == seen.sweeps.time(0) > 0
    assert shown[-1][0] == 0
    assert everything(session.state) == everything(read_recording(path))


@pytest.mark.parametrize("broken", [b"", b"{}\n", b'{"event":"hello"}\n'])
async def test_what_cannot_be_read_gives_no_glimpse_and_the_usual_error(
    tmp_path: Path, broken: bytes
) -> None:
    path = tmp_path / "x"
    path.write_bytes(broken)
    assert preview(path, AT) is None
    session = Session(ReplaySource(path), preview=partial(preview, path, AT))
    await session.run()
    assert session.error == f"{path}: not a ccplay recording"


def test_a_glimpse_of_a_mutant_raises_nothing(tmp_path: Path) -> None:
    path, seen = tmp_path / "x", 0
    for mutant in mutants(200, seed=4):
        path.write_bytes(mutant)
        seen += preview(path, 20.0) is not None
    assert seen > 20
