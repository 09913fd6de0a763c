"""Whether machines differ: the test finds a difference that is there, and none that is not."""

from __future__ import annotations

import random

import pytest

from ccplay.analysis.statistics import f_tail, machine_effects, student_t


@pytest.mark.parametrize(
    ("f", "one", "other", "p"),
    [(4.10, 2, 10, 0.05), (2.71, 5, 20, 0.05), (10.04, 1, 10, 0.01), (0.0, 3, 7, 1.0)],
)
def test_f_is_that_of_the_tables(f: float, one: int, other: int, p: float) -> None:
    assert f_tail(f, one, other) == pytest.approx(p, rel=0.01)


@pytest.mark.parametrize("freedom", [1, 2, 9, 30, 500])
def test_f_of_one_degree_is_the_square_of_students_t(freedom: int) -> None:
    assert f_tail(student_t(freedom) ** 2, 1, freedom) == pytest.approx(0.05, rel=1e-6)


def runs(effect: float, seed: int = 1, repeats: int = 6) -> list[tuple[str, str, float]]:
    """Return runs of cases a factor of hundred apart, on two machines, with 1 % of noise."""
    noise = random.Random(seed)
    return [
        (case, machine, mean * (1 + (effect if machine == "b" else 0.0) + noise.gauss(0, 0.01)))
        for case, mean in (("slow", 1e5), ("fast", 1e7))
        for number in range(repeats)
        # Not balanced: the fast case has been on machine b more often.
        for machine in ["b" if (number + (case == "fast")) % 3 else "a"]
    ]


def test_a_machine_that_is_slower_is_found_across_cases() -> None:
    (found,) = machine_effects({"goodput": runs(-0.05)})
    assert found.differs
    assert found.machines["b"] - found.machines["a"] == pytest.approx(-0.05, abs=0.015)
    assert found.freedom == (1, 12 - 2 - 1)
    assert str(found).startswith("goodput depends on the machine: a +")


def test_machines_that_do_not_differ_are_rarely_said_to() -> None:
    said = sum(machine_effects({"x": runs(0.0, seed)})[0].differs for seed in range(300))
    # 5 % of 300 is 15; more than 32 has a probability below 1e-4.
    assert 2 <= said <= 32


def test_many_metrics_share_the_level() -> None:
    effects = machine_effects({f"metric {seed}": runs(0.0, seed) for seed in range(300)})
    assert sum(each.differs for each in effects) <= 2


def test_cases_that_each_ran_on_one_machine_only_report_nothing() -> None:
    """What differs may be the case or the machine."""
    apart = [("one", "a", 1.0), ("one", "a", 1.1), ("two", "b", 2.0), ("two", "b", 2.1)]
    assert machine_effects({"x": apart}) == []
    assert machine_effects({"x": [("one", "a", 1.0), ("one", "a", 2.0)]}) == []
