"""Runs over several machines: spread evenly, repeated elsewhere first, none lost with a bench."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from ccplay.analysis.results import CaseResult
from ccplay.errors import UnsupportedError
from ccplay.experiment.orders import Finished, Order
from ccplay.experiment.plan import Planned, Run, plan_runs
from ccplay.experiment.pool import Attempt, Bench, BenchLostError, Outcome, Pool, Window
from ccplay.state.lab_state import LabState
from ccplay.stream.sinks import Sink
from tests.unit.test_agenda import scenario
from tests.unit.test_pool import result


class Elsewhere:
    """A bench of another machine, on which nothing is measured."""

    def __init__(self, machine: str, jobs: int = 1) -> None:
        self.machine = self.name = machine
        self.window = Window(jobs)

    def lacks(self, order: Order) -> str:
        raise AssertionError(order)

    async def carry_out(
        self,
        order: Order,
        record: Path | None,
        *,
        watch: Callable[[LabState], None] = lambda _: None,
        share: Callable[[], Sink | None] = lambda: None,
    ) -> Finished:
        raise AssertionError(order, record, watch, share)


class Machines:
    """Benches that come and go."""

    def __init__(self, *benches: Elsewhere) -> None:
        self.benches = list(benches)
        self.changed = asyncio.Event()

    def there(self) -> Sequence[Bench]:
        return self.benches

    def settled(self, order: Order) -> None:
        pass


class Hall:
    """Where attempts take place; ``lose`` and ``doubt`` say what becomes of them."""

    def __init__(self, cases: str, repeats: int, *benches: Elsewhere) -> None:
        self.machines = Machines(*benches)
        self.made: list[tuple[str, int, str]] = []
        """Case, repeat and machine."""
        self.kept: list[CaseResult] = []
        self.messages: list[str] = []
        self.lose: Callable[[Attempt, Bench], bool] = lambda *_: False
        self.doubt: Callable[[Attempt, Bench], bool] = lambda *_: False
        self.lacks: Callable[[Bench, Run], str] = lambda *_: ""
        self._plan = plan_runs(scenario(*cases, repeats=repeats))

    async def run(self) -> None:
        async def measure(attempt: Attempt, bench: Bench) -> Outcome:
            await asyncio.sleep(0)
            run = attempt.run
            self.made.append((run.case.name, run.repeat, bench.machine))
            if self.lose(attempt, bench):
                raise BenchLostError(f"{bench.name} is gone")
            busy = {"steal": 0.5} if self.doubt(attempt, bench) else {}
            found = msgspec.structs.replace(result(run.case.name, **busy), repeat=run.repeat)
            return Outcome(found, whole=True)

        def keep(_: Attempt, outcome: Outcome) -> None:
            self.kept.append(outcome.result)

        pool = Pool(
            Planned(self._plan),
            self.machines,
            asyncio.Event(),
            report=self.messages.append,
            lacks=self.lacks,
        )
        await asyncio.wait_for(pool.run(measure, keep), 60.0)

    @property
    def numbers(self) -> list[tuple[str, int]]:
        return sorted((each.name, each.repeat) for each in self.kept)


def every(cases: str, repeats: int) -> list[tuple[str, int]]:
    return [(case, repeat) for case in cases for repeat in range(1, repeats + 1)]


@pytest.mark.parametrize("cases", ["a", "abc", "abcd"])
async def test_the_repeats_of_a_case_are_spread_over_the_machines(cases: str) -> None:
    """Four cases and two machines, each in its turn, would put every case on one machine."""
    hall = Hall(cases, 6, Elsewhere("m1"), Elsewhere("m2"))
    await hall.run()
    assert hall.numbers == every(cases, 6)
    placed = Counter((case, machine) for case, _, machine in hall.made)
    assert all(2 <= placed[case, machine] <= 4 for case in cases for machine in ("m1", "m2"))


async def test_what_is_doubtful_is_repeated_elsewhere_first() -> None:
    hall = Hall("ab", 2, Elsewhere("m1"), Elsewhere("m2"), Elsewhere("m3"))
    hall.doubt = lambda attempt, _: attempt.run.key == ("a", 1) and attempt.number < 3
    await hall.run()
    assert hall.numbers == every("ab", 2)
    machines = [machine for case, repeat, machine in hall.made if (case, repeat) == ("a", 1)]
    assert len(set(machines)) == 3


async def test_a_run_whose_bench_is_lost_is_made_by_another_and_counted_once() -> None:
    hall = Hall("abc", 2, Elsewhere("m1"), Elsewhere("m2"))
    lost: list[str] = []

    def lose(attempt: Attempt, bench: Bench) -> bool:
        if bench.machine != "m1" or len(hall.made) < 3:
            return False
        hall.machines.benches = [each for each in hall.machines.benches if each is not bench]
        lost.append(str(attempt.run))
        return True

    hall.lose = lose
    await hall.run()
    assert len(lost) == 1
    assert hall.numbers == every("abc", 2)
    assert hall.messages == [f"{lost[0]} is moved to another bench: m1 is gone"]


async def test_without_a_bench_it_waits_for_one() -> None:
    hall = Hall("ab", 1)

    async def join() -> None:
        await asyncio.sleep(0)
        hall.machines.benches.append(Elsewhere("late"))
        hall.machines.changed.set()

    joining = asyncio.create_task(join())
    await hall.run()
    await joining
    assert hall.numbers == every("ab", 1)


async def test_a_bench_gets_only_what_it_can_make_and_the_gap_is_reported_once() -> None:
    hall = Hall("ab", 3, Elsewhere("old"), Elsewhere("new"))
    gap = 'queue discipline "fq" is not in this kernel'
    hall.lacks = lambda bench, run: gap if (bench.machine, run.case.name) == ("old", "b") else ""
    await hall.run()
    assert hall.numbers == every("ab", 3)
    assert all(machine == "new" for case, _, machine in hall.made if case == "b")
    assert hall.messages == [f"old: {gap}"]


async def test_what_no_bench_can_make_is_refused_after_the_rest_was_made() -> None:
    hall = Hall("ab", 2, Elsewhere("m1"), Elsewhere("m2"))
    hall.lacks = lambda _, run: "no such kernel" if run.case.name == "b" else ""
    with pytest.raises(UnsupportedError, match="no such kernel"):
        await hall.run()
    assert hall.numbers == every("a", 2)
