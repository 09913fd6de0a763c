"""Every number of a result has one name, and a name that means nothing is told before a run."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ccplay.analysis.metrics import check_metrics, measurable, metric_of, metrics_of
from ccplay.analysis.summary import summarise
from ccplay.errors import ScenarioError
from ccplay.scenario.file.library import find
from ccplay.scenario.file.reading import load
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
    names = measurable(race.cases[0])
    assert {"jain", "checkpoint.ratio", "checkpoint.bytes.1", "flows.2.fct_s"} <= set(names)


@pytest.mark.parametrize("metric", ["checkpoint.ration", "flows.3.fct_s", "flows.1.cc", "ratio"])
def test_a_metric_that_nothing_measures_is_refused(metric: str) -> None:
    with pytest.raises(ScenarioError, match="nothing measures"):
        check_metrics(_expecting(metric))


def test_a_metric_that_is_measured_passes() -> None:
    check_metrics(_expecting("checkpoint.ratio"))
    check_metrics(_expecting("queues.r->h2.qlen_p50"))


def _expecting(metric: str) -> Scenario:
    race = load(find("race"))
    expectation = Expectation(metric, 0.0, None, "at least 0", "physics", "expect[0]")
    return replace(race, cases=tuple(replace(c, expect=(expectation,)) for c in race.cases))
