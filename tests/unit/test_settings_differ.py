"""A comparison begins with the settings that differ, and ends with a verdict that is true."""

import io

import pytest
from msgspec.structs import replace
from rich.console import Console

from ccplay.analysis.statistics import statistic
from ccplay.model.base import Command
from ccplay.model.commands import Build, SetLink
from ccplay.model.events import Applied
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.report.comparison import (
    Difference,
    DifferingSetting,
    compare,
    differing,
    settings_of_recording,
    show_comparison,
    verdict,
)
from ccplay.report.comparison import settings_of_run as of_run
from ccplay.traffic.flow import StartFlow, StopFlow
from tests.events import folded
from tests.ui.synthetic import stream
from tests.unit.test_comparison import result


def build(limit: int) -> Build:
    queue = Qdisc(kind="pfifo", options={"limit": limit})
    link = LinkSetting(rate=8_000_000, qdisc=queue)
    return Build(topology=Topology(kind="linear"), links={"bottleneck": link})


def test_a_setting_is_named_as_the_command_line_would_set_it() -> None:
    found = differing(of_run(build(25), []), of_run(build(100), []))
    assert found == [DifferingSetting(name="links.bottleneck.queue.limit", a="25", b="100")]


def test_steps_are_compared_by_what_they_do() -> None:
    one: list[tuple[float, str | None, Command]] = [
        (1.0, None, StartFlow(flow="1", src="h1", dst="h2", cc="reno")),
        (4.0, None, SetLink(rate=1_000_000)),
    ]
    # Times of two runs differ by the start of a program; the lab chose ``src``.
    two: list[tuple[float, str | None, Command]] = [(1.04, None, StartFlow(flow="1", cc="bbr"))]
    assert differing(of_run(build(25), one), of_run(build(25), two)) == [
        DifferingSetting(name="start-flow 1, cc", a="reno", b="bbr"),
        DifferingSetting(name="set-link", a="rate 1 Mbit/s, at 4.000 s", b=None),
    ]
    late: list[tuple[float, str | None, Command]] = [(1.5, None, one[0][2]), one[1]]
    found = differing(of_run(build(25), one), of_run(build(25), late))
    assert found == [DifferingSetting(name="start-flow 1, at", a="1.000 s", b="1.500 s")]


def test_runs_of_different_lengths_differ() -> None:
    long, short = ({"duration": text, "until": "duration"} for text in ("20 s", "6 s"))
    assert differing(of_run(build(50), [], long), of_run(build(20), [], short)) == [
        DifferingSetting(name="duration", a="20 s", b="6 s"),
        DifferingSetting(name="links.bottleneck.queue.limit", a="50", b="20"),
    ]
    first = {**long, "until": "first"}
    assert differing(of_run(build(50), [], long), of_run(build(50), [], first)) == [
        DifferingSetting(name="until", a="duration", b="first")
    ]


def test_recordings_of_different_lengths_differ() -> None:
    states = []
    for seconds in (5, 5, 9):
        state = folded(*stream(seconds=seconds))
        assert state.hello is not None
        state.hello = replace(state.hello, build=build(25))
        states.append(settings_of_recording(state))
    assert differing(states[0], states[1]) == []
    assert [each.name for each in differing(states[0], states[2])] == ["recorded"]
    # What a scenario allows and how long a recording lasts are different things.
    planned = of_run(build(25), [], {"duration": "60 s"})
    assert not {"duration", "recorded"} & {each.name for each in differing(states[0], planned)}


def test_what_the_end_stopped_is_no_setting() -> None:
    state = folded(*stream(seconds=5))
    assert state.hello is not None
    state.hello = replace(state.hello, build=build(25))
    before = dict(settings_of_recording(state))
    assert before["links.bottleneck.queue.limit"] == "25"
    state.apply(Applied(t=state.now, command=StopFlow(flow="1")))
    assert settings_of_recording(state) == before


def test_the_table_begins_with_them() -> None:
    one, two = result(a={"jain": [1.0]}), result(a={"jain": [0.5]})
    made_of = ({"a": of_run(build(25), [])}, {"a": of_run(build(100), [])})
    out = io.StringIO()
    show_comparison(compare(one, two, ("A", "B"), made_of), Console(file=out, width=80))
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert lines.index(["links.bottleneck.queue.limit", "25", "100"]) < 6
    assert "Jain's index is 50 % lower; without repeats on both sides" in out.getvalue()


def test_what_interfaces_carried_is_left_to_all() -> None:
    metrics = ("interfaces.h1-eth0.dropped", "interfaces.h1-eth0.sent_bytes")
    one, two = (result(a={each: [value] for each in metrics}) for value in (1.0, 2.0))
    out = io.StringIO()
    show_comparison(
        compare(one, two, ("A", "B")), Console(file=out, width=80), every=True, counters=False
    )
    assert "dropped" in out.getvalue()
    assert "bytes sent" not in out.getvalue()
    assert "1 more metric with --all" in out.getvalue()


@pytest.mark.parametrize(
    ("one", "two", "said"),
    [
        (
            [1.0, 1.1, 0.9],
            [5.0, 5.1, 4.9],
            "Clearly different: in B Jain's index is 5 times as high.",
        ),
        ([1.0, 1.2, 0.9], [1.1, 1.0, 1.2], "Jain's index does not differ clearly."),
        ([1.0], [1.0], "No metric differs."),
        (
            [1.0],
            [0.9],
            "In B Jain's index is 10 % lower; without repeats on both sides this may be chance.",
        ),
    ],
)
def test_a_verdict_is_one_sentence(one: list[float], two: list[float], said: str) -> None:
    assert (
        compare(result(a={"jain": one}), result(a={"jain": two}), ("", "")).cases[0].verdict == said
    )


def test_a_verdict_names_the_greatest_first_and_counts_the_rest() -> None:
    def differs(metric: str, percent: float) -> Difference:
        mean = statistic([1.0, 1.0])
        other = statistic([1 + percent / 100] * 2)
        return Difference(
            metric=metric, a=mean, b=other, difference=percent / 100, percent=percent,
            low=0.0, high=0.0, clear=True,
        )  # fmt: skip

    names = [f"flows.{n}.goodput_bps" for n in range(1, 5)]
    found = verdict([differs(name, 10.0 * n) for n, name in enumerate(names, 1)])
    assert found == (
        "Clearly different: in B the goodput of flow 4 is 40 % higher, the goodput of flow 3 30 % "
        "higher, the goodput of flow 2 20 % higher (1 more differ)."
    )
