"""Run options: what the command line overrides or adds to a scenario."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from ccplay.analysis.metrics import check_metrics, metric_problem
from ccplay.errors import ScenarioError, UsageError
from ccplay.experiment.agenda import MOST_REPEATS, Goal
from ccplay.model.quoting import quote
from ccplay.model.topologies import plan
from ccplay.scenario.fields.evidence import unaliased
from ccplay.scenario.values import Case, Scenario
from ccplay.stream.sinks import Sink


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The run options of a scenario."""

    cases: Sequence[str] = ()
    """Names of the cases to run; none means all."""
    jobs: int = 1
    """Number of parallel labs."""
    repeats: int | None = None
    """Repeats of every case; overrides the file."""
    until_ci: float | None = None
    """Largest half width of the 95 % confidence interval, as a share of the mean."""
    metric: str | None = None
    """Metric for ``until_ci``; None selects the first metric of each case."""
    most: int = MOST_REPEATS
    """Largest number of repeats of a case with ``until_ci``."""
    hz: float | None = None
    """Samples per second; overrides the file."""
    out: Path | None = None
    """Run directory; None keeps no runs."""
    record: Path | None = None
    """File for the stream of a single run."""
    as_json: bool = False
    receiver: bool = False
    """Whether to print every second the bytes delivered by each flow."""
    share: Callable[[str, str], Sink] | None = None
    """Function that opens a sink to share one run, from the name and the title of its case."""
    command: str = ""
    """Command line that resumes after Ctrl-C."""
    away: Literal["", "detach", "attach", "cancel"] = ""
    """Request for an experiment that can continue without this machine; empty if there is none."""


def with_options(scenario: Scenario, wanted: RunOptions) -> Scenario:
    """Return a scenario with the repeats and the sampling rate of these options.

    Raises ``ScenarioError`` if it names a metric that nothing measures.
    """
    check_metrics(scenario)
    often = wanted.repeats if wanted.until_ci is None else wanted.most
    return replace(
        scenario, cases=tuple(_with_options(case, often, wanted.hz) for case in scenario.cases)
    )


def _with_options(case: Case, repeats: int | None, hz: float | None) -> Case:
    return replace(
        case,
        repeats=repeats or case.repeats,
        build=msgspec.structs.replace(case.build, sample_hz=hz or case.build.sample_hz),
    )


def goal_of(scenario: Scenario, wanted: RunOptions) -> Goal | None:
    """Return the goal for the means of a scenario's cases.

    Raises ``ScenarioError`` if a case does not name a metric, ``UsageError`` if the command line
    names one that it does not measure.
    """
    if wanted.until_ci is None:
        return None
    metrics = {case.name: _metric(case, scenario, wanted) for case in scenario.cases}
    return Goal(wanted.until_ci, metrics, wanted.most)


def _metric(case: Case, scenario: Scenario, wanted: RunOptions) -> str:
    metric = wanted.metric or next(iter(case.metrics), None)
    if metric is not None:
        metric = unaliased(metric, plan(case.build.topology))
    name = f"case {quote(case.name)}"
    if metric is None:
        raise ScenarioError(
            f"{scenario.path.name}: metrics: {name} has none for --until-ci to watch: "
            "name one here, or with --metric checkpoint.ratio"
        )
    if problem := metric_problem(metric, case):
        raise UsageError(f"--metric: {name}: {problem}")
    return metric
