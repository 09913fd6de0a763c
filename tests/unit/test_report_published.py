"""Published values are cited, and compared with the measured ones in a sentence."""

import io
import re

import pytest
from msgspec.structs import replace
from rich.console import Console

from ccplay.analysis.results import Result
from ccplay.report.data.findings import agreement, citations
from ccplay.report.terminal import terminal_tables as tables
from ccplay.scenario.library import find, shipped
from ccplay.scenario.reading import load
from tests.unit.reports import PUBLISHED, experiment

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
    Console(file=out, width=120).print(*tables.family_tables(cited(SOURCE, SOURCE), 120))
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
