"""Repeated runs as tables that fit 80 columns, and results that say what many runs say together."""

import io
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from ccplay.analysis.metrics import check
from ccplay.analysis.results import CaseResult, Result
from ccplay.analysis.statistics import statistic
from ccplay.analysis.summary import summarise
from ccplay.experiment.plan import CollectedRuns
from ccplay.report.data.naming import family_of, some_of, unit, write, write_bounds
from ccplay.report.terminal.terminal_tables import (
    HeadedColumn,
    check_lines,
    show,
    split_columns,
    table,
)
from ccplay.scenario.reading import parse
from ccplay.scenario.values import Scenario
from tests.events import health
from tests.unit.reports import experiment, variants
from tests.unit.test_summary import session

TEXT = """
duration = "20 s"
repeats = 3
topology.kind = "linear"
links.bottleneck = { rate = "10 Mbit/s", queue = { kind = "pfifo", limit = 50 } }
timeline = [
  { at = "0 s", do = "start-flow" },
  { at = "0 s", do = "start-flow" },
  { at = "0 s", do = "start-ping" },
]
metrics = ["jain", "pings.p1.p50_ms", "flows.1.goodput_bps", "flows.2.goodput_bps"]
expect = [{ metric = "jain", at_least = 0.5, why = "they are alike" }]
published = [{ metric = "jain", values = [0.9, 0.8], note = "their queue is longer" }]
[matrix]
delay = { path = "links.bottleneck.delay", values = ["10 ms", "20 ms"] }
"links.bottleneck.queue.limit" = [10, 50]
[[case]]
name = "reno"
"""


def matrix() -> Scenario:
    return parse(TEXT, Path("t.toml"))


def measured(scenario: Scenario, jain: float = 0.9) -> list[CaseResult]:
    """Return every run; fairness differs a little from one to the next."""
    return [
        replace(
            summarise(session(), case.name),
            parameters=dict(case.parameters),
            repeat=repeat,
            jain=jain + repeat / 100,
            checks=check(case, replace(summarise(session(), case.name), jain=jain)),
        )
        for case in scenario.cases
        for repeat in (1, 2, 3)
    ]


def gathered(runs: list[CaseResult]) -> Result:
    gathering = CollectedRuns(matrix())
    for run in runs:
        gathering.add(run)
    return gathering.result()


def shown(result: Result, width: int = 80) -> str:
    out = io.StringIO()
    show(result, Console(file=out, width=width))
    return out.getvalue()


def test_the_repeats_of_a_case_are_one_statistic() -> None:
    """The order in which runs come does not matter."""
    result = gathered(measured(matrix())[::-1])
    assert [run.repeat for run in result.cases[:3]] == [1, 2, 3]
    first = result.statistics[0]
    assert first.name == "reno, delay 10 ms, limit 10"
    assert first.parameters == {"delay": "10 ms", "limit": 10}
    assert (first.runs, first.untrustworthy) == (3, 0)
    assert first.metrics["jain"] == statistic([0.91, 0.92, 0.93])
    assert first.reported[0] == "jain"
    assert first.published[0].values == (0.9, 0.8)


def test_runs_in_which_something_failed_count_for_nothing() -> None:
    runs = measured(matrix())
    runs[0] = replace(runs[0], errors=["flow 1 died"])
    runs[1] = replace(runs[1], interrupted=True)
    state = session()
    for t in range(13, 80):
        state.apply(health(t, host_cpu=1.0))
    runs[2] = replace(runs[2], health=summarise(state, "").health)
    first = gathered(runs).statistics[0]
    assert (first.runs, first.untrustworthy) == (1, 1)
    assert first.metrics["jain"].n == 1


def test_what_was_broken_off_is_left_out_where_only_whole_runs_are_kept() -> None:
    gathering = CollectedRuns(matrix())
    runs = measured(matrix())
    gathering.add(runs[0])
    gathering.add(replace(runs[1], interrupted=True), whole=False)
    assert len(gathering.result().cases) == 2
    assert [run.repeat for run in gathering.result(whole_only=True).cases] == [1]


def test_a_family_is_a_table_of_its_points() -> None:
    text = shown(gathered(measured(matrix())))
    assert max(map(len, text.splitlines())) <= 80
    rows = [line.split() for line in text.splitlines()]
    assert ["reno", "3", "runs", "each"] in rows
    assert ["10", "ms", "10", "0.920", "±", "0.025"] in [row[:6] for row in rows]
    assert "jain, expected at least 0.5: held in 12 of 12 runs (they are alike)" in text
    assert "published jain: their queue is longer" in text


def test_what_was_published_of_all_points_stands_once_below_them() -> None:
    """Nobody said of which point it was: to repeat it would say that it is of each."""
    lines = shown(gathered(measured(matrix()))).splitlines()
    places = [n for n, line in enumerate(lines) if line.split()[:1] == ["published"]]
    row, note = places
    assert lines[row].split() == ["published", "0.800", "to", "0.900"]
    assert lines[row - 1].split()[:3] == ["20", "ms", "50"]
    assert "their queue is longer" in lines[note]


def test_what_was_published_of_a_case_stands_below_it() -> None:
    lines = shown(experiment()).splitlines()
    places = [n for n, line in enumerate(lines) if line.split()[:1] == ["published"]]
    assert lines[places[0]].split() == ["published", "0.670", "to", "0.750"]
    assert lines[places[0] - 1].split()[:2] == ["reno", "<b>"]


def test_rows_that_ran_as_often_report_it_once() -> None:
    runs = measured(matrix())
    assert "limit  n" not in shown(gathered(runs))
    assert "limit  n" in shown(gathered(runs[1:]))


def test_single_runs_have_no_interval_to_explain() -> None:
    assert "±" not in shown(variants("reno", "vegas"))
    assert "alone  1 run each" in shown(variants("reno", "vegas"))


def test_more_figures_than_fit_make_more_tables() -> None:
    """Each repeats what names its rows; nothing is cut off or broken in two."""
    result = gathered(measured(matrix()))
    narrow, wide = shown(result, 50), shown(result, 120)
    for text, tables in ((narrow, 2), (wide, 1)):
        heads = [line for line in text.splitlines() if line.split()[:2] == ["delay", "limit"]]
        assert len(heads) == tables
    assert max(map(len, narrow.splitlines())) <= 50
    for text in (narrow, wide):
        assert text.count("flows.2") == 1


def test_thirteen_variants_with_nine_figures_fit_a_terminal() -> None:
    """What neighbours share is said once: their flow, their unit."""
    columns = [
        HeadedColumn("goodput", ["0.866"], "flows.1", "Mbit/s"),
        HeadedColumn("tx", ["0.927"], "flows.1", "Mbit/s"),
        HeadedColumn("rx", ["0.877"], "flows.1", "Mbit/s"),
        HeadedColumn("delay\nmean", ["107"], "flows.1", "ms"),
        HeadedColumn("packet\nloss", ["0.0473"], "flows.1"),
        HeadedColumn("cwnd\np50", ["56.0"], "flows.1"),
        HeadedColumn("qlen\np50", ["96.0"], "queues.r->h2"),
        HeadedColumn("loss", ["0.959"], "udp.u1"),
        HeadedColumn("delay\nmean", ["164"], "udp.u1", "ms"),
    ]
    labels = [HeadedColumn("cc", ["Westwood+"])]
    [together] = split_columns(labels, columns, 80, 2)
    out = io.StringIO()
    Console(file=out, width=78).print(table(labels, together, []))
    assert [line.split() for line in out.getvalue().splitlines()] == [
        ["queues."],
        ["flows.1", "─" * 34, "r->h2", "udp.u1", "─" * 5],
        ["delay", "packet", "cwnd", "qlen", "delay"],
        ["goodput", "tx", "rx", "mean", "loss", "p50", "p50", "loss", "mean"],
        ["cc", "─" * 14, "Mbit/s", "ms", "ms"],
        ["Westwood+", "0.866", "0.927", "0.877", "107", "0.0473", "56.0", "96.0", "0.959", "164"],
    ]


def test_a_check_that_failed_reports_where() -> None:
    text = shown(gathered(measured(matrix(), jain=0.4)))
    assert "held in 0 of 12 runs" in text
    assert "failed: reno, delay 10 ms, limit 10, run 1: 0.400" in text
    assert "… and 9 more" in text


def test_checks_of_all_families_are_reported_once_and_those_of_some_name_them() -> None:
    both = experiment()
    lines = [line for line, _ in check_lines(both.cases, both.statistics)]
    assert lines[0].startswith("reno <b>: checkpoint.ratio, expected at most 0.8: held in 2 of 3")
    [line] = check_lines((found := variants("reno", "vegas", "bic")).cases, found.statistics)
    assert line == ("checkpoint.ratio, expected at most 0.8: held in 3 of 3 runs (so)", "green")


def test_some_cases_are_called_by_their_family() -> None:
    cases = gathered(measured(matrix())).statistics + variants("reno", "vegas").statistics
    names = [case.name for case in cases]
    assert some_of(names, cases) == ""
    assert some_of(names[:4], cases) == "reno"
    assert some_of(names[3:], cases) == "reno, delay 20 ms, limit 50, alone"
    assert some_of(names[:3] + names[4:5], cases).endswith(" and 1 more")


def test_a_metric_that_nothing_measured_fails_its_check() -> None:
    case = matrix().cases[0]
    (found,) = check(case, summarise(session(), case.name))
    assert (found.value, found.ok) == (summarise(session(), case.name).jain, found.ok)
    (missing,) = check(case, replace(summarise(session(), ""), jain=None))
    assert (missing.value, missing.ok) == (None, False)


def test_the_name_of_a_family_is_what_its_points_share() -> None:
    statistics = gathered(measured(matrix())).statistics
    assert {family_of(each) for each in statistics} == {"reno"}
    points = [replace(each, name=each.name.removeprefix("reno, ")) for each in statistics]
    assert {family_of(each) for each in points} == {""}
    several = [replace(each, name=f"one: {each.name}") for each in points]
    assert {family_of(each) for each in several} == {"one"}


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("flows.1.goodput_bps", 4_250_000, "4.25 Mbit/s"),
        ("checkpoint.bytes.1", 10_000_000, "10.0 MB"),
        ("flows.1.bytes", 999, "999 B"),
        ("queues.r->h2.backlog_p50", 57_500, "57.5 kB"),
        ("pings.p1.p50_ms", 807, "807 ms"),
        ("downloads.w1.seconds", 7.04, "7.04 s"),
        ("checkpoint.elapsed_s", 18.1, "18.1 s"),
        ("jain", 0.9, "0.900"),
        ("flows.1.retransmits", 0, "0"),
        ("flows.1.cwnd_p50", 28.0, "28"),
        ("flows.1.cwnd_p50", 28.5, "28.5"),
        ("queues.r->h2.drops", 1234, "1234"),
        ("checkpoint.ratio", 1.0, "1.00"),
    ],
)
def test_a_metric_is_written_in_its_unit(metric: str, value: float, text: str) -> None:
    assert write(metric, value) == text


@pytest.mark.parametrize(
    ("metric", "text", "shown"),
    [
        ("flows.1.goodput_bps", "at least 946,800,000", "at least 946.8 Mbit/s"),
        ("flows.1.goodput_bps", "12,000,000 ± 15 %", "12 Mbit/s ± 15 %"),
        ("flows.1.goodput_bps", "12,000,000 ± 1200000", "12 ± 1.2 Mbit/s"),
        ("pings.p1.p50_ms", "19.5 to 23", "19.5 to 23 ms"),
        ("queues.r1->r2.backlog_mean", "at most 131,000", "at most 131 kB"),
        ("checkpoint.ratio", "0.7 ± 0.05", "0.7 ± 0.05"),
        ("flows.1.retransmits", "at most 1e+30", "at most 1e+30"),
    ],
)
def test_the_bounds_of_a_check_have_the_unit_of_its_metric(
    metric: str, text: str, shown: str
) -> None:
    assert write_bounds(metric, text) == shown


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([0.72, 0.75, 0.67], "0.71 ± 0.10"),
        ([18.1, 18.2, 17.6], "17.97 ± 0.80"),
        ([800, 810, 820], "810 ± 25"),
        ([5.0], "5.00"),
        ([5.0, 5.0], "5.00 ± 0.00"),
        ([0.0, 0.0], "0.00 ± 0.00"),
        ([1234.5, 1234.6], "1235 ± 1"),
    ],
)
def test_a_mean_has_no_more_digits_than_are_sure(values: list[float], text: str) -> None:
    assert unit("jain").write_statistic(statistic(values)) == text
