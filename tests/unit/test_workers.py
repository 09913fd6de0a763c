"""Runs over several machines: spread evenly, repeated elsewhere first, none lost with a worker."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from ccplay.analysis.results import CaseResult
from ccplay.errors import UnsupportedError
from ccplay.experiment.plan import FixedSchedule, plan_runs
from ccplay.experiment.pool import Attempt, JobLimit, Pool, Worker, WorkerLostError, Workers
from ccplay.experiment.trial import RunOrder, RunOutcome
from ccplay.state.lab_state import LabState
from ccplay.stream.sinks import Sink
from tests.terminals import PATIENCE_S
from tests.unit.test_pool import ordered, result
from tests.unit.test_schedules import scenario


class Elsewhere:
    """A worker of another machine, on which nothing is measured."""

    def __init__(self, machine: str, gaps: dict[str, str] | None = None) -> None:
        self.machine = self.name = machine
        self.job_limit = JobLimit(1)
        self.gaps = gaps or {}
        """What it lacks, by case."""

    def lacks(self, order: RunOrder) -> str:
        return self.gaps.get(order.case.name, "")

    async def execute(
        self,
        order: RunOrder,
        record: Path | None,
        *,
        watch: Callable[[LabState], None] = lambda _: None,
        share: Callable[[], Sink | None] = lambda: None,
    ) -> RunOutcome:
        raise AssertionError(order, record, watch, share)


class Machines(Workers):
    """Workers that come and go."""

    def __init__(self, *workers: Elsewhere) -> None:
        super().__init__()
        self.workers: list[Worker] = list(workers)

    def available(self) -> Sequence[Worker]:
        return self.workers


class Hall:
    """Where attempts take place; ``lose`` and ``doubt`` say what becomes of them."""

    def __init__(self, cases: str, repeats: int, *workers: Elsewhere) -> None:
        self.machines = Machines(*workers)
        self.made: list[tuple[str, int, str]] = []
        """Case, repeat and machine."""
        self.kept: list[CaseResult] = []
        self.messages: list[str] = []
        self.lose: Callable[[Attempt, Worker], bool] = lambda *_: False
        self.doubt: Callable[[Attempt, Worker], bool] = lambda *_: False
        self._plan = plan_runs(scenario(*cases, repeats=repeats))

    async def run(self) -> None:
        async def measure(attempt: Attempt, worker: Worker) -> RunOutcome:
            await asyncio.sleep(0)
            run = attempt.run
            self.made.append((run.case.name, run.repeat, worker.machine))
            if self.lose(attempt, worker):
                raise WorkerLostError(f"{worker.name} is gone")
            busy = {"steal": 0.5} if self.doubt(attempt, worker) else {}
            found = replace(result(run.case.name, **busy), repeat=run.repeat)
            return RunOutcome(result=found, whole=True)

        def keep(_: Attempt, outcome: RunOutcome) -> None:
            self.kept.append(outcome.result)

        pool = Pool(
            FixedSchedule(self._plan),
            self.machines,
            asyncio.Event(),
            ordered,
            report=self.messages.append,
        )
        await asyncio.wait_for(pool.run(measure, keep), PATIENCE_S)

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

    def lose(attempt: Attempt, worker: Worker) -> bool:
        if worker.machine != "m1" or len(hall.made) < 3:
            return False
        hall.machines.workers = [each for each in hall.machines.workers if each is not worker]
        lost.append(str(attempt.run))
        return True

    hall.lose = lose
    await hall.run()
    assert len(lost) == 1
    assert hall.numbers == every("abc", 2)
    assert hall.messages == [f"{lost[0]} is moved to another worker: m1 is gone"]


async def test_without_a_bench_it_waits_for_one() -> None:
    hall = Hall("ab", 1)

    async def join() -> None:
        await asyncio.sleep(0)
        hall.machines.workers.append(Elsewhere("late"))
        hall.machines.changed.set()

    joining = asyncio.create_task(join())
    await hall.run()
    await joining
    assert hall.numbers == every("ab", 1)


async def test_a_bench_gets_only_what_it_can_make_and_the_gap_is_reported_once() -> None:
    gap = 'queue discipline "fq" is not in this kernel'
    hall = Hall("ab", 3, Elsewhere("old", {"b": gap}), Elsewhere("new"))
    await hall.run()
    assert hall.numbers == every("ab", 3)
    assert all(machine == "new" for case, _, machine in hall.made if case == "b")
    assert hall.messages == [f"old: {gap}"]


async def test_what_no_bench_can_make_is_refused_after_the_rest_was_made() -> None:
    gaps = {"b": "no such kernel"}
    hall = Hall("ab", 2, Elsewhere("m1", gaps), Elsewhere("m2", gaps))
    with pytest.raises(UnsupportedError, match="no such kernel"):
        await hall.run()
    assert hall.numbers == every("a", 2)
