"""Criteria of an evaluation: their files, the verdicts on runs made by hand, and the page."""

import shlex
from html import unescape
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from ccplay.analysis.metrics import check_metrics
from ccplay.analysis.results import CaseResult, Result
from ccplay.analysis.summary import summarise
from ccplay.cli import main
from ccplay.errors import ScenarioError, UsageError
from ccplay.evaluation.criteria import (
    CriterionResult,
    Evaluation,
    Judged,
    Subject,
    Verdict,
    compare,
    criterion_result,
    find_criteria,
    in_order,
    judge,
    left_out,
    load_criterion,
    subject_of,
)
from ccplay.evaluation.evaluating import Wanted, command_of, plan_criteria
from ccplay.evaluation.evaluation_page import render
from ccplay.experiment.plan import RunOptions
from ccplay.experiment.store import fingerprint
from ccplay.scenario.library import criteria, find
from ccplay.scenario.reading import load, parse
from ccplay.scenario.values import Scenario
from tests.unit.reports import HEALTH, HOSTILE

MINE, CUBIC = Subject("mine", "mine"), Subject("cubic", "cubic")
HEAD = """
title = "Long flows"
duration = "9 s"
topology.kind = "linear"
links.bottleneck = { rate = "10 Mbit/s", queue = { kind = "pfifo", limit = 10 } }
timeline = [
  { at = "0 s", do = "start-flow", flow = "1", cc = "cubic" },
  { at = "0 s", do = "start-flow", flow = "2", cc = "cubic" },
]
[matrix]
algorithm = { path = "timeline.0.cc", values = ["reno", "cubic"] }
beside = { path = "timeline.1.cc", values = ["cubic"] }
"links.bottleneck.queue.limit" = [10, 50]
[evaluation]
rfc = "9743"
section = "5.2.1"
level = "MUST"
question = "Is it fair?"
sentence = "It MUST be."
subject = "algorithm"
beside = "beside"
"""


def scenario(*measures: str) -> Scenario:
    return parse(f"{HEAD}measures = [{', '.join(measures)}]\n", Path("fair.toml"))


ABSOLUTE = '{ metric = "jain", at_least = 0.8, why = "three quarters" }'
RELATIVE = '{ metric = "goodput_bps", over = "cubic", at_least = 0.5, why = "half" }'
BESIDE = '{ metric = "starvation", minus = "beside", at_most = 0.1, why = "a tenth" }'


def result(of: Scenario, values: dict[str, list[float | None]], field: str = "jain") -> Result:
    """Return runs in which a metric has these values, by a part of the case's name."""
    runs: list[CaseResult] = []
    for case in of.cases:
        for part, each in values.items():
            if part in case.name:
                runs += [
                    replace(
                        summarise_nothing(case.name),
                        repeat=number,
                        parameters=dict(case.parameters),
                        health=HEALTH,
                        **{field: value},
                    )
                    for number, value in enumerate(each, 1)
                ]
    return Result(scenario=of.name, title=of.title, machine=None, cases=runs)


def summarise_nothing(name: str) -> CaseResult:
    from ccplay.state.lab_state import LabState

    return summarise(LabState(), name)


def busy_run(run: CaseResult) -> CaseResult:
    doubt = ["the machine was 99% busy"]
    health = replace(HEALTH, trustworthy=False, reasons=doubt)
    return replace(run, health=health)


def whole(values: list[float | None], *, busy: bool = False, level: str = "MUST") -> Evaluation:
    """Return an evaluation whose only criterion has these values at each of its points."""
    of = scenario(ABSOLUTE)
    runs = result(of, {"": values})
    cases = [busy_run(each) if busy else each for each in runs.cases]
    found = judge(of, replace(runs, cases=cases), [RENO])
    row = criterion_result("fair", of, found, "ccplay run evaluation/fair")
    return evaluation(replace(row, level=level))


RENO = Subject("reno", "reno")
LEFT_OUT = left_out("algorithm")


def judged(of: Scenario, values: dict[str, list[float | None]], field: str = "jain") -> Judged:
    found = judge(of, result(of, values, field), [RENO, CUBIC])
    return found[0]


# --- the files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", criteria())
def test_every_criterion_can_be_run_alone_whole_and_quickly(name: str) -> None:
    """Its metrics can be measured, and a quick evaluation has one point of fewer seconds."""
    whole = load(find(f"evaluation/{name}"))
    assert whole.criterion is not None
    check_metrics(whole)
    subjects = [Subject("reno", "reno"), CUBIC]
    if whole.criterion.subject == "discipline":
        subjects = [Subject(each, {"kind": each}) for each in ("codel", "pfifo")]
    full = load_criterion(criteria()[name], subjects, ["cubic"], quick=False)
    quick = load_criterion(criteria()[name], subjects, ["cubic"], quick=True)
    check_metrics(quick)
    assert {case.parameters[whole.criterion.subject] for case in full.cases} == {
        each.name for each in subjects
    }
    assert len(quick.cases) <= len(full.cases)
    assert all(case.repeats == 1 for case in quick.cases)
    assert max(case.duration_s for case in quick.cases) <= 28
    for measure in whole.criterion.measures:
        points = [case for case in quick.cases if measure.at.items() <= parameters(case).items()]
        assert points, f"a quick evaluation has no point for {measure.metric}"


def parameters(case: object) -> dict[str, str]:
    return {name: str(value) for name, value in case.parameters.items()}  # type: ignore[attr-defined]


def test_a_criterion_that_there_is_not_is_refused() -> None:
    with pytest.raises(UsageError, match="did you mean"):
        find_criteria("algorithm", ["bufferblaot"])


@pytest.mark.parametrize("kind", ["algorithm", "discipline"])
def test_what_is_not_measured_has_its_reason(kind: str) -> None:
    found = left_out(kind)
    assert found
    assert all(each.why and each.section and each.level in ("MUST", "SHOULD") for each in found)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ('subject = "algorithm"', 'no axis "algorithm"'),
        ('at = { size = "1" }', 'no axis "size"'),
        ("at_least = 0.8, ", "needs at_least or at_most"),
        ('over = "cubic", ', "either minus or over"),
    ],
)
def test_mistakes_of_a_criterion_have_their_place(wrong: str, message: str) -> None:
    text = f"{HEAD}measures = [{ABSOLUTE}]\n"
    match wrong.split(maxsplit=1)[0]:
        case "subject":
            text = text.replace("algorithm = {", "algorithms = {")
        case "at":
            text = text.replace("why =", 'at = { size = "1" }, why =')
        case "at_least":
            text = text.replace(wrong, "")
        case _:
            text = text.replace("at_least", 'over = "cubic", minus = "cubic", at_least')
    with pytest.raises(ScenarioError, match=message):
        parse(text, Path("t.toml"))


def test_metrics_of_a_criterion_are_reported_first() -> None:
    assert scenario(ABSOLUTE, RELATIVE).cases[0].metrics == ("jain", "goodput_bps")


# --- verdicts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.9], "pass"),
        ([0.7], "fail"),
        ([0.9, 0.91, 0.92], "pass"),
        ([0.5, 0.51, 0.52], "fail"),
        ([0.7, 0.8, 0.9], "unclear"),
        ([None], "fail"),
    ],
)
def test_a_verdict_is_of_the_whole_interval(values: list[float | None], verdict: Verdict) -> None:
    """With three runs the interval of 0.7 to 0.9 is ± 0.25: the bound is inside."""
    assert judged(scenario(ABSOLUTE), {"": values}).verdict == verdict


def test_the_worst_point_decides() -> None:
    found = judged(scenario(ABSOLUTE), {"limit 10": [0.95], "limit 50": [0.6]})
    worst = found.measures[0].worst
    assert (found.verdict, worst.value, worst.at["limit"]) == ("fail", 0.6, "50")


def test_the_worst_measure_decides_and_the_first_is_the_figure() -> None:
    of = scenario(ABSOLUTE, '{ metric = "jain", at_most = 0.85, why = "not too fair" }')
    found = judged(of, {"": [0.9]})
    assert found.verdict == "fail"
    assert found.deciding.bound == "at most 0.85"
    assert criterion_result("fair", of, [found], "").value == 0.9


def test_a_ratio_is_to_the_same_point_of_the_other() -> None:
    of = scenario(RELATIVE)
    values: dict[str, list[float | None]] = {"algorithm reno": [3e6], "algorithm cubic": [9e6]}
    ours, theirs = judge(of, result(of, values, "goodput_bps"), [RENO, CUBIC])
    assert ours.verdict == "fail"
    assert ours.measures[0].worst.value == pytest.approx(1 / 3, abs=1e-5)
    assert ours.measures[0].worst.alone == 3e6
    assert theirs.measures[0].worst.value == 1, "CUBIC is as good as itself"


def test_a_difference_is_to_what_the_one_beside_does_to_itself() -> None:
    of = scenario(BESIDE)
    values: dict[str, list[float | None]] = {"algorithm reno": [0.4], "algorithm cubic": [0.35]}
    found = judged(of, values, "starvation")
    assert found.measures[0].worst.value == pytest.approx(0.05)
    assert found.verdict == "pass"


def test_errors_of_both_add_up_in_a_ratio() -> None:
    of = scenario(RELATIVE)
    values: dict[str, list[float | None]] = {
        "algorithm reno": [4e6, 5e6, 6e6],
        "algorithm cubic": [8e6, 10e6, 12e6],
    }
    worst = judged(of, values, "goodput_bps").measures[0].worst
    assert worst.low is not None
    assert worst.high is not None
    # Both have an interval of 49.7 % of their mean.
    assert (worst.high - worst.low) / 2 == pytest.approx(0.5 * 0.497 * 2**0.5, rel=0.01)


@pytest.mark.parametrize("values", [[0.5], [0.9], [0.5, 0.51, 0.52], [None]], ids=str)
def test_a_run_that_cannot_be_trusted_gives_no_verdict(values: list[float | None]) -> None:
    """Neither pass nor fail, however clear the figure is; and the row names the remedy."""
    row = whole(values, busy=True).criteria[0]
    assert row.verdict == "not judged"
    assert "the machine was 99% busy" in row.why
    assert row.why.endswith("use a machine that does nothing else")
    assert whole(values, busy=True, level="MUST").failed_musts == []


def test_a_reference_that_cannot_be_trusted_gives_no_verdict() -> None:
    of = scenario(RELATIVE)
    values: dict[str, list[float | None]] = {"algorithm reno": [9e6], "algorithm cubic": [9e6]}
    runs = result(of, values, "goodput_bps")
    cases = [busy_run(each) if "algorithm cubic" in each.name else each for each in runs.cases]
    found = judge(of, replace(runs, cases=cases), [RENO, CUBIC])
    assert found[0].verdict == "not judged"


def test_without_runs_nothing_is_clear() -> None:
    assert judged(scenario(ABSOLUTE), {"nothing": [0.9]}).verdict == "unclear"
    only_ours: dict[str, list[float | None]] = {"algorithm reno": [3e6]}
    assert judged(scenario(RELATIVE), only_ours, "goodput_bps").verdict == "unclear"


# --- an evaluation as a whole ---------------------------------------------------------------------


def criterion(name: str, verdict: Verdict, **fields: object) -> CriterionResult:
    of = scenario(ABSOLUTE)
    found = judged(of, {"": [0.9, 0.91, 0.92]})
    row = criterion_result(name, of, [found], "ccplay run evaluation/fair")
    return replace(row, verdict=verdict, **fields)


def evaluation(*rows: CriterionResult, subject: str = "reno") -> Evaluation:
    return Evaluation(
        subject=subject, kind="algorithm", against=["cubic"], quick=False, criteria=list(rows)
    )


def test_only_a_must_that_failed_counts_as_failed() -> None:
    should = criterion("b", "fail", level="SHOULD")
    rows = (criterion("a", "fail"), should, criterion("c", "unclear"))
    assert evaluation(*rows).failed_musts == ["a"]


def test_sections_are_in_the_order_of_the_rfc() -> None:
    rows = [criterion(each, "pass", section=each) for each in ("7.10", "5.2", "7.2", "5.1.1")]
    assert [each.section for each in in_order(rows)] == ["5.1.1", "5.2", "7.2", "7.10"]


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [
        ([0.70, 0.71, 0.72], [0.90, 0.91, 0.92], "better"),
        ([0.90, 0.91, 0.92], [0.70, 0.71, 0.72], "worse"),
        ([0.90, 0.91, 0.92], [0.91, 0.92, 0.93], "not clear"),
        ([0.60, 0.80, 1.00], [0.90, 0.91, 0.92], "not clear"),
        ([0.70], [0.90], "better"),
        ([0.90], [0.70], "worse"),
        ([0.90], [0.95], "not clear"),
        ([0.70], [0.90, 0.91, 0.92], "not clear"),
        ([0.70, 0.71, 0.72], [0.90], "not clear"),
    ],
    ids=str,
)
def test_a_change_is_stated_if_the_intervals_allow_it(
    before: list[float | None], now: list[float | None], change: str
) -> None:
    """A single run has no interval: it changed only if the verdict on it did, as one of another."""
    assert [each.change for each in compare(whole(before), whole(now))] == [change]


def test_a_figure_of_a_busy_machine_never_changed() -> None:
    """Neither with intervals that are far apart, nor with a verdict that would be another."""
    pairs: list[tuple[list[float | None], list[float | None]]] = [
        ([0.9, 0.91, 0.92], [0.5, 0.51, 0.52]),
        ([0.9], [0.5]),
    ]
    for before, now in pairs:
        found = list(compare(whole(before), whole(now, busy=True)))
        assert [(each.now, each.change) for each in found] == [("not judged", "not clear")]
        assert whole(now, busy=True).failed_musts == []


def test_any_measure_that_became_worse_is_named() -> None:
    of = scenario(ABSOLUTE, '{ metric = "loss_synchronisation", at_most = 0.5, why = "half" }')

    def found(jain: float, synchronisation: float) -> Evaluation:
        runs = result(of, {"": [jain]})
        cases = [replace(each, loss_synchronisation=synchronisation) for each in runs.cases]
        judged = judge(of, replace(runs, cases=cases), [RENO])
        return evaluation(criterion_result("fair", of, judged, ""))

    (change,) = compare(found(0.7, 0.2), found(0.9, 0.8))
    assert (change.change, change.metric) == ("worse", "loss_synchronisation")
    assert (change.value_before, change.value) == (0.2, 0.8)


def wanting(kind: str, out: Path, *, quick: bool, only: tuple[str, ...] = ()) -> Wanted:
    names = ("reno", "cubic") if kind == "algorithm" else ("codel", "pfifo")
    subject, *against = (subject_of(each, kind) for each in names)
    return Wanted(
        subject=subject,
        against=tuple(against),
        only=only,
        quick=quick,
        out=out,
        options=RunOptions(),
        repeat="",
    )


@pytest.mark.parametrize("kind", ["algorithm", "discipline"])
@pytest.mark.parametrize("quick", [True, False])
def test_the_commands_on_the_page_repeat_the_same_runs(
    kind: str, quick: bool, tmp_path: Path
) -> None:
    """Whole as it is pasted, and with the option that chooses the worst point."""
    wanted = wanting(kind, tmp_path, quick=quick)
    for planned in plan_criteria(wanted):
        _, _, name, *words = shlex.split(command_of(wanted, planned))
        settings = [word for before, word in pairwise(words) if before == "--set"]
        cases = load(find(name), settings).cases
        assert [each.name for each in cases] == [each.name for each in planned.scenario.cases]
        runs = result(planned.scenario, {"": [0.5]})
        found = judge(planned.scenario, runs, planned.subjects)
        row = criterion_result(planned.name, planned.scenario, found, "ccplay run x")
        page = render(replace(evaluation(row), kind=kind), tmp_path)
        option = unescape(page.split("add <code>")[1].split("</code>")[0])
        (chosen,) = shlex.split(option)[1:]
        assert sum(chosen in each.name for each in cases) == 1


def test_evaluations_in_one_directory_share_their_runs(tmp_path: Path) -> None:
    """Those of CUBIC are among those of another algorithm, also of a user's own."""
    reno = wanting("algorithm", tmp_path, quick=False, only=("harm", "unequal-rtt"))
    reno = replace(reno, against=(CUBIC,), own={"reno": "0123"})
    cubic = replace(reno, subject=CUBIC, own={})
    for more, fewer in zip(plan_criteria(reno), plan_criteria(cubic), strict=True):
        made = {each.name: fingerprint(each) for each in more.scenario.cases}
        wanted = {each.name: fingerprint(each) for each in fewer.scenario.cases}
        assert wanted.items() < made.items()


def test_the_page_has_the_verdict_on_each_algorithm(tmp_path: Path) -> None:
    of = scenario(ABSOLUTE)
    found = judge(
        of, result(of, {"algorithm reno": [0.9], "algorithm cubic": [0.5]}), [RENO, CUBIC]
    )
    page = render(evaluation(criterion_result("fair", of, found, "")), tmp_path)
    assert '<span class="v-fail">0.500</span><small>fail</small>' in page
    assert "cubic<small>1 fail</small>" in page
    assert "<p><b>1 pass.</b>" in page


def test_the_page_escapes_names_and_has_every_row(tmp_path: Path) -> None:
    rows = (criterion("a", "pass"), criterion("b", "not evaluated", judged=[], why=HOSTILE))
    found = evaluation(*rows, subject=HOSTILE)
    page = render(replace(found, left_out=LEFT_OUT), tmp_path)
    assert HOSTILE not in page
    assert "Is it fair?" in page
    assert all(each.section in page for each in LEFT_OUT)
    assert "not evaluated here, because" in page


def test_the_page_maps_harm_of_each_pair(tmp_path: Path) -> None:
    of = scenario(BESIDE)
    values: dict[str, list[float | None]] = {"algorithm reno": [0.4], "algorithm cubic": [0.35]}
    found = judge(of, result(of, values, "starvation"), [RENO, CUBIC])
    page = render(evaluation(criterion_result("harm", of, found, "")), tmp_path)
    assert "reno → cubic" in page
    assert "cubic → cubic" in page
    assert page.count(">0.40<") == 2, "one cell a buffer"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cubik"], 'unknown congestion control "cubik"; did you mean "cubic"?\n'),
        (["bbr", "--against", "zzz"], "name your own by its file: zzz.bpf.c\n"),
        (["--discipline", "codl"], 'unknown queue discipline "codl"; did you mean "codel"?\n'),
    ],
    ids=str,
)
def test_an_unknown_name_is_refused_in_the_words_that_were_typed(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", *words]) == 2
    assert capsys.readouterr().err.endswith(said)
