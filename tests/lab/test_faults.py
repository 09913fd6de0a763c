"""Workers that hang and networks that go away under an experiment. Runs are no labs."""

import asyncio
import signal
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="ccplay[cluster] is not installed")

from ccplay.analysis.results import CaseResult
from ccplay.experiment.cluster import distribution
from ccplay.experiment.cluster.distribution import ClusterWorker, ClusterWorkers
from ccplay.experiment.cluster.scheduler import security_for
from ccplay.experiment.plan import FixedSchedule
from ccplay.experiment.pool import Attempt, Pool, Worker
from ccplay.experiment.trial import Handover, RunOutcome
from ccplay.scenario.reading import parse
from tests.lab.test_detached import RUNS, SCENARIO, Experiment, experiment
from tests.terminals import PATIENCE_S, eventually


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace minutes by seconds in the same proportions."""
    for name, seconds in (("ATTEND_S", 0.2), ("_ANSWER_S", 1.0), ("_SILENCE_S", 2.0)):
        monkeypatch.setattr(distribution, name, seconds)


class Hand:
    """An experiment of this process, with shorter timeouts."""

    def __init__(self, made: Experiment, seconds: float) -> None:
        scenario = parse(SCENARIO.format(seconds=seconds, runs=RUNS), Path("many.toml"))
        self.plan = Handover.of(scenario, scenario, ())
        self.results: list[CaseResult] = []
        self.messages: list[str] = []
        self.stop = asyncio.Event()
        pair = security_for(made.cluster.address, made.cluster.pair)
        self.workers = ClusterWorkers(
            made.cluster.address,
            pair,
            self.stop,
            experiment="0123456789abcdef",
            files={},
            report=self.messages.append,
        )

    async def run(self) -> None:
        async def measure(attempt: Attempt, worker: Worker) -> RunOutcome:
            return await worker.execute(self.plan.order(attempt.run, attempt.number), None)

        async with asyncio.timeout(PATIENCE_S), self.workers:
            pool = Pool(
                FixedSchedule(self.plan.runs()),
                self.workers,
                self.stop,
                self.plan.order,
                report=self.messages.append,
            )
            await pool.run(measure, lambda _, outcome: self.results.append(outcome.result))

    @property
    def repeats(self) -> list[int]:
        return sorted(each.repeat for each in self.results)


async def test_runs_of_a_worker_that_hangs_are_made_elsewhere(tmp_path: Path) -> None:
    async with experiment(tmp_path, seconds=0.3) as made:
        hangs = await made.worker("hangs")
        await made.worker("works")
        hand = Hand(made, 0.3)
        running = asyncio.create_task(hand.run())
        await made.until_completed(1)
        hangs.send_signal(signal.SIGSTOP)
        await running
    assert hand.repeats == [*range(1, RUNS + 1)]
    assert any("no answer for 2 s" in line for line in hand.messages)


async def test_runs_outlast_a_network_that_is_away(tmp_path: Path) -> None:
    """The scheduler is silent for a while: runs made meanwhile count, and are made only once."""
    async with experiment(tmp_path, seconds=1.0) as made:
        await made.worker("works")
        hand = Hand(made, 1.0)
        running = asyncio.create_task(hand.run())
        await eventually(lambda: len(hand.results) == 1)
        (worker,) = hand.workers.available()
        assert isinstance(worker, ClusterWorker)
        first = worker.kept | worker.running
        await eventually(lambda: worker.running - first)
        made.scheduler.send_signal(signal.SIGSTOP)
        await made.until_completed(2)
        await eventually(lambda: any("no answer from" in line for line in hand.messages))
        made.scheduler.send_signal(signal.SIGCONT)
        await running
        assert made.completed() == [*range(1, RUNS + 1)]
    assert hand.repeats == [*range(1, RUNS + 1)]
