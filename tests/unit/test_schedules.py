"""What is run, how often and in which order; how long it will still take."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from ccplay.analysis.results import CaseResult
from ccplay.analysis.summary import summarise
from ccplay.experiment.plan import FixedSchedule, Goal, PrecisionSchedule, plan_runs, slugs
from ccplay.experiment.runner import Forecast
from ccplay.report.terminal.progress_display import roughly
from ccplay.scenario.reading import parse
from ccplay.scenario.values import Scenario
from ccplay.state.lab_state import LabState

TEXT = """
duration = "20 s"
topology.kind = "linear"
timeline = [{ at = "0 s", do = "start-flow" }]
"""


def scenario(*cases: str, repeats: int = 1) -> Scenario:
    """Return a scenario with cases of these names."""
    own = "".join(f'[[case]]\nname = "{name}"\n' for name in cases)
    return parse(f"repeats = {repeats}\n{TEXT}{own}", Path("t.toml"))


def outcome(name: str, repeat: int, jain: float | None, error: str = "") -> CaseResult:
    """Return a run that measured nothing but its fairness."""
    result = summarise(LabState(), name, errors=(error,) if error else ())
    return replace(result, repeat=repeat, jain=jain)


def until_sure(*cases: str, share: float = 0.1, most: int = 20) -> PrecisionSchedule:
    goal = Goal(share, dict.fromkeys(cases, "jain"), most)
    return PrecisionSchedule(scenario(*cases).cases, goal, ())


def started(schedule: FixedSchedule | PrecisionSchedule) -> list[tuple[str, int]]:
    """Return all that may be started before another outcome is known."""
    found = []
    while (run := schedule.next()) is not None:
        found.append(run.key)
    return found


def test_every_case_is_run_once_before_any_is_run_again() -> None:
    """What is broken off is balanced then."""
    runs = plan_runs(scenario("a", "b", repeats=2))
    assert [run.key for run in runs] == [("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    assert [str(run) for run in runs[:2]] == ["a, run 1", "b, run 1"]


def test_cases_take_turns_at_each_point_of_a_matrix() -> None:
    """Or all that is heavy would run side by side."""
    matrix = '[matrix.cc]\npath = "timeline.0.cc"\nvalues = ["reno", "cubic"]\n'
    cases = '[[case]]\nname = "alone"\n[[case]]\nname = "loss"\n'
    runs = plan_runs(parse(TEXT + matrix + cases, Path("t.toml")))
    assert [run.case.name for run in runs] == [
        "alone, cc reno",
        "loss, cc reno",
        "alone, cc cubic",
        "loss, cc cubic",
    ]


def test_finished_runs_are_not_planned_again() -> None:
    schedule = FixedSchedule(plan_runs(scenario("a", "b", repeats=2)), {("a", 1), ("b", 2)})
    assert [case.name for case in schedule.remaining_cases()] == ["b", "a"]
    assert started(schedule) == [("b", 1), ("a", 2)]
    assert schedule.remaining_cases() == []


def test_names_that_look_alike_get_files_of_their_own() -> None:
    found = slugs(scenario("Reno, 20", "reno 20", "reno-20", "…", "x" * 100).cases)
    assert list(found.values()) == ["reno-20", "reno-20.2", "reno-20.3", "case", "x" * 60]


def test_a_case_is_repeated_until_its_mean_is_sure() -> None:
    schedule = until_sure("a", "b")
    assert started(schedule) == [("a", 1), ("b", 1), ("a", 2), ("b", 2), ("a", 3), ("b", 3)]
    for repeat, value in enumerate((1.0, 1.01, 0.99), 1):
        schedule.add_result(outcome("a", repeat, value))
    assert started(schedule) == []
    for repeat, value in enumerate((1.0, 1.2, 0.9), 1):
        schedule.add_result(outcome("b", repeat, value))
    # Its interval is ± 38 %: by the root of n that takes 44, but at most twice of what it has.
    assert started(schedule) == [("b", 4), ("b", 5), ("b", 6)]
    assert list(schedule.imprecise()) == ["b"]


def test_it_ends_at_the_most_repeats_and_reports_what_is_not_sure() -> None:
    schedule = until_sure("a", most=4)
    for repeat in (1, 2, 3, 4):
        assert (run := schedule.next()) is not None
        assert run.repeat == repeat
        schedule.add_result(outcome("a", repeat, float(repeat)))
    assert schedule.next() is None
    known = schedule.imprecise()["a"]
    assert known is not None
    assert (known.n, known.mean) == (4, 2.5)


def test_what_three_runs_could_not_measure_is_given_up() -> None:
    schedule = until_sure("a")
    for run in started(schedule):
        schedule.add_result(outcome(*run, None))
    assert started(schedule) == []
    assert schedule.imprecise() == {"a": None}


def test_a_run_in_which_something_failed_counts_for_nothing() -> None:
    schedule = until_sure("a")
    for repeat in (1, 2):
        schedule.add_result(outcome("a", repeat, 1.0))
    schedule.add_result(outcome("a", 3, 1.0, error="flow 1 died"))
    known = schedule.imprecise()["a"]
    assert known is not None
    assert known.n == 2


def test_finished_runs_count_when_an_experiment_resumes() -> None:
    goal = Goal(0.1, {"a": "jain"}, 20)
    finished = [outcome("a", repeat, 1.0) for repeat in (1, 3)]
    schedule = PrecisionSchedule(scenario("a").cases, goal, finished)
    assert started(schedule) == [("a", 2)]
    schedule.add_result(outcome("a", 2, 1.0))
    assert schedule.imprecise() == {}


def test_the_time_left_is_that_of_the_longest_job() -> None:
    case = scenario("a").cases[0]
    forecast = Forecast()
    # 20 s by its file, and a lab's start and end.
    assert forecast.left([], [case], 1) == pytest.approx(22)
    forecast.learn(case, 9)
    forecast.learn(case, 11)
    assert forecast.left([(case, 4.0)], [case] * 3, 2) == pytest.approx(20)
    assert forecast.left([(case, 4.0)], [], 2) == pytest.approx(6)
    assert forecast.left([], [], 1) == 0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "a few seconds left"),
        (52, "about 50 s left"),
        (170, "about 3 min left"),
        (7400, "about 2 h 03 min left"),
    ],
)
def test_a_time_left_is_reported_no_more_exactly_than_it_is_known(
    seconds: float, words: str
) -> None:
    assert roughly(seconds) == words
