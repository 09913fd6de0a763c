"""What was done by hand can be undone and done again: the inverse of every command."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.model.commands import (
    AnyCommand,
    Build,
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
from ccplay.model.events import (
    AnyEvent,
    Applied,
    CaptureEnded,
    CaptureStarted,
    Failed,
    Hello,
    HostChanged,
    LinkChanged,
    Ready,
    TraceEnded,
    TraceStarted,
)
from ccplay.model.network import Network, Topology
from ccplay.model.topologies import plan
from ccplay.model.traffic import TRAFFIC
from ccplay.model.traffic_commands import StartFlow, StartPing, StopFlow, StopPing
from ccplay.model.traffic_events import (
    FlowEnded,
    FlowStarted,
    PingEnded,
    PingStarted,
)
from ccplay.model.values import Capabilities, LinkSetting, Qdisc, TrafficClass
from ccplay.scenario.values import Step
from ccplay.session import inverse
from ccplay.session.session import Session
from ccplay.session.timeline import Script
from ccplay.stream import wire

PFIFO = Qdisc(kind="pfifo", options={"limit": 100})
CODEL = Qdisc(kind="codel", options={"target": 5000})
SHORT = Qdisc(kind="pfifo", options={"limit": 20})
CLASSES = [TrafficClass(name="a", share=0.5), TrafficClass(name="b", share=0.5)]
AT_FIRST = LinkSetting(rate=10_000_000, delay_us=10_000, jitter_us=0, loss=0.0, qdisc=PFIFO)


class FakeLab:
    """What a lab holds, and how it answers: each command at once or, ``held``, when let go."""

    live = True

    def __init__(self, topology: Topology | None = None) -> None:
        self.network: Network = plan(topology or Topology(pairs=1))
        self.links = {each.name: AT_FIRST for each in self.network.links}
        self.hosts = dict.fromkeys(self.network.hosts, "cubic")
        self.flows: dict[str, str] = {}
        self.pings: set[str] = set()
        self.marks: dict[str, tuple[str, float]] = {}
        self.traced: set[str] = set()
        self.captures: set[str] = set()
        self.sent: list[AnyCommand] = []
        self.t = 1.0
        self._numbers = count(1)
        self._events: asyncio.Queue[AnyEvent | None] = asyncio.Queue()

    @property
    def held(self) -> tuple[object, ...]:
        """All that commands set, to be compared; what runs has another name each time."""
        flows = sorted(self.flows.values())
        # What never marked has None there.
        links = {name: replace(each, mark=each.mark or 0) for name, each in self.links.items()}
        return (
            *(links, dict(self.hosts), flows, len(self.pings)),
            *(dict(self.marks), len(self.traced), len(self.captures)),
        )

    async def events(self) -> AsyncIterator[AnyEvent]:
        capabilities = Capabilities(
            kernel="",
            privilege="root",
            congestion_controls=[],
            qdiscs=[],
            delay_engines=[],
            tools=[],
        )
        yield Hello(
            t=0.0,
            format=wire.FORMAT,
            version="0",
            wall_time=0.0,
            sample_hz=50,
            capabilities=capabilities,
            network=self.network,
        )
        for name, setting in self.links.items():
            yield self._changed(name, setting)
        for host, cc in self.hosts.items():
            yield HostChanged(t=0.0, host=host, cc=cc)
        yield Ready(t=0.0)
        while (event := await self._events.get()) is not None:
            yield event

    def send(self, command: AnyCommand) -> None:
        self.sent.append(command)
        self.t += 1.0
        try:
            done = self._do(command)
        except CommandError as error:
            self.tell(Failed(t=self.t, command=command, message=str(error)))
        else:
            self.tell(Applied(t=self.t, command=done))

    def tell(self, event: AnyEvent | None) -> None:
        self._events.put_nowait(event)

    async def close(self) -> None:
        self.tell(None)

    def _changed(self, link: str, setting: LinkSetting) -> LinkChanged:
        return LinkChanged(
            t=self.t, link=link, setting=setting, offloads=False, delay_engine="netem"
        )

    def _do(self, command: AnyCommand) -> AnyCommand:
        match command:
            case SetQdisc() | SetClasses() | SetLink():
                for link in self.network.resolve(command.link):
                    self.links[link.name] = _put(self.links[link.name], command)
                    self.tell(self._changed(link.name, self.links[link.name]))
            case SetCongestionControl(flow=None, host=str(host)):
                self.hosts[host] = command.cc
                self.tell(HostChanged(t=self.t, host=host, cc=command.cc))
            case SetCongestionControl(flow=str(flow)):
                if flow not in self.flows:
                    raise CommandError(f"no flow {flow}")
                self.flows[flow] = command.cc
            case StartFlow():
                name = command.flow or str(next(self._numbers))
                command = replace(command, flow=name, src="s1", dst="d1", cc=command.cc or "cubic")
                self.flows[name] = command.cc or ""
                started = FlowStarted(
                    t=self.t, flow=name, src="s1", dst="d1", cc=command.cc or "", port=1
                )
                self.tell(started)
            case StopFlow():
                del self.flows[command.flow]
                self.tell(_over(self.t, command.flow))
            case StartPing():
                name = f"p{next(self._numbers)}"
                command = replace(command, ping=name)
                self.pings.add(name)
                self.tell(PingStarted(t=self.t, ping=name, src="s1", dst="d1", interval_s=0.2))
            case StopPing():
                self.pings.remove(command.ping)
                self.tell(PingEnded(t=self.t, ping=command.ping, sent=1, lost=0))
            case _:
                return self._observe(command)
        return command

    def _observe(self, command: AnyCommand) -> AnyCommand:
        match command:
            case Mark():
                command = replace(command, name=command.name or f"m{next(self._numbers)}")
                at = self.t if command.at is None else command.at
                self.marks[command.name or ""] = command.text, at
            case ChangeMark():
                text, at = self.marks[command.name]
                self.marks[command.name] = (
                    command.text or text,
                    at if command.at is None else command.at,
                )
            case RemoveMark():
                del self.marks[command.name]
            case TraceFlow():
                self.traced.add(command.flow)
                self.tell(TraceStarted(t=self.t, flow=command.flow))
            case UntraceFlow():
                self.traced.remove(command.flow)
                self.tell(TraceEnded(t=self.t, flow=command.flow, segments=1))
            case StartCapture():
                name = f"c{next(self._numbers)}"
                command = replace(command, capture=name)
                self.captures.add(name)
                self.tell(CaptureStarted(t=self.t, capture=name, link="r1->r2", path="x"))
            case StopCapture():
                self.captures.remove(command.capture)
                ended = CaptureEnded(
                    t=self.t, capture=command.capture, path="x", packets=1, bytes=1, dropped=0
                )
                self.tell(ended)
        return command


def _over(t: float, flow: str) -> FlowEnded:
    return FlowEnded(t=t, flow=flow, bytes=1, duration_s=1.0, retransmits=0)


def _put(setting: LinkSetting, command: SetQdisc | SetClasses | SetLink) -> LinkSetting:
    if isinstance(command, SetQdisc):
        if command.traffic_class is None:
            return replace(setting, qdisc=command.qdisc)
        classes = [
            replace(each, qdisc=command.qdisc) if each.name == command.traffic_class else each
            for each in setting.classes or []
        ]
        return replace(setting, classes=classes)
    if isinstance(command, SetClasses):
        filled = [replace(each, qdisc=each.qdisc or PFIFO) for each in command.classes]
        return replace(setting, classes=filled or None)
    fields = {each: getattr(command, each) for each in SetLink.__struct_fields__ if each != "link"}
    now = replace(setting, **{each: value for each, value in fields.items() if value is not None})
    if now.rate == 0:
        return replace(now, qdisc=None)
    # HTB has a queue, whichever.
    return replace(now, qdisc=now.qdisc or PFIFO)


class Hand:
    """Does things by hand to a session, and waits for the lab's answer to each."""

    def __init__(self, lab: FakeLab, script: Script | None = None) -> None:
        self.lab = lab
        self.session = Session(lab, script=script)
        self._run = asyncio.create_task(self.session.run())

    async def settle(self) -> None:
        """Let the session take in all that the lab has told."""
        for _ in range(200):
            await asyncio.sleep(0)
            if self.lab._events.empty() and self.session.state.ready_at is not None:
                await asyncio.sleep(0)
                return
        pytest.fail("the session does not take in what the lab tells")

    async def does(self, *commands: AnyCommand) -> None:
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


def test_every_command_has_an_inverse() -> None:
    commands = {each for each in get_args(AnyCommand) if each is not Build}
    commands -= {each for kind in TRAFFIC for each in (kind.start, kind.stop)}
    assert set(inverse._INVERSES) == commands


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (SetQdisc(qdisc=CODEL), "undo: queue bottleneck back to pfifo 100 pkt"),
        (SetLink(rate=5_000_000), "undo: link bottleneck back to 10 Mbit/s"),
        (SetLink(delay_us=0, loss=0.01), "undo: link bottleneck back to 10 ms, loss 0 %"),
        (SetLink(mark=20), "undo: link bottleneck back to marks nothing"),
        (SetClasses(classes=CLASSES), "undo: link bottleneck back to one queue"),
        (SetCongestionControl(host="s1", cc="bbr"), "undo: s1: new connections back to cubic"),
        (StartFlow(cc="reno"), "undo: flow 1 stops"),
        (StartPing(), "undo: ping p1 stops"),
        (StartCapture(), "undo: capture c1 stops"),
        (Mark(text="hello"), "undo: mark 'hello' is removed"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
async def test_an_undo_says_what_it_does_and_leaves_all_as_it_was(
    command: AnyCommand, said: str
) -> None:
    hand = Hand(FakeLab())
    await hand.settle()
    before = hand.lab.held
    await hand.does(command)
    after = hand.lab.held
    assert after != before
    assert await hand.undoes() == said
    assert hand.lab.held == before
    assert said in hand.log
    await hand.redoes()
    assert hand.lab.held[:4] == after[:4]
    await hand.ends()


async def test_several_undos_go_further_back_and_redos_forward() -> None:
    hand = Hand(FakeLab())
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
    await hand.ends()


async def test_what_is_done_after_an_undo_ends_what_can_be_done_again() -> None:
    hand = Hand(FakeLab())
    await hand.does(SetQdisc(qdisc=CODEL))
    await hand.undoes()
    await hand.does(SetLink(rate=1_000_000))
    with pytest.raises(CommandError, match="nothing was undone"):
        hand.session.redo()
    await hand.ends()


async def test_commands_sent_at_once_are_each_undone_to_what_was_before_them() -> None:
    hand = Hand(FakeLab())
    await hand.settle()
    hand.session.send(SetQdisc(qdisc=CODEL))
    hand.session.send(SetQdisc(qdisc=SHORT))
    with pytest.raises(CommandError, match="still being carried out"):
        hand.session.undo()
    await hand.settle()
    assert await hand.undoes() == "undo: queue bottleneck back to codel target 5 ms"
    assert await hand.undoes() == "undo: queue bottleneck back to pfifo 100 pkt"
    await hand.ends()


async def test_directions_that_differed_are_put_back_one_by_one() -> None:
    hand = Hand(FakeLab())
    await hand.does(SetLink(link="r1->r2", delay_us=5_000))
    await hand.does(SetLink(link="r1-r2", delay_us=50_000))
    before = {"r1->r2": 5_000, "r2->r1": 10_000}
    said = await hand.undoes()
    assert said == "undo: link r1->r2 back to 5 ms; link r2->r1 back to 10 ms"
    assert {name: hand.lab.links[name].delay_us for name in before} == before
    # Both are one change.
    await hand.redoes()
    assert {hand.lab.links[name].delay_us for name in before} == {50_000}
    await hand.undoes()
    await hand.undoes()
    assert hand.lab.links["r1->r2"] == AT_FIRST
    await hand.ends()


async def test_a_rate_that_was_taken_away_comes_back_with_its_queue() -> None:
    hand = Hand(FakeLab())
    await hand.does(SetQdisc(link="s1->r1", qdisc=SHORT), SetLink(link="s1->r1", rate=0))
    assert hand.lab.links["s1->r1"].qdisc is None
    await hand.undoes()
    assert hand.lab.links["s1->r1"] == replace(AT_FIRST, qdisc=SHORT)
    await hand.ends()


async def test_the_queue_of_a_class_goes_back_alone() -> None:
    hand = Hand(FakeLab())
    await hand.does(SetClasses(classes=CLASSES), SetQdisc(qdisc=CODEL, traffic_class="b"))
    assert await hand.undoes() == "undo: queue bottleneck b back to pfifo 100 pkt"
    assert [each.qdisc for each in hand.lab.links["r1->r2"].classes or []] == [PFIFO, PFIFO]
    await hand.ends()


async def test_a_flow_goes_back_to_its_algorithm_before_any_sweep_has_seen_the_new_one() -> None:
    hand = Hand(FakeLab())
    await hand.does(StartFlow(cc="reno"))
    await hand.does(SetCongestionControl(flow="1", cc="bbr"))
    await hand.does(SetCongestionControl(flow="1", cc="cubic"))
    assert await hand.undoes() == "undo: flow 1 back to bbr"
    assert await hand.undoes() == "undo: flow 1 back to reno"
    assert hand.lab.flows == {"1": "reno"}
    await hand.ends()


async def test_a_stopped_flow_starts_again_as_it_was_under_another_name() -> None:
    hand = Hand(FakeLab())
    await hand.does(StartFlow(cc="reno", streams=2, bytes=10**9))
    await hand.does(SetCongestionControl(flow="1", cc="bbr"), StopFlow(flow="1"))
    assert await hand.undoes() == "undo: flow 1 starts again, under the next free name"
    assert hand.lab.flows == {"2": "bbr"}
    start = hand.lab.sent[-1]
    assert start == StartFlow(src="s1", dst="d1", cc="bbr", streams=2, bytes=10**9)
    # Done again, it is the one that runs which stops.
    await hand.redoes()
    assert hand.lab.flows == {}
    await hand.ends()


async def test_what_has_ended_by_itself_is_not_undone_and_the_next_undo_goes_past_it() -> None:
    hand = Hand(FakeLab())
    await hand.does(SetQdisc(qdisc=CODEL), StartFlow(cc="reno"))
    hand.lab.tell(_over(hand.lab.t, "1"))
    await hand.settle()
    with pytest.raises(CommandError, match="flow 1 has ended"):
        hand.session.undo()
    assert await hand.undoes() == "undo: queue bottleneck back to pfifo 100 pkt"
    await hand.ends()


async def test_a_capture_that_is_complete_stays_so() -> None:
    hand = Hand(FakeLab())
    await hand.does(StartCapture(), StopCapture(capture="c1"))
    with pytest.raises(CommandError, match="the file of capture c1 is complete"):
        hand.session.undo()
    await hand.ends()


async def test_what_failed_is_nothing_to_undo() -> None:
    hand = Hand(FakeLab())
    await hand.does(SetQdisc(qdisc=CODEL))
    hand.session.send(SetCongestionControl(flow="9", cc="bbr"))
    await hand.settle()
    assert "no flow 9" in hand.log
    assert await hand.undoes() == "undo: queue bottleneck back to pfifo 100 pkt"
    await hand.ends()


async def test_a_mark_goes_back_to_its_text_and_moment() -> None:
    hand = Hand(FakeLab())
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
    await hand.ends()


async def test_a_trace_ends_and_begins_again() -> None:
    hand = Hand(FakeLab())
    await hand.does(StartFlow(), TraceFlow(flow="1"), UntraceFlow(flow="1"))
    await hand.undoes()
    assert hand.lab.traced == {"1"}
    await hand.undoes()
    assert hand.lab.traced == set()
    await hand.ends()


async def test_the_timeline_is_free_again_to_set_what_was_undone() -> None:
    step = Step(at_s=50.0, command=SetQdisc(qdisc=SHORT), number=1)
    hand = Hand(FakeLab(), Script([step]))
    await hand.does(SetQdisc(qdisc=CODEL))
    await hand.undoes()
    hand.lab.t = 60.0
    await hand.does(Mark(text="later"))
    assert hand.lab.links["r1->r2"].qdisc == SHORT
    assert not any("skipped" in each for each in hand.log)
    # Nor is what the timeline does a person's to undo: first the mark, then nothing.
    await hand.undoes()
    with pytest.raises(CommandError, match="nothing to undo"):
        hand.session.undo()
    await hand.ends()


async def test_nothing_is_undone_once_the_lab_has_ended() -> None:
    hand = Hand(FakeLab())
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
    commands: list[AnyCommand],
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
            # A mark's name is new each time.
            assert hand.lab.held[:4] == expected[:4]
        await hand.ends()

    asyncio.run(play())
