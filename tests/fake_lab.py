"""A fake lab for tests of the user's commands: it keeps settings in memory and reports changes."""

import asyncio
from collections.abc import AsyncIterator
from itertools import count

from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.model.base import Command, Event
from ccplay.model.commands import (
    ChangeMark,
    Mark,
    RemoveMark,
    SetClasses,
    SetCongestionControl,
    SetLink,
    SetQdisc,
    StartCapture,
    StartTogether,
    StopCapture,
    TraceFlow,
    UntraceFlow,
)
from ccplay.model.events import (
    Applied,
    CaptureEnded,
    CaptureStarted,
    Failed,
    HostChanged,
    LinkChanged,
    Ready,
    TraceEnded,
    TraceStarted,
)
from ccplay.model.network import Network, Topology
from ccplay.model.topologies import plan
from ccplay.model.values import LinkSetting, Qdisc, TrafficClass
from ccplay.traffic.flow import FlowEnded, FlowStarted, StartFlow, StopFlow
from ccplay.traffic.ping import PingEnded, PingStarted, StartPing, StopPing
from tests.events import HELLO

PFIFO = Qdisc(kind="pfifo", options={"limit": 100})
CODEL = Qdisc(kind="codel", options={"target": 5000})
SHORT = Qdisc(kind="pfifo", options={"limit": 20})
CLASSES = [TrafficClass(name="a", share=0.5), TrafficClass(name="b", share=0.5)]
AT_FIRST = LinkSetting(rate=10_000_000, delay_us=10_000, jitter_us=0, loss=0.0, qdisc=PFIFO)


class FakeLab:
    """A source that keeps a lab's settings in memory and answers each command at once."""

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
        self.sent: list[Command] = []
        self.lies: Command | None = None
        """Command that the lab reports in place of the one it carried out; None to report that."""
        self.t = 1.0
        self._numbers = count(1)
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()

    @property
    def held(self) -> tuple[object, ...]:
        """All that commands have set, for comparison; traffic without its names, which change."""
        flows = sorted(self.flows.values())
        # A link that was never set to mark has None there.
        links = {name: replace(each, mark=each.mark or 0) for name, each in self.links.items()}
        return (
            *(links, dict(self.hosts), flows, len(self.pings)),
            *(dict(self.marks), len(self.traced), len(self.captures)),
        )

    async def events(self) -> AsyncIterator[Event]:
        yield replace(HELLO, network=self.network)
        for name, setting in self.links.items():
            yield self._changed(name, setting)
        for host, cc in self.hosts.items():
            yield HostChanged(t=0.0, host=host, cc=cc)
        yield Ready(t=0.0)
        while (event := await self._events.get()) is not None:
            yield event

    def send(self, command: Command) -> None:
        assert not isinstance(command, StartTogether)
        self.sent.append(command)
        self.t += 1.0
        try:
            done = self._do(command)
        except CommandError as error:
            self.tell(Failed(t=self.t, command=command, message=str(error)))
        else:
            self.tell(Applied(t=self.t, command=self.lies or done))

    def tell(self, event: Event | None) -> None:
        self._events.put_nowait(event)

    async def close(self) -> None:
        self.tell(None)

    def _changed(self, link: str, setting: LinkSetting) -> LinkChanged:
        return LinkChanged(
            t=self.t, link=link, setting=setting, offloads=False, delay_engine="netem"
        )

    def _do(self, command: Command) -> Command:
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
                self.tell(over(self.t, command.flow))
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

    def _observe(self, command: Command) -> Command:
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


def over(t: float, flow: str) -> FlowEnded:
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
    # A link with a rate always has a queue.
    return replace(now, qdisc=now.qdisc or PFIFO)
