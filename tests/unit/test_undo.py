"""Commands by hand can be undone and redone: every command has an inverse."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.model.base import Command
from ccplay.model.commands import (
    Build,
    Change,
    ChangeMark,
    Mark,
    RemoveMark,
    SetClasses,
    SetCongestionControl,
    SetLink,
    SetQdisc,
    StartCapture,
    StopCapture,
    TraceFlow,
    UntraceFlow,
)
from ccplay.scenario.values import Step
from ccplay.session.session import Session
from ccplay.session.steps import Script
from ccplay.traffic import TRAFFIC
from ccplay.traffic.flow import StartFlow, StopFlow
from ccplay.traffic.ping import StartPing
from tests.fake_lab import AT_FIRST, CLASSES, CODEL, PFIFO, SHORT, FakeLab, over


class Hand:
    """Sends commands by hand to a session, and waits for the lab's answer to each."""

    def __init__(self, lab: FakeLab, script: Script | None = None) -> None:
        self.lab = lab
        self.session = Session(lab, script=script)
        self._run = asyncio.create_task(self.session.run())

    async def settle(self) -> None:
        """Wait until the session has read all events of the lab."""
        for _ in range(200):
            await asyncio.sleep(0)
            if self.lab._events.empty() and self.session.state.ready_at is not None:
                await asyncio.sleep(0)
                return
        pytest.fail("the session does not take in what the lab tells")

    async def does(self, *commands: Command) -> None:
        for command in commands:
            await self.settle()
            self.session.send(command)
        await self.settle()
        assert not [each.text for each in self.session.state.log if each.kind == "error"]

    async def undoes(self) -> str:
        said = self.session.undo()
        await self.settle()
        return said

    async def redoes(self) -> str:
        said = self.session.redo()
        await self.settle()
        return said

    async def ends(self) -> None:
        self.lab.tell(None)
        await self._run

    @property
    def log(self) -> list[str]:
        return [each.text for each in self.session.state.log]


@pytest.fixture
async def hand() -> AsyncIterator[Hand]:
    """Return who sends commands to a lab that is ready, and end the session."""
    found = Hand(FakeLab())
    await found.settle()
    yield found
    await found.ends()


def test_every_command_has_an_inverse() -> None:
    commands = {each for each in get_args(Command) if each is not Build}
    commands -= {each for kind in TRAFFIC for each in (kind.start, kind.stop)}
    assert all(each.inverse is not Change.inverse for each in commands)
    assert all(each.describe is not Command.describe for each in commands)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (SetQdisc(qdisc=CODEL), "undo: queue bottleneck back to pfifo 100 pkt"),
        (SetLink(rate=5_000_000), "undo: link bottleneck back to 10 Mbit/s"),
        (SetLink(delay_us=0, loss=0.01), "undo: link bottleneck back to 10 ms, loss 0 %"),
        (SetLink(mark=20), "undo: link bottleneck back to no ECN marks"),
        (SetClasses(classes=CLASSES), "undo: link bottleneck back to one queue"),
        (SetCongestionControl(host="s1", cc="bbr"), "undo: s1: new connections back to cubic"),
        (StartFlow(cc="reno"), "undo: flow 1 stops"),
        (StartPing(), "undo: ping p1 stops"),
        (StartCapture(), "undo: capture c1 stops"),
        (Mark(text="hello"), "undo: mark 'hello' is removed"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
async def test_an_undo_reports_what_it_does_and_leaves_all_as_it_was(
    hand: Hand, command: Command, said: str
) -> None:
    before = hand.lab.held
    await hand.does(command)
    after = hand.lab.held
    assert after != before
    assert await hand.undoes() == said
    assert hand.lab.held == before
    assert said in hand.log
    await hand.redoes()
    assert hand.lab.held[:4] == after[:4]


async def test_several_undos_go_further_back_and_redos_forward(hand: Hand) -> None:
    await hand.does(SetQdisc(qdisc=CODEL), SetQdisc(qdisc=SHORT), SetLink(rate=1_000_000))
    done = hand.lab.held
    said = [await hand.undoes() for _ in range(3)]
    assert said == [
        "undo: link bottleneck back to 10 Mbit/s",
        "undo: queue bottleneck back to codel target 5 ms",
        "undo: queue bottleneck back to pfifo 100 pkt",
    ]
    with pytest.raises(CommandError, match="nothing to undo"):
        hand.session.undo()
    for _ in range(3):
        await hand.redoes()
    assert hand.lab.held == done
    with pytest.raises(CommandError, match="nothing was undone"):
        hand.session.redo()


async def test_what_is_done_after_an_undo_ends_what_can_be_done_again(hand: Hand) -> None:
    await hand.does(SetQdisc(qdisc=CODEL))
    await hand.undoes()
    await hand.does(SetLink(rate=1_000_000))
    with pytest.raises(CommandError, match="nothing was undone"):
        hand.session.redo()


async def test_commands_sent_at_once_are_each_undone_to_what_was_before_them(hand: Hand) -> None:
    hand.session.send(SetQdisc(qdisc=CODEL))
    hand.session.send(SetQdisc(qdisc=SHORT))
    with pytest.raises(CommandError, match="still being carried out"):
        hand.session.undo()
    await hand.settle()
    assert await hand.undoes() == "undo: queue bottleneck back to codel target 5 ms"
    assert await hand.undoes() == "undo: queue bottleneck back to pfifo 100 pkt"


async def test_directions_that_differed_are_put_back_one_by_one(hand: Hand) -> None:
    await hand.does(SetLink(link="r1->r2", delay_us=5_000))
    await hand.does(SetLink(link="r1-r2", delay_us=50_000))
    before = {"r1->r2": 5_000, "r2->r1": 10_000}
    said = await hand.undoes()
    assert said == "undo: link r1->r2 back to 5 ms; link r2->r1 back to 10 ms"
    assert {name: hand.lab.links[name].delay_us for name in before} == before
    # Both directions are undone and redone as one change.
    await hand.redoes()
    assert {hand.lab.links[name].delay_us for name in before} == {50_000}
    await hand.undoes()
    await hand.undoes()
    assert hand.lab.links["r1->r2"] == AT_FIRST


async def test_a_rate_that_was_taken_away_comes_back_with_its_queue(hand: Hand) -> None:
    await hand.does(SetQdisc(link="s1->r1", qdisc=SHORT), SetLink(link="s1->r1", rate=0))
    assert hand.lab.links["s1->r1"].qdisc is None
    await hand.undoes()
    assert hand.lab.links["s1->r1"] == replace(AT_FIRST, qdisc=SHORT)


async def test_the_queue_of_a_class_goes_back_alone(hand: Hand) -> None:
    await hand.does(SetClasses(classes=CLASSES), SetQdisc(qdisc=CODEL, traffic_class="b"))
    assert await hand.undoes() == "undo: queue bottleneck b back to pfifo 100 pkt"
    assert [each.qdisc for each in hand.lab.links["r1->r2"].classes or []] == [PFIFO, PFIFO]


async def test_a_flow_goes_back_to_its_algorithm_before_any_sweep_has_seen_the_new_one(
    hand: Hand,
) -> None:
    await hand.does(StartFlow(cc="reno"))
    await hand.does(SetCongestionControl(flow="1", cc="bbr"))
    await hand.does(SetCongestionControl(flow="1", cc="cubic"))
    assert await hand.undoes() == "undo: flow 1 back to bbr"
    assert await hand.undoes() == "undo: flow 1 back to reno"
    assert hand.lab.flows == {"1": "reno"}


async def test_a_stopped_flow_starts_again_as_it_was_under_another_name(hand: Hand) -> None:
    await hand.does(StartFlow(cc="reno", streams=2, bytes=10**9))
    await hand.does(SetCongestionControl(flow="1", cc="bbr"), StopFlow(flow="1"))
    assert await hand.undoes() == "undo: flow 1 starts again under the next free name"
    assert hand.lab.flows == {"2": "bbr"}
    start = hand.lab.sent[-1]
    assert start == StartFlow(src="s1", dst="d1", cc="bbr", streams=2, bytes=10**9)
    # Redo stops the flow that runs now.
    await hand.redoes()
    assert hand.lab.flows == {}


async def test_what_has_ended_by_itself_is_not_undone_and_the_next_undo_goes_past_it(
    hand: Hand,
) -> None:
    await hand.does(SetQdisc(qdisc=CODEL), StartFlow(cc="reno"))
    hand.lab.tell(over(hand.lab.t, "1"))
    await hand.settle()
    with pytest.raises(CommandError, match="flow 1 has ended"):
        hand.session.undo()
    assert await hand.undoes() == "undo: queue bottleneck back to pfifo 100 pkt"


async def test_a_capture_that_is_complete_stays_so(hand: Hand) -> None:
    await hand.does(StartCapture(), StopCapture(capture="c1"))
    with pytest.raises(CommandError, match="the file of capture c1 is complete"):
        hand.session.undo()


async def test_what_failed_is_nothing_to_undo(hand: Hand) -> None:
    await hand.does(SetQdisc(qdisc=CODEL))
    hand.session.send(SetCongestionControl(flow="9", cc="bbr"))
    await hand.settle()
    assert "no flow 9" in hand.log
    assert await hand.undoes() == "undo: queue bottleneck back to pfifo 100 pkt"


async def test_a_mark_goes_back_to_its_text_and_moment(hand: Hand) -> None:
    await hand.does(Mark(text="one", at=2.0))
    await hand.does(ChangeMark(name="m1", text="two"), ChangeMark(name="m1", at=1.0))
    await hand.does(RemoveMark(name="m1"))
    said = [await hand.undoes() for _ in range(4)]
    assert said == [
        "undo: mark 'two' back at 00:01",
        "undo: mark 'two' back at 00:02",
        "undo: mark 'one' back at 00:02",
        "undo: mark 'one' is removed",
    ]
    assert hand.lab.marks == {}
    for _ in range(3):
        await hand.redoes()
    assert hand.lab.marks == {"m1": ("two", 1.0)}


async def test_a_trace_ends_and_begins_again(hand: Hand) -> None:
    await hand.does(StartFlow(), TraceFlow(flow="1"), UntraceFlow(flow="1"))
    await hand.undoes()
    assert hand.lab.traced == {"1"}
    await hand.undoes()
    assert hand.lab.traced == set()


async def test_the_timeline_is_free_again_to_set_what_was_undone() -> None:
    step = Step(at_s=50.0, command=SetQdisc(qdisc=SHORT), number=1)
    hand = Hand(FakeLab(), Script([step]))
    await hand.does(SetQdisc(qdisc=CODEL))
    await hand.undoes()
    hand.lab.t = 60.0
    await hand.does(Mark(text="later"))
    assert hand.lab.links["r1->r2"].qdisc == SHORT
    assert not any("skipped" in each for each in hand.log)
    # A step of the timeline can't be undone: the mark is, and then nothing is left.
    await hand.undoes()
    with pytest.raises(CommandError, match="nothing to undo"):
        hand.session.undo()
    await hand.ends()


@pytest.mark.parametrize(
    "said",
    [Build(), SetQdisc(qdisc=CODEL, link="nowhere"), StopFlow(flow="1"), Mark(text="?", name="m9")],
    ids=lambda said: type(said).__name__,
)
async def test_a_lab_that_says_it_did_something_else_does_no_harm(
    hand: Hand, said: Command
) -> None:
    hand.lab.lies = said
    hand.session.send(SetQdisc(qdisc=SHORT))
    await hand.settle()
    with pytest.raises(CommandError, match=r"nothing to undo|no link 'nowhere'"):
        hand.session.undo()
    hand.lab.lies = None
    await hand.does(SetQdisc(qdisc=CODEL))
    assert await hand.undoes() == "undo: queue bottleneck back to pfifo 20 pkt"


async def test_nothing_is_undone_once_the_lab_has_ended(hand: Hand) -> None:
    await hand.does(SetQdisc(qdisc=CODEL))
    await hand.ends()
    with pytest.raises(CommandError, match="the lab has ended"):
        hand.session.undo()


_ANY: st.SearchStrategy[Any] = st.sampled_from(
    [
        SetQdisc(qdisc=CODEL),
        SetQdisc(qdisc=SHORT),
        SetQdisc(link="s1-r1", qdisc=SHORT),
        SetLink(rate=1_000_000, loss=0.1),
        SetLink(link="s1-r1", rate=0),
        SetLink(link="s1->r1", delay_us=7),
        SetLink(link="r1-r2", jitter_us=3, delay_us=9),
        SetClasses(classes=CLASSES),
        SetClasses(classes=[]),
        SetCongestionControl(host="s1", cc="bbr"),
        SetCongestionControl(host="s1", cc="reno"),
        StartFlow(cc="reno"),
        StartPing(),
        Mark(text="hello"),
        StartCapture(),
    ]
)


@given(st.lists(_ANY, max_size=8))
def test_undoing_all_gives_the_lab_as_it_was_and_redoing_all_as_it_became(
    commands: list[Command],
) -> None:
    async def play() -> None:
        hand = Hand(FakeLab())
        await hand.settle()
        steps = [hand.lab.held]
        for command in commands:
            await hand.does(command)
            steps.append(hand.lab.held)
        for expected in reversed(steps[:-1]):
            await hand.undoes()
            assert hand.lab.held == expected
        for expected in steps[1:]:
            await hand.redoes()
            # A mark gets a new name each time.
            assert hand.lab.held[:4] == expected[:4]
        await hand.ends()

    asyncio.run(play())
