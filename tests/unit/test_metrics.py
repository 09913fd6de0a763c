"""Every number of a result has one name, and a name that means nothing is told before a run."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from ccplay.analysis.metrics import (
    check_metrics,
    metric_of,
    metric_problem,
    metrics_of,
    why_unmeasured,
)
from ccplay.analysis.results import CaseStatistics
from ccplay.analysis.summary import summarise
from ccplay.errors import ScenarioError
from ccplay.report.data.findings import unmeasured
from ccplay.scenario.library import find
from ccplay.scenario.reading import load, parse
from ccplay.scenario.values import Expectation, Scenario
from tests.unit.test_summary import session


def test_members_of_lists_go_by_their_names() -> None:
    metrics = metrics_of(summarise(session(), "a"))
    assert {"flows.1.goodput_bps", "queues.r->h2.qlen_p50", "pings.p1.p50_ms"} <= set(metrics)
    assert "flows.1.fct_s" not in metrics, "what is null is no number"
    assert not any(name.startswith(("health", "parameters", "repeat")) for name in metrics)


def test_one_number_is_the_same_as_among_all() -> None:
    result = summarise(session(), "a")
    every = metrics_of(result)
    assert len(every) > 20
    assert {name: metric_of(result, name) for name in every} == every
    for none in ("", "flows", "flows.1", "flows.1.cc", "flows.1.fct_s", "health.ticks", "repeat"):
        assert metric_of(result, none) is None, none


def test_what_was_measured_could_be_named_before() -> None:
    """The names offered for a case hold all that its run then has, its queues apart."""
    race = load(find("race"))
    for name in ("jain", "checkpoint.ratio", "checkpoint.bytes.1", "flows.2.fct_s"):
        assert not metric_problem(name, race.cases[0]), name


@pytest.mark.parametrize("metric", ["checkpoint.ration", "flows.3.fct_s", "flows.1.cc", "ratio"])
def test_a_metric_that_nothing_measures_is_refused(metric: str) -> None:
    with pytest.raises(ScenarioError, match="nothing measures"):
        check_metrics(_expecting(metric))


def test_a_metric_that_is_measured_passes() -> None:
    for metric in ("checkpoint.ratio", "queues.r->h2.qlen_p50"):
        check_metrics(_expecting(metric))


@pytest.mark.parametrize(
    ("metric", "why"),
    [
        ("queues.h2->r.drops", 'add "h2->r" to topology.observed'),
        ("queues.bottlenck.drops", "did you mean"),
        ("queues.bottleneck.dely_p50_ms", "did you mean"),
        ("queues.bottleneck.sojourn_p50_ms", "does not measure it"),
        ("queues.bottleneck.marks", "marks no packet"),
        ("flows.1.delay_mean_ms", "only monitor = true"),
        ("directions.h1->h2.goodput_bps", "the same ends"),
        ("interfaces.r-eth9.lost", "did you mean"),
        ("checkpoint", "did you mean"),
    ],
)
def test_what_this_network_or_traffic_cannot_give_is_refused_with_the_reason(
    metric: str, why: str
) -> None:
    with pytest.raises(ScenarioError, match=f"nothing measures.*{why}"):
        check_metrics(_linear(f'metrics = ["{metric}"]'))


def test_bottleneck_is_the_first_observed_queue_everywhere() -> None:
    scenario = _linear(
        """
metrics = ["queues.bottleneck.delay_p95_ms"]
expect = [{ metric = "queues.bottleneck.drops", at_least = 1, why = "it fills" }]
published = [{ metric = "queues.bottleneck.qlen_p50", values = [1] }]
"""
    )
    check_metrics(scenario)
    case = scenario.case()
    assert case.metrics == ("queues.r->h2.delay_p95_ms",)
    assert [each.metric for each in case.expect] == ["queues.r->h2.drops"]
    assert [each.metric for each in case.published] == ["queues.r->h2.qlen_p50"]
    assert metric_problem("queues.bottleneck.utilisation", case) == ""


def test_a_metric_that_a_run_did_not_measure_has_a_reason() -> None:
    run = summarise(session(), "a")
    assert "was not done" in why_unmeasured("flows.1.fct_s", [run])
    assert "never started" in why_unmeasured("flows.9.goodput_bps", [run])
    assert "no run was completed" in why_unmeasured("jain", [])
    case = CaseStatistics(name="a", runs=1, metrics={}, reported=["flows.1.fct_s"])
    assert unmeasured([case], [run]) == [
        "flows.1.fct_s was not measured: the flow was not done before the end"
    ]
    [text] = unmeasured([case], [replace(run, interrupted=True)])
    assert "no run was completed" in text


def _linear(text: str) -> Scenario:
    head = """
duration = "5 s"
topology.kind = "linear"
timeline = [{ at = "0 s", do = "start-flow" }, { at = "0 s", do = "start-flow", bytes = "1 MB" }]
"""
    return parse(head + text, Path("t.toml"))


def _expecting(metric: str) -> Scenario:
    race = load(find("race"))
    expectation = Expectation(
        metric=metric, low=0.0, text="at least 0", why="physics", place="expect[0]"
    )
    return replace(race, cases=tuple(replace(c, expect=(expectation,)) for c in race.cases))
