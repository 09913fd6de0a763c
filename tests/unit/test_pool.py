"""A pool runs up to the requested number of labs, fewer if they starve, and repeats bad runs."""

import asyncio
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from ccplay.analysis.results import CaseResult
from ccplay.analysis.summary import summarise
from ccplay.errors import LabError
from ccplay.experiment.plan import FixedSchedule, PlannedRun, plan_runs
from ccplay.experiment.pool import Attempt, LocalWorker, Pool, StartLimit, Worker, Workers
from ccplay.experiment.trial import RunOrder, RunOutcome
from ccplay.model.commands import Build
from ccplay.state.lab_state import LabState
from ccplay.stream.sources import Source
from tests.events import folded, health
from tests.terminals import eventually
from tests.unit.test_schedules import scenario


def result(name: str, **changes: float) -> CaseResult:
    """Return the result of a run with a healthy lab, except for ``changes``."""
    state = folded(health(1.0, **changes))
    return summarise(state, name)


def worker(jobs: int) -> LocalWorker:
    """Return a worker for ``jobs`` parallel runs that can't start a lab."""

    def no_lab(_: Build) -> Source:
        raise AssertionError("no lab is needed")

    return LocalWorker(no_lab, jobs, asyncio.Event())


def ordered(run: PlannedRun) -> RunOrder:
    return RunOrder.of(run, "t.toml")


class Hall:
    """A pool, its worker and a record of the attempts; ``changes`` sets each attempt's health."""

    def __init__(self, jobs: int, cases: str) -> None:
        self.stop = asyncio.Event()
        self.messages: list[str] = []
        self.made: list[tuple[str, int, int]] = []
        """Attempts made: case, number of the attempt, attempts then running."""
        self.kept: list[tuple[str, int, bool]] = []
        """Runs kept: case, number of the last attempt, whether it is trustworthy."""
        self.plan, self.runs = FixedSchedule(plan_runs(scenario(*cases))), len(cases)
        self.workers = Workers(worker(jobs))
        self.pool = Pool(self.plan, self.workers, self.stop, ordered, report=self.messages.append)
        self._running = 0

    async def run(self, changes: Callable[[str, int], dict[str, float]]) -> None:
        async def measure(attempt: Attempt, __: Worker) -> RunOutcome:
            self._running += 1
            # Lets all attempts that can run in parallel start.
            for _ in range(5):
                await asyncio.sleep(0)
            name, together = attempt.run.case.name, self._running
            self.made.append((name, attempt.number, together))
            for _ in range(5):
                await asyncio.sleep(0)
            self._running -= 1
            return RunOutcome(result=result(name, **changes(name, together)), whole=True)

        def keep(attempt: Attempt, outcome: RunOutcome) -> None:
            trusted = outcome.result.health.trustworthy
            self.kept.append((attempt.run.case.name, attempt.number, trusted))
            left = [*self.pool.waiting, *self.plan.remaining_cases()]
            assert len(self.kept) + self._running + len(left) == self.runs
            assert len(attempt.failed) == attempt.number - 1

        await self.pool.run(measure, keep)


def busy_beyond(most: int) -> Callable[[str, int], dict[str, float]]:
    return lambda _, together: {"host_cpu": 1.0 if together > most else 0.5}


@pytest.mark.parametrize("jobs", [1, 2, 6])
async def test_so_many_run_side_by_side_as_was_asked(jobs: int) -> None:
    hall = Hall(jobs, "abcdef")
    await hall.run(busy_beyond(6))
    assert max(together for *_, together in hall.made) == jobs
    assert sorted(hall.kept) == [(name, 1, True) for name in "abcdef"]
    assert hall.messages == []


async def test_what_starves_is_run_again_with_fewer_at_a_time() -> None:
    hall = Hall(4, "abcde")
    await hall.run(busy_beyond(3))
    assert hall.pool.jobs == 3
    assert sorted(hall.kept) == [*((name, 2, True) for name in "abcd"), ("e", 1, True)]
    # Four runs starved together; they reduce the number once.
    assert [line for line in hall.messages if "in parallel" in line] == [
        "too much for this machine: from now on 3 in parallel"
    ]
    assert "a is repeated: the machine was 100% busy" in hall.messages


async def test_one_more_is_tried_once_it_has_gone_well_for_long() -> None:
    """The number of parallel runs rises again: other work on the machine may be over."""
    hall = Hall(3, "abcdefghijklmnopqrstuvwxyz")
    begun = 0

    def busy_at_first(_: str, __: int) -> dict[str, float]:
        nonlocal begun
        begun += 1
        return {"host_cpu": 1.0 if begun <= 3 else 0.5}

    await hall.run(busy_at_first)
    assert hall.pool.jobs == 3
    assert [line for line in hall.messages if "in parallel" in line] == [
        "too much for this machine: from now on 2 in parallel",
        "the machine keeps up: from now on 3 in parallel",
    ]


async def test_the_last_attempt_has_the_machine_to_itself() -> None:
    hall = Hall(4, "ab")

    def doubtful(name: str, _: int) -> dict[str, float]:
        return {"steal": 0.5} if name == "a" else {}

    await hall.run(doubtful)
    assert hall.made[-1] == ("a", 3, 1)
    # It is kept, marked as doubtful; steal time is no reason for fewer jobs.
    assert sorted(hall.kept) == [("a", 3, False), ("b", 1, True)]
    assert hall.pool.jobs == 4


async def test_a_lab_too_short_to_judge_is_not_run_again() -> None:
    hall = Hall(1, "a")
    kept: list[RunOutcome] = []

    async def measure(attempt: Attempt, __: Worker) -> RunOutcome:
        return RunOutcome(result=summarise(LabState(), "a"), whole=True)

    await hall.pool.run(measure, lambda _, outcome: kept.append(outcome))
    assert len(kept) == 1
    assert not kept[0].result.health.trustworthy


async def test_after_a_stop_nothing_starts() -> None:
    hall = Hall(2, "abcdef")

    async def measure(attempt: Attempt, __: Worker) -> RunOutcome:
        await hall.stop.wait()
        name = attempt.run.case.name
        return RunOutcome(result=replace(result(name), interrupted=True), whole=False)

    kept: list[str] = []
    asyncio.get_running_loop().call_soon(hall.stop.set)
    await hall.pool.run(measure, lambda attempt, _: kept.append(attempt.run.case.name))
    assert sorted(kept) == ["a", "b"]


async def test_what_one_raises_ends_the_others_in_an_orderly_way() -> None:
    hall = Hall(2, "abc")
    ended: list[str] = []

    async def measure(attempt: Attempt, __: Worker) -> RunOutcome:
        if attempt.run.case.name == "a":
            raise LabError("can't start")
        await hall.stop.wait()
        ended.append(attempt.run.case.name)
        return RunOutcome(result=result("b"), whole=True)

    with pytest.raises(LabError, match="can't start"):
        await hall.pool.run(measure, lambda *_: None)
    assert ended == ["b"]


async def test_labs_that_run_side_by_side_start_one_after_the_other() -> None:
    """Labs start in turn: together they would take the CPU from runs that already measure."""
    hall, door = Hall(4, "abcd"), StartLimit(1)
    starting: list[str] = []
    running: list[str] = []

    async def measure(attempt: Attempt, __: Worker) -> RunOutcome:
        name = attempt.run.case.name
        async with door.slot() as free_slot:
            starting.append(name)
            await asyncio.sleep(0)
            assert starting == [name]
            starting.remove(name)
            free_slot()
            running.append(name)
            await eventually(lambda: len(running) == 4)
        return RunOutcome(result=result(name), whole=True)

    await hall.pool.run(measure, lambda *_: None)
    assert running == list("abcd")


async def test_a_lab_that_never_stands_lets_the_next_one_start() -> None:
    hall, door = Hall(2, "ab"), StartLimit(1)

    async def measure(attempt: Attempt, __: Worker) -> RunOutcome:
        async with door.slot():
            return RunOutcome(result=result(attempt.run.case.name), whole=True)

    kept: list[str] = []
    await hall.pool.run(measure, lambda attempt, _: kept.append(attempt.run.case.name))
    assert sorted(kept) == ["a", "b"]
