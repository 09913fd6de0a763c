"""Two classes at the bottleneck: each has its share, borrows the rest, and gets its own traffic."""

import asyncio
from statistics import median

import pytest

from ccplay.model.commands import Build, SetClasses, SetLink, SetQdisc
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Qdisc, TrafficClass
from ccplay.state.lab_state import LabState
from ccplay.traffic.download import Download, StartDownload
from ccplay.traffic.flow import StartFlow
from ccplay.traffic.ping import Ping, StartPing
from tests.lab.conftest import RunningLab, running
from tests.lab.namespaced import call
from tests.lab.trust import physical

RATE = 1_500_000
FRAME_S = 1514 * 8 / RATE
BASE_RTT_MS = 20.0
PAGE = 177_669
LIMIT = 100

BULK = TrafficClass(name="bulk", share=0.5, traffic=["flows"])
INTERACTIVE = TrafficClass(name="interactive", share=0.5, traffic=["downloads", "pings"])


def build(*classes: TrafficClass) -> Build:
    link = LinkSetting(
        rate=RATE,
        delay_us=10_000,
        qdisc=Qdisc(kind="pfifo", options={"limit": LIMIT}),
        classes=list(classes) or None,
    )
    return Build(
        topology=Topology(kind="linear"),
        links={"bottleneck": link},
        congestion_controls={"h1": "reno"},
    )


def qlen(state: LabState, queue: str) -> float:
    return state.queues[queue].series["qlen"].last or 0 if queue in state.queues else 0


def longest(state: LabState, queue: str) -> float:
    """Return the largest number of packets that a queue has held."""
    series = state.queues[queue].series["qlen"] if queue in state.queues else None
    extremes = series.extremes(series.first, series.end) if series is not None else None
    return 0 if extremes is None else extremes[1]


async def loaded(lab: RunningLab, queue: str) -> None:
    """Start the long flow and wait until its queue has been nearly full."""
    lab.send(StartFlow(flow="1"))
    await lab.until(lambda state: longest(state, queue) >= LIMIT * 0.8)


async def rtts_ms(lab: RunningLab, name: str) -> float:
    """Return the median RTT of ten pings."""
    lab.send(StartPing(ping=name, count=10, interval_s=0.1))
    await lab.until(lambda state: name in state.of(Ping) and state.of(Ping)[name].ended)
    series = lab.state.of(Ping)[name].series["rtt_us"]
    found = [each for each in series.values(0, series.end) if each == each]
    return median(found) / 1000


async def page_s(lab: RunningLab, name: str) -> float:
    lab.send(StartDownload(download=name, bytes=PAGE))
    await lab.until(lambda state: name in state.of(Download) and state.of(Download)[name].ended)
    download = lab.state.of(Download)[name]
    assert download.error is None
    assert download.duration_s is not None
    return download.duration_s


async def carried(lab: RunningLab, queue: str, seconds: float) -> float:
    """Return the rate at which a queue sends, in bits per second."""
    series, sweeps = lab.state.queues[queue].series["bytes"], lab.state.sweeps
    begin = series.end - 1
    await lab.run_for(seconds)
    end = series.end - 1
    sent = (series.at(end) or 0) - (series.at(begin) or 0)
    return sent * 8 / (sweeps.time(end) - sweeps.time(begin))


@physical
async def test_each_class_has_its_share_and_borrows_what_others_leave() -> None:
    async with running(build(BULK, INTERACTIVE)) as lab:
        said = lab.state.links["r->h2"][-1].setting
        assert said.qdisc is None
        queue = Qdisc(kind="pfifo", options={"limit": LIMIT})
        assert [each.qdisc for each in said.classes or []] == [queue, queue]
        assert [each.share for each in said.classes or []] == [0.5, 0.5]
        await loaded(lab, "r->h2 bulk")

        # Alone the long flow has the whole rate; a few per cent are for the moment of reading.
        assert await carried(lab, "r->h2 bulk", 2.0) == pytest.approx(RATE, rel=0.05)

        # A ping waits for no more than the frame that is leaving and one more, 8 ms each: the
        # other queue's 80 frames and more would be 650 ms.
        assert await rtts_ms(lab, "p1") <= BASE_RTT_MS + 2 * FRAME_S * 1000 + 3

        # The page gets its half at least, for its handshake and slow start half a second more.
        least = PAGE * 8 / RATE
        assert least <= await page_s(lab, "w1") <= 2 * least * 1514 / 1448 + 0.5

        # It was led into its own queue, with its headers and ACKs the other way. A busy receiver
        # acknowledges what has come while it read all at once, since Linux 6.7.
        await lab.swept()
        own = lab.state.queues["r->h2 interactive"].series["bytes"].last or 0
        assert PAGE <= own <= PAGE * 1.15
        back = lab.state.queues["r->h1 interactive"].series["packets"].last or 0
        assert back >= PAGE / 1448 / 4
        # The link's own row is the sum.
        rows = [lab.state.queues[each] for each in ("r->h2", "r->h2 bulk", "r->h2 interactive")]
        total, *parts = (each.series["bytes"].last or 0 for each in rows)
        assert total == sum(parts)
        assert [each.kind for each in rows] == ["htb", "pfifo", "pfifo"]


@physical
async def test_htb_reports_what_a_class_sends_at_its_own_rate_and_what_it_borrows() -> None:
    async with running(build(BULK, INTERACTIVE)) as lab:
        await loaded(lab, "r->h2 bulk")
        await carried(lab, "r->h2 bulk", 2.0)
        bulk, interactive = (lab.state.queues[f"r->h2 {name}"] for name in ("bulk", "interactive"))
        counts = [bulk.own[f"htb_{name}_packets"].last or 0 for name in ("lends", "borrows")]
        # Alone it sends half of its packets with what the other class leaves, but for bursts.
        assert counts[1] == pytest.approx(sum(counts) / 2, rel=0.3)
        # Some sweeps lie between the two dumps at most; 124 packets a second leave the link.
        assert sum(counts) == pytest.approx(bulk.series["packets"].last or 0, abs=20)
        assert not interactive.own["htb_borrows_packets"].last
        assert not lab.state.queues["r->h2"].own, "classes are not added up"


@physical
async def test_one_queue_becomes_two_and_one_again_while_a_flow_runs() -> None:
    """The link's counters and the flow continue, and the ping shows each change."""
    async with running(build()) as lab:
        await loaded(lab, "r->h2")
        # Behind 100 frames even a Reno that has just halved leaves some 40.
        assert await rtts_ms(lab, "before") >= BASE_RTT_MS + 40 * FRAME_S * 1000
        before = lab.state.queues["r->h2"].series["bytes"].last or 0
        lab.send(SetClasses(classes=[BULK, INTERACTIVE]))
        await lab.until(lambda state: qlen(state, "r->h2 bulk") >= LIMIT / 2)
        assert await rtts_ms(lab, "shared") <= BASE_RTT_MS + 2 * FRAME_S * 1000 + 3
        lab.send(SetClasses(classes=[]))
        await lab.until(lambda state: state.queues["r->h2"].kind == "pfifo")
        await lab.until(lambda state: qlen(state, "r->h2") >= LIMIT / 2)
        assert await rtts_ms(lab, "after") >= BASE_RTT_MS + 20 * FRAME_S * 1000
        series = lab.state.queues["r->h2"].series["bytes"]
        values = [each for each in series.values(0, series.end) if each == each]
        assert values == sorted(values)
        assert values[-1] > before
        assert lab.state.flows["1"].running
        assert lab.state.links["r->h2"][-1].setting.classes is None


@physical
async def test_rate_and_queues_change_under_classes() -> None:
    async with running(build(BULK, INTERACTIVE)) as lab:
        await loaded(lab, "r->h2 bulk")
        lab.send(
            SetLink(rate=2 * RATE),
            SetQdisc(traffic_class="bulk", qdisc=Qdisc(kind="bfifo", options={"limit": 30_280})),
        )
        await lab.until(lambda state: state.queues["r->h2 bulk"].kind == "bfifo")
        # What the old queue held is lost, and it takes a moment until packets wait again.
        await lab.until(lambda state: qlen(state, "r->h2 bulk") >= 10)
        assert await carried(lab, "r->h2 bulk", 2.0) == pytest.approx(2 * RATE, rel=0.05)
        changed = lab.state.links["r->h2"][-1].setting
        assert changed.rate == 2 * RATE
        assert [each.share for each in changed.classes or []] == [0.5, 0.5]
        assert [each.qdisc.kind for each in changed.classes or [] if each.qdisc] == [
            "bfifo",
            "pfifo",
        ]
        lab.send(
            SetQdisc(qdisc=Qdisc(kind="pfifo", options={"limit": 5})),
            SetQdisc(traffic_class="x", qdisc=Qdisc(kind="pfifo", options={"limit": 5})),
            SetLink(rate=0),
            SetClasses(classes=[BULK, BULK]),
            SetClasses(classes=[TrafficClass(name="a", share=0.6), INTERACTIVE]),
            SetClasses(link="h1-r", classes=[BULK, INTERACTIVE]),
            SetQdisc(traffic_class="bulk", qdisc=Qdisc(kind="codel.py")),
            SetClasses(classes=[]),
            SetQdisc(qdisc=Qdisc(kind="codel.py")),
            SetClasses(classes=[BULK, INTERACTIVE]),
        )
        for text in (
            "has a queue for each class: name one of bulk, interactive",
            "under study and can't be unlimited",
            "a class needs a unique, valid name, not 'bulk'",
            "the shares add up to 110%",
            "has no rate for classes to share",
            "codel.py runs in software, which serves a whole link, never one of its classes",
            "for the class (class bulk has none of its own)",
        ):
            await lab.until(lambda state, text=text: any(text in e.text for e in state.log))  # type: ignore[misc]


async def test_a_name_goes_before_a_kind_and_what_is_unnamed_to_the_last() -> None:
    first = TrafficClass(name="first", share=0.2, traffic=["2", "pings"])
    second = TrafficClass(name="second", share=0.2, traffic=["flows"])
    rest = TrafficClass(name="rest", share=0.5)
    async with running(build(first, second, rest)) as lab:
        lab.send(StartPing(ping="p1", count=3, interval_s=0.1))
        await lab.until(lambda state: "p1" in state.of(Ping) and state.of(Ping)["p1"].ended)
        await lab.swept()

        def packets(name: str) -> float:
            return lab.state.queues[f"r->h2 {name}"].series["packets"].last or 0

        assert (packets("first"), packets("second"), packets("rest")) == (3, 0, 0)
        lab.send(StartFlow(flow="1", bytes=20_000))
        await lab.until(lambda state: "1" in state.flows and not state.flows["1"].running)
        await lab.swept()
        assert packets("second") > 20_000 / 1448
        assert packets("first") == 3
        lab.send(StartFlow(flow="2", bytes=20_000))
        await lab.until(lambda state: "2" in state.flows and not state.flows["2"].running)
        await lab.swept()
        assert packets("first") > 3 + 20_000 / 1448
        await page_s(lab, "w1")
        await lab.swept()
        assert packets("rest") > PAGE / 1448


@physical
async def test_downloads_from_one_server_are_distinguished() -> None:
    """Both run at once between the same hosts, and share the rate by their classes."""
    first = TrafficClass(name="first", share=0.75, traffic=["w1"])
    async with running(build(first, TrafficClass(name="rest", share=0.25))) as lab:
        lab.send(StartDownload(download="w2", bytes=PAGE), StartDownload(download="w1", bytes=PAGE))
        names = ("w1", "w2")
        await lab.until(
            lambda state: all((w := state.find(Download, n)) and w.ended for n in names)
        )
        await lab.swept()
        for queue in ("r->h2 first", "r->h2 rest"):
            own = lab.state.queues[queue].series["bytes"].last or 0
            assert PAGE <= own <= PAGE * 1.15
        seconds = [lab.state.of(Download)[name].duration_s or 0 for name in names]
        # Three quarters of the rate take 1.3 s, and both together 1.9 s at the least.
        assert seconds[0] < seconds[1]


async def test_filters_go_with_their_traffic() -> None:
    """Only the filter that directs all other traffic into the last class is left in the kernel."""
    found = await asyncio.to_thread(call, "tests.lab.class_cases:filters")
    assert found == {"before": 1, "running": 3, "after": 1, "one queue": 0, "classes": [0x10001]}
