"""What is set by hand stays: of a timeline, that is left out which would undo it, and told."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ccplay.assets import assets
from ccplay.model.base import Command, Event
from ccplay.model.commands import (
    Mark,
    SetCongestionControl,
    SetLink,
    SetQdisc,
    StartTogether,
    TraceFlow,
    UntraceFlow,
)
from ccplay.model.events import Applied, Failed, Log, Ready
from ccplay.model.network import BOTTLENECK
from ccplay.model.values import Qdisc
from ccplay.scenario.reading import load
from ccplay.scenario.values import Step
from ccplay.session.archive import read_recording
from ccplay.session.session import Session
from ccplay.session.steps import Script
from ccplay.stream.sinks import Recorder
from ccplay.traffic.download import StartDownload
from ccplay.traffic.flow import StartFlow, StopFlow
from ccplay.traffic.ping import StartPing, StopPing
from tests.events import HELLO

BBR = SetCongestionControl(flow="1", cc="bbr")
SHORT = SetQdisc(qdisc=Qdisc(kind="pfifo", options={"limit": 20}))
FAST = SetLink(rate=20_000_000)


class Obedient:
    """A lab whose clock is turned by hand, and that does what it is told; but not ``refuses``."""

    live = True

    def __init__(self, moments: dict[float, list[Command]], refuses: Command | None) -> None:
        self.moments = moments
        self.refuses = refuses
        self.session: Session | None = None
        self.done: list[Command] = []
        self._asked: list[Command] = []

    async def events(self) -> AsyncIterator[Event]:
        assert self.session is not None
        yield HELLO
        yield Ready(t=0.0)
        for t, by_hand in self.moments.items():
            for command in by_hand:
                self.session.send(command)
            yield Log(t=t, level="info", text="")
            while self._asked:
                command = self._asked.pop(0)
                if command == self.refuses:
                    yield Failed(t=t, command=command, message="no")
                else:
                    self.done.append(command)
                    yield Applied(t=t, command=command)

    def send(self, command: Command) -> None:
        assert not isinstance(command, StartTogether)
        self._asked.append(command)

    async def close(self) -> None:
        pass


async def played(
    *by_hand: Command,
    steps: list[Command],
    refuses: Command | None = None,
    record: Path | None = None,
) -> tuple[list[Command], list[str]]:
    """Play ``steps`` at 2 s after ``by_hand`` at 1 s; return what was done then, and the log."""
    source = Obedient({1.0: list(by_hand), 2.0: [], 3.0: []}, refuses)
    script = Script([Step(2.0, each) for each in steps])
    sinks = [Recorder(record)] if record else []
    session = source.session = Session(source, script=script, sinks=sinks)
    await session.run()
    skipped = [each.text for each in session.state.log if each.text.startswith("skipped")]
    return source.done[len(by_hand) - (refuses is not None) :], skipped


@pytest.mark.parametrize(
    ("by_hand", "step", "said"),
    [
        (
            SetCongestionControl(flow="1", cc="cubic"),
            BBR,
            "your setting stays: flow 1 switches to bbr",
        ),
        (
            SetCongestionControl(host="s1", cc="cubic"),
            SetCongestionControl(host="s1", cc="reno"),
            "your setting stays: s1: new connections use reno",
        ),
        (
            SetQdisc(qdisc=Qdisc(kind="codel")),
            SHORT,
            "your setting stays: queue bottleneck → pfifo 20 pkt",
        ),
        (
            SetQdisc(qdisc=Qdisc(kind="codel"), link="r1->r2"),
            SetQdisc(qdisc=SHORT.qdisc, link="r2-r1"),
            "your setting stays: queue r2-r1 → pfifo 20 pkt",
        ),
        (SetLink(rate=5_000_000), FAST, "your setting stays: link bottleneck → 20 Mbit/s"),
        (StopFlow(flow="1"), BBR, "you stopped it: flow 1 switches to bbr"),
        (StopFlow(flow="1"), StopFlow(flow="1"), "you stopped it: flow 1 stops"),
        (
            TraceFlow(flow="1"),
            UntraceFlow(flow="1"),
            "your setting stays: flow 1 is no longer traced",
        ),
    ],
)
async def test_a_step_that_would_undo_it_is_skipped_and_reported(
    by_hand: Command, step: Command, said: str
) -> None:
    assert await played(by_hand, steps=[step]) == ([], [f"skipped, {said}"])


@pytest.mark.parametrize(
    ("by_hand", "step"),
    [
        (SetCongestionControl(flow="2", cc="cubic"), BBR),
        (SetCongestionControl(host="s1", cc="cubic"), BBR),
        (SetQdisc(qdisc=Qdisc(kind="codel"), link="s1-r1"), SHORT),
        (SetLink(delay_us=5_000), FAST),
        (SetLink(link="r2->d1", rate=5_000_000), FAST),
        (StopPing(ping="p1"), BBR),
        (StartPing(ping="p2"), BBR),
        (StartFlow(flow="3", src="s1", dst="d1", cc="reno"), StopFlow(flow="1")),
        (Mark(text="mine"), Mark(text="theirs")),
    ],
)
async def test_a_step_that_undoes_nothing_is_done(by_hand: Command, step: Command) -> None:
    assert await played(by_hand, steps=[step]) == ([step], [])


async def test_of_a_link_only_what_was_set_by_hand_stays() -> None:
    step = SetLink(rate=20_000_000, loss=0.01)
    rest, said = SetLink(loss=0.01), "skipped, your setting stays: link bottleneck → 20 Mbit/s"
    assert await played(SetLink(rate=5_000_000), steps=[step]) == ([rest], [said])


async def test_a_remark_goes_with_the_step_that_it_stands_beside() -> None:
    steps: list[Command] = [Mark(text="a short queue"), SHORT]
    by_hand = SetQdisc(qdisc=Qdisc(kind="codel"))
    said = ["skipped, your setting stays: queue bottleneck → pfifo 20 pkt"]
    assert await played(by_hand, steps=steps) == ([], said)
    assert await played(by_hand, steps=[*steps, BBR]) == ([steps[0], BBR], said)


async def test_what_was_refused_takes_nothing() -> None:
    refused = SetCongestionControl(flow="1", cc="dctcp")
    assert await played(refused, steps=[BBR], refuses=refused) == ([BBR], [])


async def test_a_recording_reports_what_was_skipped_and_holds_what_was_done(tmp_path: Path) -> None:
    path = tmp_path / "x.ccplay"
    by_hand = SetLink(rate=5_000_000)
    await played(by_hand, steps=[FAST, BBR], record=path)
    state = read_recording(path)
    assert [each.command for each in state.applied] == [by_hand, BBR]
    assert "skipped, your setting stays: link bottleneck → 20 Mbit/s" in [e.text for e in state.log]


async def test_the_tour_leaves_what_was_changed_and_continues_with_the_rest() -> None:
    """One who changes flow 1 keeps it; the second download and the queue come all the same."""
    tour = load(assets("scenarios") / "playground.toml").case().timeline
    source = Obedient({float(t): [] for t in range(1, 40)}, None)
    source.moments[10.0] = [SetCongestionControl(flow="1", cc="cubic")]
    session = source.session = Session(source, script=Script(tour))
    await session.run()
    changed = [each for each in source.done if not isinstance(each, StartFlow | StartDownload)]
    marks = [each.text for each in changed if isinstance(each, Mark)]
    assert [each.cc for each in changed if isinstance(each, SetCongestionControl)] == ["cubic"]
    assert [each.link for each in changed if isinstance(each, SetQdisc)] == [BOTTLENECK]
    assert "your turn" in marks
    assert not [each for each in marks if "BBR" in each]
    assert len([each for each in source.done if isinstance(each, StartDownload)]) == 2
