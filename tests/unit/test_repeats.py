"""Repeats of a case differ only in their seeds and in the start times of flows."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ccplay.model.commands import Mark, SetCongestionControl
from ccplay.scenario.matrix import flow_of, repeated
from ccplay.scenario.reading import parse
from ccplay.scenario.values import Case, Step
from ccplay.traffic.flow import StartFlow, StopFlow

RACE = """
duration = "90 s"
topology.kind = "linear"
timeline = [
  { at = "0 s", do = "start-flow", flow = "a", bytes = "1 MB" },
  { at = "0 s", do = "set-congestion-control", flow = "a", cc = "bbr" },
  { at = "0 s", do = "start-ping" },
  { at = "0 s", do = "start-flow", flow = "b", bytes = "2 MB" },
  { at = "0 s", do = "start-flow", flow = "c" },
  { at = "5 s", do = "start-flow", flow = "late" },
  { at = "9 s", do = "stop-flow", flow = "c" },
]
"""


def race(**keys: object) -> Case:
    """Return the race with some keys replaced."""
    return replace(parse(RACE, Path("r.toml")).case(), **keys)


def order(case: Case) -> list[str]:
    """Return the flows in the order in which they start."""
    steps = sorted(case.timeline, key=lambda step: step.at_s)
    return [str(s.command.flow) for s in steps if isinstance(s.command, StartFlow)]


cases = st.builds(
    race,
    repeats=st.integers(1, 10),
    jitter_s=st.just(0.0) | st.integers(1, 10**7).map(lambda us: us / 1e6),
    balanced=st.booleans(),
)


def test_a_case_without_repeats_stays_as_it_is() -> None:
    assert repeated(race(), 1) == race()
    assert repeated(race(balanced=True), 1) == race(balanced=True)


@given(case=cases, repeat=st.integers(1, 1000))
def test_only_seed_and_moments_of_flows_change(case: Case, repeat: int) -> None:
    other = repeated(case, repeat)
    assert other == repeated(case, repeat)
    assert other.build.seed == case.build.seed + repeat - 1
    same = replace(other.build, seed=case.build.seed)
    assert replace(other, build=same, timeline=case.timeline) == case
    in_order = sorted(other.timeline, key=lambda step: step.number)
    for before, after in zip(case.timeline, in_order, strict=True):
        assert after == replace(before, at_s=after.at_s)
        offset = after.at_s - before.at_s
        assert -1e-9 <= offset <= case.jitter_s + 1e-9
        assert flow_of(before) or offset == 0
    assert list(other.sizes) == list(case.sizes)


@given(case=cases, repeat=st.integers(1, 1000))
def test_what_happens_to_a_flow_moves_with_its_start(case: Case, repeat: int) -> None:
    other = repeated(case, repeat)
    starts = {s.command.flow: s for s in other.timeline if isinstance(s.command, StartFlow)}
    for was in case.timeline:
        now = next(step for step in other.timeline if step.number == was.number)
        if isinstance(now.command, StopFlow | SetCongestionControl):
            start = starts[now.command.flow]
            began = next(s.at_s for s in case.timeline if s.number == start.number)
            assert abs((now.at_s - start.at_s) - (was.at_s - began)) < 1e-5
            assert other.timeline.index(start) < other.timeline.index(now)


@given(case=cases, first=st.integers(1, 1000))
def test_balanced_flows_take_turns_at_being_first(case: Case, first: int) -> None:
    case = replace(case, balanced=True, jitter_s=min(case.jitter_s, 4.0))
    orders = [order(repeated(case, repeat)) for repeat in range(first, first + 3)]
    for place in range(3):
        assert {each[place] for each in orders} == {"a", "b", "c"}
    assert all(each[3] == "late" for each in orders)


def test_jitter_differs_by_seed_repeat_and_flow() -> None:
    case = race(jitter_s=1.0)
    seeded = replace(case, build=replace(case.build, seed=2))
    moments = {
        step.at_s
        for each in (repeated(case, 1), repeated(case, 2), repeated(seeded, 1))
        for step in each.timeline
        if isinstance(step.command, StartFlow)
    }
    assert len(moments) == 12


def test_jitter_is_spread_evenly() -> None:
    """The mean of thousands of uniform draws is within six standard errors of 0.5."""
    case = race(jitter_s=1.0)
    draws = [
        step.at_s
        for repeat in range(1, 1001)
        for step in repeated(case, repeat).timeline
        if isinstance(step.command, StartFlow) and step.command.flow != "late"
    ]
    assert abs(sum(draws) / len(draws) - 0.5) < 6 * (1 / 12 / len(draws)) ** 0.5


def test_seeds_stay_within_what_a_build_takes() -> None:
    case = race()
    last = replace(case, build=replace(case.build, seed=2**31 - 1))
    assert repeated(last, 2).build.seed == 0


def test_remarks_stay_where_they_are() -> None:
    case = race(balanced=True)
    remark = Step(0.0, Mark(text="x"), number=len(case.timeline))
    case = replace(case, timeline=(*case.timeline, remark))
    assert repeated(case, 2).timeline[-1] == remark
