"""A session saved as a scenario describes exactly what was built and done, and when."""

import heapq
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ccplay.errors import RecordingError, ScenarioError
from ccplay.model.base import Command, Event, Option
from ccplay.model.commands import (
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
from ccplay.model.disciplines import AVERAGING, DISCIPLINES, software_only, thresholds
from ccplay.model.events import Applied, HostChanged, Log, Ready
from ccplay.model.network import Network, Topology
from ccplay.model.quantities import RATE, SHARE, SWITCH, Field, fields_of
from ccplay.model.texts import CONGESTION_CONTROLS
from ccplay.model.topologies import plan
from ccplay.model.values import LinkSetting, Qdisc, TrafficClass
from ccplay.scenario.library import find, shipped
from ccplay.scenario.reading import load, parse
from ccplay.scenario.rules import admitted, rerun
from ccplay.scenario.timeline import LARGEST_CAPTURE
from ccplay.scenario.values import Case
from ccplay.scenario.writing import write
from ccplay.session.steps import Script
from ccplay.state.lab_state import LabState
from ccplay.traffic import TRAFFIC, started_by
from ccplay.traffic.download import DownloadEnded, DownloadStarted, StartDownload, StopDownload
from ccplay.traffic.flow import FlowEnded, FlowStarted, StartFlow, StopFlow
from ccplay.traffic.ping import PingEnded, PingStarted, StartPing, StopPing
from ccplay.traffic.short_flows import ShortFlowsEnded, ShortFlowsStarted, StartShortFlows
from ccplay.traffic.udp import StartUdp, StopUdp, UdpEnded, UdpStarted
from ccplay.units import (
    write_frequency,
    write_rate,
    write_seconds,
    write_share,
    write_size,
    write_time_us,
)
from tests.events import CAPABILITIES as NOTHING
from tests.events import HELLO, folded, link_changed

READY_AT = 0.4321


def between(command: type[msgspec.Struct], name: str) -> st.SearchStrategy[int]:
    """Draw integers between the bounds of a setting."""
    field = fields_of(command)[name]
    return st.integers(int(field.low or 0), int(field.high or 0))


CAPTURES = st.integers(int(fields_of(StartCapture)["max_bytes"].low or 0), LARGEST_CAPTURE)

CAPABILITIES = replace(NOTHING, kernel="6.18.5")
FIRST = replace(HELLO, format=1, version="1.2.3", wall_time=1.8e9, capabilities=CAPABILITIES)


def session(build: Build, *events: Event, tells_build: bool = True) -> LabState:
    """Return a session whose network is ready at ``READY_AT``, with these events."""
    known = {"sample_hz": build.sample_hz, "network": plan(build.topology)}
    return folded(
        replace(FIRST, build=build if tells_build else None, **known), Ready(t=READY_AT), *events
    )


def reread(state: LabState, **options: float) -> Case:
    text = write(state, title="As played", **options)
    return parse(text, Path("as-played.toml")).case()


# --- any session ----------------------------------------------------------------------------


rates = between(LinkSetting, "rate")


def values(parameter: Field) -> st.SearchStrategy[Option]:
    quantity = parameter.quantity
    if quantity is SWITCH:
        return st.booleans()
    if "enum" in quantity.shape:
        return st.sampled_from(quantity.shape["enum"])
    if quantity is RATE:
        return rates
    if quantity is SHARE:
        return st.integers(0, 100).map(lambda percent: percent / 100)
    if parameter.name == "priomap":
        return st.lists(st.integers(0, 15), min_size=16, max_size=16).map(
            lambda bands: " ".join(map(str, bands))
        )
    return st.integers(int(parameter.low or 0), int(parameter.high or 0))


@st.composite
def queues(draw: st.DrawFn) -> Qdisc:
    discipline = DISCIPLINES[draw(st.sampled_from(sorted(DISCIPLINES)))]
    options = {
        parameter.name: draw(values(parameter))
        for parameter in discipline.parameters
        if parameter.required or draw(st.booleans())
    }
    if discipline.kind in AVERAGING:
        try:
            thresholds(options)
        except ValueError:
            options = {name: options[name] for name in options.keys() - {"min", "max"}}
    return Qdisc(kind=discipline.kind, options=options)


losses = st.floats(0.0, 1.0)
moments = st.integers(0, 3_600_000).map(lambda ms: ms / 1000)
algorithms = st.sampled_from(CONGESTION_CONTROLS)


@st.composite
def classes(draw: st.DrawFn) -> list[TrafficClass]:
    """Draw up to three classes that share a rate, with each kind of traffic in at most one."""
    takes = draw(st.permutations([*(kind.plural for kind in TRAFFIC), "1", "w1", "p1"]))
    number = draw(st.integers(0, 3))
    return [
        TrafficClass(
            name=name,
            share=draw(st.floats(0.01, 1 / 3)),
            traffic=takes[2 * at : 2 * at + draw(st.integers(1, 2))],
            qdisc=draw(st.none() | queues().filter(lambda each: not software_only(each.kind))),
        )
        for at, name in enumerate(("a", "b", "c")[:number])
    ]


@st.composite
def settings(draw: st.DrawFn) -> LinkSetting:
    delay = draw(st.none() | between(LinkSetting, "delay_us"))
    rate = draw(st.none() | rates)
    shares = draw(st.none() | classes()) if rate else None
    # With classes the queue is that of each class that names none.
    fits = queues().filter(lambda each: not (shares and software_only(each.kind)))
    return LinkSetting(
        rate=rate,
        delay_us=delay,
        jitter_us=draw(st.none() | st.integers(0, delay)) if delay is not None else None,
        loss=draw(st.none() | losses),
        mark=draw(st.none() | st.integers(0, 10_000)) if rate else None,
        qdisc=draw(st.none() | fits),
        classes=shares,
    )


def link_names(network: Network) -> st.SearchStrategy[str]:
    directed = [link.name for link in network.links]
    return st.sampled_from([*network.link_names, *directed])


@st.composite
def builds(draw: st.DrawFn) -> Build:
    pairs = draw(st.integers(1, 8))
    topology = draw(st.sampled_from([Topology(kind="linear"), Topology(pairs=pairs)]))
    network = plan(topology)
    hosts = st.sampled_from(network.hosts)
    return Build(
        topology=topology,
        links={
            link: replace(setting, mtu=mtu)
            for link, setting in draw(
                st.dictionaries(link_names(network), settings(), max_size=4)
            ).items()
            # An MTU of one direction is refused.
            for mtu in [None if "->" in link else draw(st.none() | st.integers(296, 1500))]
        },
        congestion_controls=draw(st.dictionaries(hosts, algorithms, max_size=3)),
        sample_hz=draw(st.sampled_from([50.0, 33.3]) | st.floats(10.0, 200.0)),
        seed=draw(st.integers(0, 2**31 - 1)),
    )


def traffic(draw: st.DrawFn, name: str, network: Network) -> list[Command]:
    """Draw the start of some traffic, and perhaps commands that change and stop it."""
    src, dst = network.hosts[0], network.hosts[-1]
    start: Command
    limit = st.integers(1, 86_400_000_000).map(lambda us: us / 1e6)
    match draw(st.integers(0, 3)):
        case 0:
            start = StartFlow(
                flow=name,
                src=src,
                dst=dst,
                cc=draw(algorithms),
                streams=draw(st.integers(1, 128)),
                ecn=draw(st.booleans()),
                bytes=draw(st.none() | between(StartFlow, "bytes")),
                duration_s=draw(st.none() | limit),
            )
            switch = SetCongestionControl(cc=draw(algorithms), flow=name)
            trace, untrace = TraceFlow(flow=name), UntraceFlow(flow=name)
            done: list[Command] = [start, trace, switch, untrace, StopFlow(flow=name)]
        case 1:
            amount = draw(between(StartFlow, "bytes"))
            start = StartDownload(
                download=f"w{name}", src=src, dst=dst, cc=draw(algorithms), bytes=amount
            )
            done = [start, StopDownload(download=f"w{name}")]
        case 2:
            start = StartUdp(
                udp=f"u{name}",
                src=src,
                dst=dst,
                rate_bps=draw(between(StartUdp, "rate_bps")),
                packet_bytes=draw(between(StartUdp, "packet_bytes")),
                duration_s=draw(st.none() | limit),
            )
            done = [start, StopUdp(udp=f"u{name}")]
        case _:
            gap = draw(st.integers(10_000, 60_000_000)) / 1e6
            number = draw(st.none() | between(StartPing, "count"))
            start = StartPing(ping=f"p{name}", src=src, dst=dst, interval_s=gap, count=number)
            done = [start, StopPing(ping=f"p{name}")]
    return done[: draw(st.integers(1, len(done)))]


def change(draw: st.DrawFn, name: str, network: Network) -> list[Command]:
    """Draw commands that change the network, capture packets or set a mark."""
    link = draw(link_names(network))
    match draw(st.integers(0, 5)):
        case 0:
            return [SetCongestionControl(cc=draw(algorithms), host=network.hosts[0])]
        case 1:
            # On a link with classes, the queue would have to be that of a class.
            return [SetClasses(classes=[], link=link), SetQdisc(qdisc=draw(queues()), link=link)]
        case 2:
            times = st.none() | between(LinkSetting, "delay_us")
            rate = draw(st.none() | rates)
            loss = draw(losses)
            changed = SetLink(
                link=link,
                rate=rate,
                delay_us=draw(times),
                jitter_us=draw(times),
                loss=loss,
                mark=draw(st.none() | st.integers(0, 10_000)),
            )
            return [changed] if rate else [SetClasses(classes=[], link=link), changed]
        case 3:
            return [
                SetLink(link=link, rate=1_000_000),
                SetClasses(classes=draw(classes()), link=link),
            ]
        case 4:
            limit, kept = draw(CAPTURES), draw(st.integers(64, 65_535))
            capture: Command = StartCapture(capture=f"c{name}", snaplen=kept, max_bytes=limit)
            return [capture, StopCapture(capture=f"c{name}")][: draw(st.integers(1, 2))]
    printable = st.characters(categories=("L", "N", "P", "S"))
    return [Mark(text=draw(st.text(printable, min_size=1, max_size=200)))]


@st.composite
def commands(draw: st.DrawFn, network: Network) -> list[Command]:
    """Draw commands of a session in order, with all traffic named as by a lab."""
    done: list[Command] = []
    for number in range(draw(st.integers(0, 12))):
        one_of = traffic if draw(st.booleans()) else change
        done += one_of(draw, str(number), network)
    return done


@st.composite
def sessions(draw: st.DrawFn) -> tuple[Build, list[Applied]]:
    build = draw(builds())
    done = draw(commands(plan(build.topology)))
    gaps = draw(st.lists(st.floats(0.0, 100.0), min_size=len(done), max_size=len(done)))
    t, applied = READY_AT, []
    for command, gap in zip(done, gaps, strict=True):
        t += gap
        applied.append(Applied(t=t, command=command))
    return build, applied


@given(sessions())
def test_what_is_written_is_read_back(played: tuple[Build, list[Applied]]) -> None:
    """A saved session is read as the same network and exact commands, at times within 1 ms."""
    build, applied = played
    case = reread(session(build, *applied))
    assert case.build == build
    assert [each.command for each in case.timeline] == [each.command for each in applied]
    for one, other in zip(case.timeline, applied, strict=True):
        assert one.after is None
        assert one.at_s == pytest.approx(other.t - READY_AT, abs=0.00051)
    lasted = max([READY_AT, *(each.t for each in applied)]) - READY_AT
    assert lasted - 0.001 <= case.duration_s <= lasted + 1


def test_a_session_of_too_many_steps_is_refused_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ccplay.scenario.timeline.MOST_STEPS", 2)
    marks = [Applied(t=READY_AT + n, command=Mark(text="here")) for n in range(3)]
    with pytest.raises(ScenarioError, match="more than 2 steps"):
        write(session(Build(), *marks))


# --- what ships -----------------------------------------------------------------------------


def play(case: Case) -> tuple[LabState, list[tuple[float, Command]]]:
    """Run a case in a lab that takes no time; return its state and each command with its time."""
    state, script = session(case.build), Script(case.timeline)
    done: list[tuple[float, Command]] = []
    coming: list[tuple[float, int, Event]] = []
    numbers = count()
    end = READY_AT + case.duration_s
    while state.now < end:
        for command in [step.command for step in script.due(state)]:
            done.append((state.now - READY_AT, command))
            state.apply(Applied(t=state.now, command=command))
            for event in outcome(state.now, command):
                heapq.heappush(coming, (event.t, next(numbers), event))
        since = {None: READY_AT} | {name: each.ended for name, each in state.traffic.items()}
        begins = [(since.get(step.after), step.at_s) for step in script.waiting]
        steps = [began + at_s for began, at_s in begins if began is not None]
        moments = [*steps, coming[0][0] if coming else end, end]
        state.apply(Log(t=max(min(moments), state.now), level="debug", text="time goes on"))
        while coming and coming[0][0] <= state.now:
            state.apply(heapq.heappop(coming)[2])
    return state, done


def outcome(t: float, command: Command) -> Iterator[Event]:
    """Yield the events that a command causes; limited traffic runs for two seconds."""
    match command:
        case StartFlow(flow=str(name)):
            yield FlowStarted(t=t, flow=name, src="a", dst="b", cc="reno", port=1)
            ended: Event = FlowEnded(t=t + 2, flow=name, bytes=1, duration_s=2.0, retransmits=0)
        case StartDownload(download=str(name)):
            yield DownloadStarted(t=t, download=name, src="a", dst="b", bytes=command.bytes)
            ended = DownloadEnded(t=t + 2, download=name, bytes=1, duration_s=2.0)
        case StartPing(ping=str(name)):
            yield PingStarted(t=t, ping=name, src="a", dst="b", interval_s=command.interval_s)
            ended = PingEnded(t=t + 2, ping=name, sent=1, lost=0)
        case StartUdp(udp=str(name)):
            rate, size = command.rate_bps, command.packet_bytes
            yield UdpStarted(
                t=t, udp=name, src="a", dst="b", rate_bps=rate, packet_bytes=size, port=1
            )
            ended = UdpEnded(t=t + 2, udp=name, sent=1, received=1, jitter_us=0.0, duration_s=2.0)
        case StartShortFlows(short_flows=str(name)):
            yield ShortFlowsStarted(
                t=t,
                short_flows=name,
                src="a",
                dst="b",
                cc="reno",
                rate_bps=command.rate_bps,
                port=1,
            )
            ended = ShortFlowsEnded(t=t + 2, short_flows=name)
        case StopFlow():
            ended = FlowEnded(t=t, flow=command.flow, bytes=1, duration_s=2.0, retransmits=0)
        case _:
            return
    kind = started_by(command)
    if kind is None or kind.ends(command):
        yield ended


@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_shipped_scenario_played_is_the_scenario(name: str) -> None:
    """A shipped scenario that is run and saved is the same; waits for an end become its time."""
    for case in load(find(name)).cases:
        state, done = play(case)
        assert len(done) == len(case.timeline), case.name
        again = reread(state)
        assert again.build == case.build
        assert again.duration_s == case.duration_s
        assert [each.command for each in again.timeline] == [command for _, command in done]
        assert [each.at_s for each in again.timeline] == pytest.approx(
            [t for t, _ in done], abs=0.001
        )


# --- by hand --------------------------------------------------------------------------------


def test_how_it_looks() -> None:
    """A saved scenario is easy to read: with aligned times, units, and no defaults."""
    build = Build(
        topology=Topology(kind="linear"),
        links={
            "bottleneck": LinkSetting(
                rate=1_500_000, delay_us=10_000, qdisc=Qdisc(kind="pfifo", options={"limit": 100})
            ),
            "r->h2": LinkSetting(
                loss=0.07,
                classes=[
                    TrafficClass(name="long", share=0.5, traffic=["flows"]),
                    TrafficClass(name="rest", share=0.5, qdisc=Qdisc(kind="sfq")),
                ],
            ),
        },
        congestion_controls={"h1": "reno"},
        seed=7,
    )
    state = session(
        build,
        Applied(t=1.5, command=StartFlow(flow="1", src="h1", dst="h2", cc="reno"), took_s=0.0679),
        Applied(
            t=12.3456,
            command=SetQdisc(link="r->h1", qdisc=Qdisc(kind="bfifo", options={"limit": 30_000})),
        ),
    )
    assert (
        write(state, title='A "long" queue')
        == """\
# Session of 2027-01-15 08:00 UTC: Linux 6.18.5, ccplay 1.2.3.
# Moments count from when the network was ready.

title = "A \\"long\\" queue"
duration = "12 s"

topology = { kind = "linear" }
links.bottleneck = { rate = "1.5 Mbit/s", delay = "10 ms", queue = { kind = "pfifo", limit = 100 } }
links."r->h2" = { loss = "7 %", classes = [
  { name = "long", share = "50 %", traffic = ["flows"] },
  { name = "rest", share = "50 %", queue = { kind = "sfq" } },
] }
hosts.h1.cc = "reno"
seed = 7

timeline = [
  { at = "1 s",      do = "start-flow", flow = "1", src = "h1", dst = "h2", cc = "reno" },
  { at = "11.913 s", do = "set-qdisc", link = "r->h1", kind = "bfifo", limit = "30 kB" },
]
"""
    )


def test_only_what_was_done_by_then() -> None:
    marks = [Applied(t=READY_AT + n, command=Mark(text=str(n))) for n in range(10)]
    case = reread(session(Build(), *marks), until=READY_AT + 4.5)
    assert [each.command for each in case.timeline] == [Mark(text=str(n)) for n in range(5)]
    assert case.duration_s == 5


def test_a_mark_is_a_step_where_it_stands_in_the_end() -> None:
    """Marks are written with their last time and text; removed ones are omitted."""
    ping = StartPing(ping="p1", src="h1", dst="h2")
    done = [
        Applied(t=READY_AT + 2, command=ping),
        Applied(t=READY_AT + 5, command=Mark(text="a", at=READY_AT + 1, name="m1")),
        Applied(t=READY_AT + 6, command=Mark(text="b", name="m2")),
        Applied(t=READY_AT + 7, command=Mark(text="c", name="m3")),
        Applied(t=READY_AT + 8, command=ChangeMark(name="m3", text="see", at=READY_AT + 3)),
        Applied(t=READY_AT + 9, command=RemoveMark(name="m2")),
    ]
    case = reread(session(Build(topology=Topology(kind="linear")), *done))
    assert [(round(step.at_s, 3), step.command) for step in case.timeline] == [
        (1.0, Mark(text="a")),
        (2.0, ping),
        (3.0, Mark(text="see")),
    ]


def test_an_algorithm_of_ones_own_is_kept_and_reported() -> None:
    """A comment names the option for the user's own algorithm, unless no file can have its name."""
    build = Build(algorithms={"mine": "00ff", "no\nname": ""})
    flow = Applied(t=2.0, command=StartFlow(flow="1", src="s1", dst="d1", cc="mine"))
    text = write(session(build, flow))
    assert "# mine is your own algorithm: run this with --algorithm mine.bpf.c\n" in text
    with pytest.raises(ScenarioError, match=r"if it is your own, add --algorithm mine\.bpf\.c"):
        parse(text, Path("t.toml"))
    with admitted(["mine"]):
        (step,) = parse(text, Path("t.toml")).case().timeline
    assert step.command == flow.command


def test_saving_that_algorithm_anew_is_no_step() -> None:
    switch = SetCongestionControl(flow="1", cc="mine")
    events = [
        Applied(t=2.0, command=StartFlow(flow="1", src="s1", dst="d1", cc="reno")),
        Applied(t=3.0, command=switch),
        Applied(t=4.0, command=switch, renewed=True),
    ]
    with admitted(["mine"]):
        case = reread(session(Build(algorithms={"mine": "00ff"}), *events))
    assert [each.command for each in case.timeline] == [each.command for each in events[:2]]


def test_what_is_to_be_typed_again_names_ones_own_algorithms() -> None:
    """The command to run again has the options of the command line; a recording has only names."""
    state, file = session(Build(algorithms={"mine": "00ff", "no\nname": ""})), Path("a b.toml")
    assert rerun(file, state) == "ccplay run 'a b.toml' --algorithm mine.bpf.c"
    said = ["--guest", "--algorithm", "cc/mine.bpf.c"]
    assert rerun(file, state, said) == "ccplay run 'a b.toml' --guest --algorithm cc/mine.bpf.c"
    assert rerun(file, session(Build())) == "ccplay run 'a b.toml'"


def test_a_session_in_which_nothing_was_done() -> None:
    case = reread(session(Build()))
    assert (case.timeline, case.duration_s) == ((), 1.0)


def test_without_a_network_there_is_nothing_to_save() -> None:
    with pytest.raises(RecordingError, match="not ready"):
        write(LabState())
    with pytest.raises(RecordingError, match="not ready"):
        write(session(Build()), until=READY_AT / 2)


def test_a_recording_that_does_not_hold_what_was_asked_for() -> None:
    """In an older recording without the build, links and hosts when ready count as the build."""
    fifo = Qdisc(kind="pfifo", options={"limit": 20})
    setting = LinkSetting(rate=8_000_000, delay_us=5_000, jitter_us=0, loss=0.0, qdisc=fifo)
    state = session(Build(topology=Topology(kind="linear"), sample_hz=20.0), tells_build=False)
    state.ready_at = 1.0
    for link in ("r->h2", "r->h1"):
        state.apply(link_changed(0.9, link, setting))
    state.apply(HostChanged(t=0.9, host="h1", cc="reno"))
    state.apply(HostChanged(t=0.9, host="h2", cc="cubic"))
    state.apply(HostChanged(t=2.0, host="h1", cc="bbr"))
    state.apply(Applied(t=2.0, command=SetCongestionControl(cc="bbr", host="h1")))
    case = reread(state)
    assert case.build == Build(
        topology=Topology(kind="linear"),
        links={"bottleneck": LinkSetting(rate=8_000_000, delay_us=5_000, qdisc=fifo)},
        congestion_controls={"h1": "reno"},
        sample_hz=20.0,
    )
    assert len(case.timeline) == 1


def test_what_no_scenario_can_express_is_reported_in_its_place() -> None:
    """Commands with an invalid name or an unknown host are comments, as is what refers to them."""
    state = session(
        Build(),
        Applied(t=2.0, command=StartFlow(flow="a*", src="s1", dst="d1", cc="reno")),
        Applied(t=3.0, command=StopFlow(flow="a*")),
        Applied(t=4.0, command=StartFlow(flow="1", src="s9", dst="d1", cc="reno")),
        Applied(t=5.0, command=Mark(text="fine")),
    )
    text = write(state)
    assert re.findall(r"# \{ at = .* do = \"([a-z-]+)\"", text) == [
        "start-flow",
        "stop-flow",
        "start-flow",
    ]
    assert "is not a name" in text
    assert 'no host "s9"' in text
    (step,) = parse(text, Path("t.toml")).case().timeline
    assert step.command == Mark(text="fine")


@pytest.mark.parametrize(
    "command",
    [
        StartFlow(flow="1", duration_s=1e305),
        StartFlow(flow="1", bytes=-5),
        SetLink(rate=-4, delay_us=-5, loss=1e308),
        SetQdisc(qdisc=Qdisc(kind="codel", options={"target": "abc", "interval": True})),
        SetQdisc(qdisc=Qdisc(kind="no such", options={"at": 'x\n"', "do": 3.5})),
        Mark(text="two\nlines \x1b]0;"),
        StartCapture(capture="c1", snaplen=-1),
    ],
    ids=str,
)
def test_nonsense_of_a_stranger_becomes_a_comment(command: Command) -> None:
    """An invalid command of a recording is a printable comment, which it can't end."""
    text = write(session(Build(), Applied(t=2.0, command=command)))
    assert parse(text, Path("t.toml")).case().timeline == ()
    assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    "topology", [Topology(kind="ring"), Topology(pairs=10**9)], ids=["ring", "pairs"]
)
def test_a_topology_that_is_none_is_refused(topology: Topology) -> None:
    hello = session(Build()).hello
    assert hello is not None
    state = folded(replace(hello, build=Build(topology=topology)), Ready(t=READY_AT))
    with pytest.raises(ScenarioError, match="can't be written as a scenario"):
        write(state)


def test_a_network_that_no_scenario_can_express_is_refused() -> None:
    state = session(Build(links={"bottleneck": LinkSetting(rate=5_000)}))
    with pytest.raises(ScenarioError, match="8 kbit/s"):
        write(state)


def test_a_hostile_title_stays_a_title() -> None:
    case = parse(write(session(Build()), title='"\n[links]\x1b]0;x\x07' + "x" * 300), Path("t"))
    assert len(case.title) == 200


@pytest.mark.parametrize("wall_time", [1e300, -1e300, float("inf"), float("nan")])
def test_a_date_that_is_none_is_left_out(wall_time: float) -> None:
    state = session(Build())
    assert state.hello is not None
    state.hello = replace(state.hello, version="1", wall_time=wall_time)
    assert write(state).startswith("# Session: Linux 6.18.5, ccplay 1.\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (write_rate(1_500_000), "1.5 Mbit/s"),
        (write_rate(1_000_000_000), "1 Gbit/s"),
        (write_rate(1_234_567), "1234.567 kbit/s"),
        (write_rate(0), "unlimited"),
        (write_time_us(0), "0 ms"),
        (write_time_us(250), "250 us"),
        (write_time_us(10_000), "10 ms"),
        (write_time_us(2_500_000), "2500 ms"),
        (write_seconds(0.0), "0 s"),
        (write_seconds(86_400.0), "86400 s"),
        (write_size(10_000_000), "10 MB"),
        (write_size(177_669), "177669 bytes"),
        (write_size(65_536), "64 KiB"),
        (write_size(1_048_576), "1 MiB"),
        (write_share(0.07), "7 %"),
        (write_share(1e-7), "0.00001 %"),
        (write_frequency(50.0), "50 Hz"),
    ],
)
def test_quantities_are_written_as_people_do(text: str, expected: str) -> None:
    assert text == expected
