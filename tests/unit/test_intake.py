"""Samples reach their series whenever somebody looks, and whoever comes and goes meanwhile."""

import random
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from ccplay.model.samples import TcpSamples
from ccplay.model.series import Feed, Series, Timeline
from ccplay.traffic.connections import Intake

NAMES = ("cwnd", "ssthresh")


@dataclass
class Member:
    timeline: Timeline
    series: dict[str, Series] = field(init=False)
    feed: Feed = field(init=False)
    put: dict[str, list[float | None]] = field(init=False)
    first: int | None = None

    def __post_init__(self) -> None:
        self.feed = Feed()
        self.series = {name: Series(self.timeline, self.feed, at) for at, name in enumerate(NAMES)}
        self.put = {name: [] for name in NAMES}


def samples(columns: dict[str, list[float | None]]) -> TcpSamples:
    return cast("TcpSamples", SimpleNamespace(**columns))


def test_every_value_comes_to_its_series() -> None:
    """Members come, go and return; some sweeps have none; values are unknown; few are looked at."""
    chance, timeline = random.Random(1), Timeline()
    members = {name: Member(timeline) for name in "abcdef"}
    intake = Intake[Member](NAMES)
    present = [*"abc"]
    for _ in range(1000):
        if chance.random() < 0.02:
            present = chance.sample([*members], chance.randint(0, len(members)))
        tick = timeline.append(timeline.end / 50)
        if chance.random() < 0.01:
            continue
        if not intake.fits(tick, present):
            intake.begin(tick, [*present], [members.get(name) for name in present])
        rows: dict[str, Any] = {
            name: [chance.choice([None, chance.randint(0, 99)]) for _ in present] for name in NAMES
        }
        intake.add(samples(rows))
        for at, who in enumerate(present):
            member = members[who]
            if member.first is None:
                member.first = tick
            for name in NAMES:
                put = member.put[name]
                put += [None] * (tick - member.first - len(put))
                put.append(rows[name][at])
        who = chance.choice([*members])
        if chance.random() < 0.1 and members[who].first is not None:
            assert members[who].series["cwnd"].last == members[who].put["cwnd"][-1]
    for member in members.values():
        assert member.first is not None
        for name in NAMES:
            series = member.series[name]
            assert series.first == member.first
            assert [series.at(tick) for tick in range(series.first, series.end)] == member.put[name]


def test_what_nobody_looks_at_does_not_pile_up() -> None:
    timeline = Timeline()
    members = [Member(timeline) for _ in range(40)]
    intake = Intake[Member](NAMES)
    waiting = []
    for value in range(1000):
        tick = timeline.append(value / 50)
        if not intake.fits(tick, "members"):
            intake.begin(tick, "members", [*members])
        intake.add(samples({name: [value] * len(members) for name in NAMES}))
        each = chosen(members, value)
        waiting.append(timeline.end - each._began - len(each._read))
    # 256 at most, and what is read at a time leaves one behind.
    assert max(waiting[300:]) <= 258
    intake.begin(timeline.end, "others", [])
    assert not any(each.feed.columns for each in members)


def chosen(members: list[Member], number: int) -> Series:
    """Return one of all series."""
    return members[number * 7 % len(members)].series[NAMES[number % 2]]


def test_an_owner_that_is_replaced_gets_no_more() -> None:
    timeline = Timeline()
    intake, before, after = Intake[Member](NAMES), Member(timeline), Member(timeline)
    for owner in (before, after):
        tick = timeline.append(timeline.end)
        assert not intake.fits(tick, "x")
        intake.begin(tick, "x", [owner])
        intake.add(samples({name: [tick + 5] for name in NAMES}))
        intake.renew()
    assert before.series["cwnd"].all() == [5]
    assert after.series["cwnd"].all() == [6]
    assert after.series["cwnd"].first == 1
