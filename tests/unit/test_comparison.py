"""Comparing: what differs, by how much, and what may be said of it."""

import io
import json
import random
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from ccplay.analysis.results import CaseStatistics, Result
from ccplay.analysis.statistics import statistic
from ccplay.analysis.summary import summarise
from ccplay.cli import main
from ccplay.errors import UsageError
from ccplay.report.comparison import (
    CaseComparison,
    Comparison,
    Difference,
    compare,
    show_comparison,
    welch,
)
from ccplay.report.data.naming import words
from ccplay.stream import wire
from tests.ui.synthetic import stream
from tests.unit.test_summary import session


def result(**cases: dict[str, list[float]]) -> Result:
    """An experiment with these values of these metrics."""
    return Result(
        scenario="mine",
        title="mine",
        machine=None,
        cases=[],
        statistics=[
            CaseStatistics(
                name=name,
                runs=max(len(values) for values in metrics.values()),
                metrics={metric: statistic(values) for metric, values in metrics.items()},
                reported=list(metrics)[:1],
            )
            for name, metrics in cases.items()
        ],
    )


def test_welch_s_interval() -> None:
    """Equal sizes, near enough equal variances: t = -2.46 with 25.0 degrees, so 0 is left out."""
    one = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4]
    two = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4]
    found = welch(statistic(one), statistic(two))
    assert found is not None
    # 2.167 is the difference of the means, 0.882 its standard error, 2.064 Student's t for 24.
    assert found == pytest.approx((2.167 - 2.064 * 0.882, 2.167 + 2.064 * 0.882), abs=0.01)


def test_welch_s_interval_covers_the_truth() -> None:
    """Of 2000 pairs of samples whose means differ by 1 some 95 % of the intervals hold 1.

    Rounded down degrees of freedom make it rather more: 94 to 98.5 % leaves room for chance, which
    has a standard deviation of 0.5 % here.
    """
    chance = random.Random(7)
    held = 0
    for _ in range(2000):
        one = statistic([chance.gauss(5, 1) for _ in range(4)])
        two = statistic([chance.gauss(6, 3) for _ in range(6)])
        low, high = welch(one, two) or (0.0, 0.0)
        held += low <= 1 <= high
    assert 0.94 <= held / 2000 <= 0.985


def test_without_repeats_nobody_can_say() -> None:
    assert welch(statistic([1.0]), statistic([2.0, 2.1])) is None
    case = compare(result(a={"jain": [1.0]}), result(a={"jain": [0.5, 0.6]}), ("A", "B")).cases[0]
    assert (case.metrics[0].clear, case.metrics[0].low) == (None, None)
    assert case.metrics[0].percent == pytest.approx(-45)


def test_values_that_never_vary_differ_clearly_or_not_at_all() -> None:
    same, other = statistic([50.0, 50.0]), statistic([55.0, 55.0])
    assert welch(same, same) == (0.0, 0.0)
    assert welch(same, other) == (5.0, 5.0)


def test_a_difference_is_clear_when_its_interval_leaves_out_0() -> None:
    one = result(a={"near": [1.0, 1.2, 0.9], "far": [1.0, 1.1, 0.9]})
    two = result(a={"near": [1.1, 1.0, 1.2], "far": [5.0, 5.1, 4.9]})
    near, far = compare(one, two, ("A", "B")).cases[0].metrics
    assert (near.clear, far.clear) == (False, True)
    assert far.difference == pytest.approx(4.0)
    assert far.percent == pytest.approx(400)


def test_cases_are_compared_by_their_names() -> None:
    one = result(both={"jain": [1.0]}, mine={"jain": [1.0]})
    two = result(theirs={"jain": [1.0]}, both={"jain": [1.0]})
    found = compare(one, two, ("A", "B"))
    assert [(each.a, each.b) for each in found.cases] == [("both", "both")]
    assert (found.only_a, found.only_b) == (["mine"], ["theirs"])


def test_the_only_cases_are_compared_whatever_their_names() -> None:
    found = compare(result(before={"jain": [1.0]}), result(after={"jain": [1.0]}), ("A", "B"))
    assert [(each.a, each.b) for each in found.cases] == [("before", "after")]


def test_experiments_without_a_case_in_common_are_refused() -> None:
    one = result(a={"jain": [1.0]}, b={"jain": [1.0]})
    with pytest.raises(UsageError, match=r'no case in common: "a", "b" here, "c" there'):
        compare(one, result(c={"jain": [1.0]}), ("A", "B"))


def test_a_metric_that_one_has_not_is_shown_all_the_same() -> None:
    found = compare(result(a={"jain": [1.0]}), result(a={"other": [1.0]}), ("A", "B"))
    assert [(each.metric, each.difference) for each in found.cases[0].metrics] == [
        ("jain", None),
        ("other", None),
    ]
    assert "–" in printed(found)


def test_a_comparison_survives_json() -> None:
    one = result(a={"jain": [1.0, 0.9], "utilisation": [0.5]})
    comparison = compare(one, one, ("A", "B"))
    assert msgspec.json.decode(msgspec.json.encode(comparison), type=Comparison) == comparison
    assert "metrics are equal" in printed(comparison)


def printed(comparison: Comparison, width: int = 80, *, every: bool = True) -> str:
    """Return the tables as text."""
    console = Console(file=io.StringIO(), width=width)
    show_comparison(comparison, console, every=every)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def case_of(*metrics: Difference) -> Comparison:
    case = CaseComparison(
        a="x", b="x", runs_a=1, runs_b=1, untrustworthy=0, reported=[], metrics=list(metrics)
    )
    return Comparison(a="A", b="B", cases=[case])


def differ(metric: str, a: float, b: float) -> Difference:
    one, two = result(x={metric: [a]}), result(x={metric: [b]})
    return compare(one, two, ("A", "B")).cases[0].metrics[0]


@pytest.mark.parametrize(
    ("metric", "a", "b", "line"),
    [
        ("flows.1.goodput_bps", 5.01e6, 4.25e6, "Mbit/s 5.01 4.25 −0.76 −15"),
        ("flows.1.retransmits", 59, 91, "segments 59 91 +32 +54"),
        ("flows.1.loss", 0.01, 0.02, "% 1.00 2.00 +1.00 +100"),
        ("queues.r->h2.qlen_p50", 15, 72, "packets 15 72 +57 +380"),
        ("pings.p1.p50_ms", 173.2, 173.0, "ms 173 173 −0.2 −0.1"),
        ("pings.p1.lost", 0, 2, "0 2 +2 –"),
        ("checkpoint.ratio", 1, 0.72, "1.00 0.720 −0.28 −28"),
        ("queues.r->h2.drops", 1, 5001, "packets 1 5001 +5000 ×5001"),
    ],
)
def test_a_line_of_the_table(metric: str, a: float, b: float, line: str) -> None:
    """Units stand by the names; a difference is as precise as what it is the difference of."""
    text = printed(case_of(differ(metric, a, b)))
    expected = f"{words(metric).quantity} {line}"
    assert expected in [" ".join(each.split()) for each in text.splitlines()]


def test_the_table_is_legible_at_80_columns() -> None:
    """Numbers are never cut: where there is little room the names wrap."""
    chance = random.Random(3)
    names = ["flows.1.srtt_p95_ms", "queues.r->h2.delay_p99_ms", "flows.1.slow_start_s", "jain"]
    one, two = (
        result(a={name: [chance.gauss(0.24, 0.001) for _ in range(4)] for name in names})
        for _ in range(2)
    )
    text = printed(compare(one, two, ("A", "B")))
    assert "…" not in text
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "r → h2" in text


def test_the_reported_figures_are_shown_first_and_the_others_on_demand() -> None:
    one = result(a={"jain": [1.0, 0.9], "utilisation": [0.5, 0.6]})
    two = result(a={"jain": [0.5, 0.4], "utilisation": [0.7, 0.8]})
    comparison = compare(one, two, ("A", "B"))
    assert "utilisation" not in printed(comparison, every=False)
    assert "1 more metric with --all" in printed(comparison, every=False)
    assert "utilisation" in printed(comparison)


# --- ``ccplay compare`` without a terminal: what it prints, and what it refuses -------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with two recordings and two directories of runs."""
    monkeypatch.chdir(tmp_path)
    for name, flows in (("a", 1), ("b", 2)):
        events = stream(flows=flows, seconds=8)
        (tmp_path / f"{name}.ccplay").write_bytes(b"".join(map(wire.encode, events)))
    for name, value in (("one", 1.0), ("two", 2.0)):
        found = {"jain": statistic([value, value + 0.1])}
        case = CaseStatistics(name="case", runs=2, metrics=found, reported=["jain"])
        run = summarise(session(), "case")
        result = Result(scenario="s", title="s", machine=None, cases=[run], statistics=[case])
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_bytes(msgspec.json.encode(result))
        (tmp_path / name / "scenario.toml").write_text("# nobody reads it here\n")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_two_recordings_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "a.ccplay", "b.ccplay"]) == 0
    out = capsys.readouterr().out
    assert "goodput" in out
    assert "flow 2" in out
    assert "Without repeats" in out


@pytest.mark.usefixtures("folder")
def test_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "a.ccplay", "b.ccplay", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["format"], found["a"], found["b"]) == (1, "a.ccplay", "b.ccplay")
    metrics = {each["figure"]: each for each in found["cases"][0]["figures"]}
    assert metrics["flows.1.goodput_bps"]["difference"] < 0
    assert metrics["flows.2.goodput_bps"]["a"] is None
    assert metrics["flows.1.goodput_bps"]["clear"] is None


@pytest.mark.usefixtures("folder")
def test_two_directories_of_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "one", "two"]) == 0
    out = capsys.readouterr().out
    assert "2 and 2 runs" in out
    assert "+1.00 ± 0.30 +95*" in " ".join(out.split())


@pytest.mark.usefixtures("folder")
def test_a_recording_and_the_only_case_of_a_directory(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody can say of one run whether it differs clearly."""
    assert main(["compare", "a.ccplay", "one", "--json"]) == 0
    case = json.loads(capsys.readouterr().out)["cases"][0]
    assert (case["a"], case["b"], case["runs_a"], case["runs_b"]) == ("a", "case", 1, 2)
    assert not any(each["clear"] for each in case["figures"])


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["a.ccplay", "none.ccplay"], 4, "none.ccplay: No such file"),
        (["one", "."], 4, "not a run directory"),
    ],
)
def test_what_can_t_be_compared_is_refused(
    capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    assert main(["compare", *words]) == code
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_a_ghost_needs_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", "--ghost", "a.ccplay"]) == 2
    assert "needs a terminal" in capsys.readouterr().err
