"""A session applies one stream to its state and sinks, and survives failures of both ends."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ccplay.errors import LabError, RecordingError
from ccplay.model.base import Command, Event, StartTraffic
from ccplay.model.commands import Build, Mark, StartTogether
from ccplay.model.events import Applied, Ended, Failed, Log, Ready
from ccplay.session.archive import read_recording
from ccplay.session.session import Session
from ccplay.session.steps import DueStep
from ccplay.state.lab_state import LabState
from ccplay.stream import wire
from ccplay.stream.sinks import Recorder
from ccplay.stream.sources import LabSource, ReplaySource, check_recording
from ccplay.stream.wire import UnknownEvent
from ccplay.traffic.flow import StartFlow
from tests.events import HELLO
from tests.terminals import PATIENCE_S, eventually


class Told:
    """A source that yields the given events, then ends or fails."""

    live = True

    def __init__(self, *events: Event, error: LabError | None = None) -> None:
        self.given = events
        self.error = error
        self.sent: list[Command] = []

    async def events(self) -> AsyncIterator[Event | UnknownEvent]:
        for event in self.given:
            yield event
        if self.error:
            raise self.error

    def send(self, command: Command) -> None:
        self.sent.append(command)

    async def close(self) -> None:
        pass


class Full:
    """A sink on a full disk."""

    closed = 0

    def put(self, _: object) -> None:
        raise RecordingError("no space left")

    def close(self) -> None:
        self.closed += 1


class Steps:
    """A timeline with steps due at each event once the network is ready."""

    def __init__(self, *turns: list[DueStep]) -> None:
        self._turns = list(turns)

    def due(self, state: LabState) -> list[DueStep]:
        return self._turns.pop(0) if self._turns and state.phase == "ready" else []


async def test_a_sink_that_fails_is_dropped_and_the_session_lives() -> None:
    sink = Full()
    session = Session(Told(HELLO, Ready(t=1.0)), sinks=[sink])
    await session.run()
    assert session.state.phase == "ready"
    assert [entry.text for entry in session.state.log] == ["no space left"]
    assert sink.closed == 1
    assert session.error is None


async def test_a_lab_that_dies_leaves_its_reason_and_the_state() -> None:
    session = Session(Told(HELLO, Ready(t=1.0), error=LabError("killed")))
    await session.run()
    assert (session.error, session.done, session.live) == ("killed", True, False)
    assert session.state.phase == "ready"


async def test_what_ends_a_session_comes_with_advice() -> None:
    def advice(state: LabState) -> str:
        return "add --kernel auto" if state.hello else "no lab"

    session = Session(Told(HELLO, error=LabError("no sfb")), advice=advice)
    await session.run()
    assert session.error == "no sfb; add --kernel auto"
    silent = Session(Told(HELLO, error=LabError("killed")), advice=lambda _: "")
    await silent.run()
    assert silent.error == "killed"


async def test_a_script_sends_what_is_due() -> None:
    source = Told(HELLO, Ready(t=1.0))
    await Session(source, script=Steps([DueStep(1.0, Mark(text="go"))])).run()
    assert source.sent == [Mark(text="go")]


async def test_an_answer_carries_the_moment_at_which_its_step_was_due(tmp_path: Path) -> None:
    """An answer to a timeline's step carries its due time; other answers have none.

    The lab answers commands in their order.
    """

    class Asked(Told):
        def send(self, command: Command) -> None:
            super().send(command)
            if len(self.sent) == 1:
                session.send(Mark(text="by hand"))

    answers: list[Event] = [
        Applied(t=1.3, command=Mark(text="a")),
        Applied(t=1.4, command=Mark(text="renewed"), renewed=True),
        Failed(t=1.5, command=Mark(text="by hand"), message="no"),
        Applied(t=9.0, command=Mark(text="b")),
    ]
    path = tmp_path / "x.ccplay"
    source = Asked(HELLO, Ready(t=1.0), *answers)
    steps = Steps([DueStep(1.0, Mark(text="a"))], [DueStep(1.1, Mark(text="b"))])
    session = Session(source, sinks=[Recorder(path)], script=steps)
    await session.run()
    moments = [(each.command, each.due) for each in session.state.applied]
    assert moments == [(Mark(text="a"), 1.0), (Mark(text="renewed"), None), (Mark(text="b"), 1.1)]
    assert session.unanswered == ()
    assert [each.due for each in read_recording(path).applied] == [1.0, None, 1.1]


async def test_a_step_that_was_not_answered_is_known() -> None:
    step = DueStep(1.0, Mark(text="a"), "timeline[0]")
    session = Session(Told(HELLO, Ready(t=1.0)), script=Steps([step]))
    await session.run()
    assert session.unanswered == (step,)


async def test_what_starts_together_is_sent_as_one_and_answered_one_by_one() -> None:
    """Traffic that starts together is sent as one command; other answers may precede its own."""
    flows: list[StartTraffic] = [StartFlow(flow=each) for each in "abc"]
    steps = [DueStep(5.0, each, together=True) for each in flows]
    mark = DueStep(3.0, Mark(text="m"))
    source = Told(
        HELLO,
        Ready(t=1.0),
        Log(t=3.0, level="info", text=""),
        Applied(t=3.1, command=mark.command),
        Applied(t=5.01, command=flows[0], due=5.0),
        Failed(t=5.02, command=flows[1], message="no", due=5.0),
    )
    session = Session(source, script=Steps(steps, [mark]))
    await session.run()
    assert source.sent == [StartTogether(at=5.0, commands=flows), mark.command]
    assert [each.due for each in session.state.applied] == [3.0, 5.0]
    assert session.unanswered == (steps[2],)


async def test_a_recording_replays_to_the_same_state(tmp_path: Path) -> None:
    path = tmp_path / "x.ccplay"
    events = (HELLO, Ready(t=1.0), Log(t=2.0, level="info", text="hi"), Ended(t=3.0, reason="done"))
    await Session(Told(*events), sinks=[Recorder(path)]).run()
    replay = Session(ReplaySource(path))
    await replay.run()
    assert replay.recorded
    assert not replay.live
    assert replay.error is None
    assert [e.text for e in replay.state.log] == ["hi"]
    assert replay.state.end_reason == "done"


async def test_a_recording_cut_short_by_a_crash_is_valid_up_to_its_last_line(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.ccplay"
    path.write_bytes(wire.encode(HELLO) + wire.encode(Ready(t=1.0)) + b'{"event":"sw')
    replay = Session(ReplaySource(path))
    await replay.run()
    assert replay.error is None
    assert replay.state.phase == "ready"


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "not a ccplay"), (b"hello\n", "not a ccplay"), (b'{"event":"ready","t":1}\n', "hello")],
)
def test_what_is_no_recording_is_refused_in_words(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=reason):
        check_recording(path)


def test_a_recording_that_is_not_there_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="No such file"):
        check_recording(tmp_path / "none")
    with pytest.raises(RecordingError, match="Is a directory"):
        check_recording(tmp_path)


async def test_a_lab_that_can_not_start_reports_what_failed() -> None:
    session = Session(LabSource(["/nonexistent/ccplay"], Build()))
    await session.run()
    assert session.error is not None
    assert "/nonexistent/ccplay" in session.error


@pytest.mark.parametrize(
    ("says", "error"),
    [
        ("no room", "the lab ended with exit code 3: no room"),
        ("ccplay lab: no iperf3 here", "no iperf3 here"),
        ("unshare: sigprocmask unblock failed", "the lab was killed by a signal from outside"),
    ],
)
async def test_a_lab_that_ends_at_once_is_quoted(says: str, error: str) -> None:
    session = Session(LabSource(["sh", "-c", f"echo {says} >&2; exit 3"], Build()))
    await session.run()
    assert session.error == error


async def test_a_lab_that_was_killed_is_not_waited_for_while_others_hold_its_pipes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ccplay.stream.sources._LAST_S", 0.1)
    left = tmp_path / "pid"
    hello = tmp_path / "hello"
    hello.write_bytes(wire.encode(HELLO))
    script = f"sleep 3600 & echo $! > {left}; cat {hello}; while :; do sleep 1; done"
    source = LabSource(["sh", "-c", script], Build(), grace_s=0.1)
    session = Session(source)
    reading = asyncio.create_task(session.run())
    try:
        await eventually(lambda: session.state.hello)
        async with asyncio.timeout(PATIENCE_S):
            await source.close()
            await reading
        assert session.done
    finally:
        os.kill(int(left.read_text()), signal.SIGKILL)
