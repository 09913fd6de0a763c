"""Tables hold the measured values, and no name can break their markup."""

import csv
import io
import json
import re

import pytest
from msgspec.structs import replace
from rich.console import Console

from ccplay.analysis.results import Result
from ccplay.model.columns import Column
from ccplay.report.data.findings import (
    agreement,
    citations,
    columns,
    family_findings,
    findings,
    verdicts,
)
from ccplay.report.data.material import MOST_DRAWN, MOST_SHOWN
from ccplay.report.data.naming import in_order, words
from ccplay.report.data.report_tables import MOST_IN_MARKDOWN, Cell, ReportTable, tables
from ccplay.report.terminal.terminal_tables import _Fitting, family_tables
from ccplay.scenario.library import find, shipped
from ccplay.scenario.reading import load
from tests.unit.reports import PUBLISHED, experiment, material, variants


def test_a_name_cannot_break_out_of_markdown() -> None:
    text = ReportTable.of("t", [{"a": "x | y\n| z <b>", "b": 1.5}]).markdown()
    assert text.splitlines() == ["| a | b |", "| --- | ---: |", "| x \\| y \\| z \\<b\\> | 1.5 |"]


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x", "\tx"])
def test_a_spreadsheet_obeys_no_name(name: str) -> None:
    text = ReportTable.of("t", [{"a": name, "b": -1.5}]).csv()
    _, row = csv.reader(io.StringIO(text))
    assert row == [f"'{name}", "-1.5"]


def test_rows_may_have_different_columns() -> None:
    table = ReportTable.of("t", [{"a": 1}, {"b": 2}])
    assert json.loads(table.json()) == [{"a": 1, "b": None}, {"a": None, "b": 2}]


def test_findings_have_mean_interval_and_what_others_published() -> None:
    result = experiment()
    [found] = [each for each in tables(result) if each.name == "findings"]
    rows = json.loads(found.json())
    first = rows[0]
    assert (first["case"], first["figure"], first["n"]) == ("reno <b>", "checkpoint.ratio", 3)
    assert first["ci95_low"] < first["mean"] < first["ci95_high"]
    assert first["published"] == ", ".join(f"{value:g}" for value in PUBLISHED)


def test_the_difference_is_to_the_mean_of_what_was_published() -> None:
    found = findings(experiment())[0]
    assert found.statistic is not None
    theirs = sum(PUBLISHED) / len(PUBLISHED)
    assert found.difference == pytest.approx(found.statistic.mean / theirs - 1)


def test_columns_write_means_in_one_unit() -> None:
    found = findings(experiment())
    column = next(each for each in columns(found) if each.metric == "flows.1.goodput_bps")
    cell = next(each for each in found if each.metric == "flows.1.goodput_bps")
    assert column.unit_name == "Mbit/s"
    assert column.ours(cell).startswith("2.0")


def test_what_was_published_of_a_whole_family_is_no_reading_of_any_of_its_points() -> None:
    result = variants("reno", "vegas", published=PUBLISHED)
    assert not any(each.published or each.notes for each in findings(result))
    [reading] = family_findings(result)
    assert (reading.family, reading.published) == ("alone", list(PUBLISHED))
    [table] = [each for each in tables(result) if each.name == "findings"]
    rows = json.loads(table.json())
    assert [row["case"] for row in rows if row["published"]] == ["alone"]
    assert not any(row["difference"] for row in rows)


def test_an_expectation_is_counted_over_all_its_runs() -> None:
    [found] = verdicts(experiment().cases)
    assert (found.cases, found.held, len(found.runs)) == (["reno <b>"], 2, 3)
    assert [(each.run.repeat, each.value) for each in found.failed] == [(3, "0.820")]


def test_an_expectation_of_many_cases_is_one_verdict() -> None:
    [found] = verdicts(variants("reno", "vegas", "bic").cases)
    assert (len(found.cases), found.held, len(found.runs)) == (3, 3, 3)


def test_the_file_has_the_checks_of_each_case() -> None:
    """The file lists the checks of each case, which the page combines."""
    [table] = [each for each in tables(variants("reno", "vegas")) if each.name == "checks"]
    rows = json.loads(table.json())
    assert [row["case"] for row in rows] == ["alone, cc reno", "alone, cc vegas"]
    assert {(row["held_in_runs"], row["of_runs"]) for row in rows} == {(1, 1)}


@pytest.mark.parametrize(
    ("metric", "text", "kind"),
    [
        ("flows.1.goodput_bps", "goodput of flow 1", "flows.goodput_bps"),
        ("pings.p1.p50_ms", "median RTT of ping p1", "pings.p50_ms"),
        ("queues.r->h2.delay_p95_ms", "95th percentile of queueing delay of r → h2", None),
        ("downloads.w1.seconds", "download time of download w1", "downloads.seconds"),
        ("checkpoint.ratio", "checkpoint ratio", "checkpoint.ratio"),
        ("jain", "Jain's index", "jain"),
        ("flows.1.something_new", "something new of flow 1", None),
    ],
)
def test_metrics_have_words(metric: str, text: str, kind: str | None) -> None:
    assert words(metric).text == text
    assert kind in (None, words(metric).kind)


def test_names_are_sorted_as_people_count() -> None:
    assert in_order(["10", "2", "w1", "1"]) == ["1", "2", "10", "w1"]


def test_a_table_that_nobody_reads_through_is_no_markdown() -> None:
    rows: list[dict[str, Cell]] = [
        {"case": "a", "repeat": number} for number in range(MOST_IN_MARKDOWN)
    ]
    assert [ending for ending, _ in ReportTable.of("few", rows).files()] == ["md", "csv", "json"]
    rows.append({"case": "a", "repeat": -1})
    assert [ending for ending, _ in ReportTable.of("many", rows).files()] == ["csv", "json"]


def test_of_a_large_experiment_one_run_of_the_first_cases_is_drawn() -> None:
    small = material(experiment())
    assert small.whose == "all runs"
    large = replace(small, runs=small.runs * (MOST_DRAWN // len(small.runs) + 1))
    assert large.whose == "one run of each case"
    cases = [
        replace(small.result.statistics[0], name=f"case {number}")
        for number in range(MOST_SHOWN + 1)
    ]
    many = replace(large, result=replace(large.result, statistics=cases))
    assert list(many.drawn_cases) == cases[:-1]
    assert many.whose == f"one run of each of the first {MOST_SHOWN} cases"


def test_a_narrow_table_leaves_columns_out_rather_than_cut_names() -> None:
    """Algorithms are spelled out in 60 columns; bytes and time, which goodput implies, give way."""
    columns = [
        (Column(title, (title,)), [text, text.replace("a", "b")])
        for title, text in {
            "flow": "a-long-name-of-a",
            "cc": "vegas.bpf",
            "goodput": "2.78 Mbit/s",
            "bytes": "2.44 MB",
            "time": "7.0 s",
            "srtt": "119 / 135 ms",
        }.items()
    ]
    console = Console(width=60, file=io.StringIO())
    with console.capture() as shown:
        console.print(_Fitting(columns))
    head, *rows = shown.get().splitlines()
    assert head.split() == ["flow", "cc", "goodput", "srtt"]
    assert "vegas.bpf" in rows[0]
    assert "…" not in shown.get()


# --- published values are cited, and compared with the measured ones in a sentence ----------------

SOURCE = "Student report of COMP 343, measured in Mininet"


def cited(*sources: str) -> Result:
    """Return the experiment with published values of these sources, one per case."""
    result = experiment()
    published = next(each.published for each in result.statistics if each.published)
    cases = [
        replace(case, published=[replace(each, source=source) for each in published])
        for case, source in zip(result.statistics, sources, strict=True)
    ]
    return replace(result, statistics=cases)


def test_one_source_is_cited_once_and_several_with_their_cases() -> None:
    assert citations(cited(SOURCE, SOURCE)) == [SOURCE]
    assert citations(cited("", "")) == []
    one, two = (case.name for case in experiment().statistics)
    assert citations(cited("Here", "There")) == [f"{one}: Here", f"{two}: There"]


def test_the_table_in_a_terminal_cites_it() -> None:
    out = io.StringIO()
    Console(file=out, width=120).print(*family_tables(cited(SOURCE, SOURCE), 120))
    assert out.getvalue().count(f"published: {SOURCE}") == 1


def test_how_near_ours_is_to_what_was_published() -> None:
    """The sentence counts the published values within the confidence intervals.

    Measured ratios are 0.70 to 0.82 in the first case, and 0.3 more in the second.
    """
    theirs = sum(PUBLISHED) / len(PUBLISHED)
    second = experiment().statistics[1]
    far = second.metrics["checkpoint.ratio"].mean / theirs - 1
    assert agreement(cited(SOURCE, SOURCE)) == (
        "1 of 2 published values lie in the 95 % confidence intervals of ours; the largest "
        f"difference is in checkpoint ratio ({second.name}): ours is {far * 100:.0f} % above."
    )


def test_of_a_single_figure_nothing_is_furthest() -> None:
    single = agreement(experiment())
    assert single.startswith("The published value ")
    assert "largest" not in single


def test_nothing_is_reported_where_nothing_was_published() -> None:
    result = experiment()
    bare = [replace(each, published=[]) for each in result.statistics]
    assert agreement(replace(result, statistics=bare)) == ""


@pytest.mark.parametrize("name", shipped())
def test_scenarios_cite_what_they_put_beside_ours_and_count_no_repeats(name: str) -> None:
    """Texts of scenarios name no number of repeats: the command line sets it."""
    loaded = load(find(name))
    for case in loaded.cases:
        assert case.published_in or not case.published
    number = r"(?i)\b(\d+|two|three|four|five|six|seven|eight|nine|ten)\s+(repeats|runs)\b"
    said = " ".join([loaded.about, *(case.about for case in loaded.cases)])
    assert not re.search(number, said)
