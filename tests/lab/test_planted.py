"""Congestion controls that are bad on purpose fail exactly the criteria that they should."""

import asyncio
import hashlib
from pathlib import Path

import pytest
from msgspec.structs import replace

from ccplay.analysis.results import Result
from ccplay.bpf.support import lack
from ccplay.evaluation.criteria import Subject, judge, load_criterion
from ccplay.experiment.plan import PlannedRun
from ccplay.experiment.trial import RunOrder, execute
from ccplay.model.commands import Build
from ccplay.scenario.library import criteria
from ccplay.scenario.rules import admitted, driven
from ccplay.session import launch
from ccplay.stream.sources import Source
from tests.lab.conftest import forked
from tests.lab.trust import note, physical

PLANTED = Path(__file__).parent / "planted"
FAILS = {
    "stubborn": {"bufferbloat", "high-loss", "starvation"},
    "deaf": {"collapse", "high-loss"},
    "greedy": {"bufferbloat", "high-loss", "starvation"},
    "timid": {"drop-tail", "starvation"},
    "forgetful": {"bufferbloat", "silence"},
}
"""Criteria that each planted algorithm fails, of all those in which it is alone or beside CUBIC.

stubborn never backs off, deaf ignores loss, greedy takes what delay it finds, timid starves itself,
and forgetful is Reno that forgets to recover after silence."""
BY_CHANCE = {("stubborn", "silence")}
"""Pairs not judged: what was lost just before the silence decides, as timers are the kernel's."""
CRITERIA = {row for rows in FAILS.values() for row in rows}
CASES = sorted({(name, row) for name in FAILS for row in CRITERIA} - BY_CHANCE)


@pytest.mark.skipif(lack() is not None, reason=f"{lack()}")
@pytest.mark.parametrize(("name", "row"), CASES)
@physical
async def test_a_planted_algorithm_fails_exactly_its_criteria(name: str, row: str) -> None:
    """Figures are judged here even where the machine was busy, which excuses wrong ones."""
    file = PLANTED / f"{name}.bpf.c"

    def opener(build: Build) -> Source:
        return forked(launch.lab_argv(None, None, [file]), build)

    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    subject = Subject(name, name)
    with admitted([name]):
        scenario = load_criterion(criteria()[row], [subject], ["cubic"], quick=True)
        scenario = driven(scenario, {name: digest})
    runs = []
    for case in scenario.cases:
        order = RunOrder(scenario=f"{row}.toml", case=PlannedRun(case, 1).played, repeat=1)
        outcome = await execute(order, opener, asyncio.Event())
        note(outcome.result.health)
        trusted = replace(outcome.result.health, trustworthy=True)
        runs.append(replace(outcome.result, parameters=dict(case.parameters), health=trusted))
    result = Result(scenario=row, title=row, machine=None, cases=runs)
    (found,) = judge(scenario, result, [subject])
    figures = [(each.metric, each.worst.value) for each in found.measures]
    assert found.verdict == ("fail" if row in FAILS[name] else "pass"), figures
