"""Mean, spread and confidence intervals agree with published tables."""

import pytest

from ccplay.analysis.statistics import statistic, student_t


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
