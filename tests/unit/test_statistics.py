"""Mean, spread and confidence intervals agree with published tables."""

import random

import pytest

from ccplay.analysis.statistics import machine_effects, statistic, student_t


@pytest.mark.parametrize(
    ("freedom", "t"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (10, 2.228), (30, 2.042)],
)
def test_t_is_that_of_the_tables(freedom: int, t: float) -> None:
    assert student_t(freedom) == pytest.approx(t, abs=0.0006)


def test_t_of_many_is_the_normal_distributions() -> None:
    assert student_t(100_000) == pytest.approx(1.96, abs=0.001)


def test_no_freedom_has_no_t() -> None:
    with pytest.raises(ValueError, match="degree of freedom"):
        student_t(0)


def test_an_interval_by_hand() -> None:
    """The interval of 2, 4 and 6 (mean 4, sd 2) is 4 +/- 4.303 times 2 / sqrt(3)."""
    result = statistic([2, 4, 6])
    assert (result.n, result.mean, result.sd) == (3, 4, 2)
    assert result.low == pytest.approx(4 - 4.968, abs=0.001)
    assert result.half_width == pytest.approx(4.968, abs=0.001)


def test_one_value_shows_no_spread() -> None:
    result = statistic([7.5])
    assert (result.mean, result.sd, result.low, result.half_width) == (7.5, None, None, None)


# --- whether machines differ: a difference is found if it is there, and rarely otherwise ----------


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
    assert str(found).startswith("goodput depends on the machine: a +")


def test_means_are_shares_of_the_case_with_students_interval() -> None:
    values = {"a": [90.0, 100.0, 110.0], "b": [290.0, 300.0, 310.0]}
    measured = [("one", machine, each) for machine, own in values.items() for each in own]
    (found,) = machine_effects({"x": measured})
    assert found.machines == {"a": -0.5, "b": 0.5}
    half = statistic([value / 200 for value in values["b"]]).half_width
    assert found.half_widths["b"] == pytest.approx(half, abs=1e-6)
    said = "b +50.00% ± 12.42%, a -50.00% ± 12.42% of the mean"
    assert str(found) == f"x depends on the machine: {said}"


def test_machines_that_do_not_differ_are_rarely_said_to() -> None:
    effects = machine_effects({f"metric {seed}": runs(0.0, seed) for seed in range(300)})
    # Two intervals of 95 % are apart in about one of 200 pairs; more than 9 in 300 is below 1e-4.
    assert sum(each.differs for each in effects) <= 9
    assert "does not differ clearly" in str(effects[0])


def test_cases_that_each_ran_on_one_machine_only_report_nothing() -> None:
    """What differs may be the case or the machine."""
    apart = [("one", "a", 1.0), ("one", "a", 1.1), ("two", "b", 2.0), ("two", "b", 2.1)]
    assert machine_effects({"x": apart}) == []
    assert machine_effects({"x": [("one", "a", 1.0), ("one", "a", 2.0)]}) == []
    assert not machine_effects({"x": [("one", "a", 1.0), ("one", "b", 2.0)]})[0].differs
