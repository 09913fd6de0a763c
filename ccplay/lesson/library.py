"""Finds lessons: shipped ones by their names, others by their paths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ccplay.analysis.metrics import check_metrics
from ccplay.assets import assets
from ccplay.errors import ScenarioError
from ccplay.model.quoting import did_you_mean, quote
from ccplay.scenario.file.library import find as find_scenario
from ccplay.scenario.file.reading import load
from ccplay.scenario.lesson.values import Lesson
from ccplay.scenario.values import Case, Expectation, Scenario

ORDER = (
    *("slow-start", "aimd", "bufferbloat", "cubic-beside-reno", "loss-is-not-congestion"),
    *("delay-based", "aqm", "ecn-dctcp", "rtt-unfairness", "your-own-algorithm"),
)
"""Names of the shipped lessons, in the order in which they build on each other."""


class Opened(msgspec.Struct, frozen=True):
    """A lesson with the scenario of its file."""

    scenario: Scenario
    lesson: Lesson

    @property
    def name(self) -> str:
        """Name of the file without its suffix."""
        return self.scenario.name

    @property
    def case(self) -> Case:
        """The lesson's network as a case, with the steps of all pages as its timeline."""
        steps = tuple(step for page in self.lesson.pages for step in page.steps)
        return replace(self.scenario.cases[0], timeline=steps)

    @property
    def played(self) -> Scenario:
        """The scenario with the steps of the lesson, to check what it needs of a kernel."""
        return replace(self.scenario, cases=(self.case,))


def shipped() -> dict[str, Path]:
    """Return the shipped lessons, by name."""
    there = {path.stem: path for path in sorted(assets("scenarios").glob("lessons/*.toml"))}
    order = [*(name for name in ORDER if name in there), *(n for n in there if n not in ORDER)]
    return {name: there[name] for name in order}


def open_lesson(name_or_path: str, settings: tuple[str, ...] = ()) -> Opened:
    """Read a shipped lesson by its name, or a lesson from a file.

    Raises ``ScenarioError`` if there is none, and with every mistake in the file.
    """
    known = shipped()
    path = known.get(name_or_path)
    if path is None:
        try:
            path = find_scenario(name_or_path)
        except ScenarioError:
            hint = did_you_mean(name_or_path, known)
            text = f"no lesson {quote(name_or_path)}: neither a file nor one that comes with ccplay"
            raise ScenarioError(f"{text}{hint}") from None
    scenario = load(path, settings)
    if scenario.lesson is None:
        raise ScenarioError(
            f"{path.name} has no lesson: add [[lesson.pages]] (see scenarios/README.md)"
        )
    opened = Opened(scenario, scenario.lesson)
    _check_metrics(opened)
    return opened


def _check_metrics(opened: Opened) -> None:
    """Raise ``ScenarioError`` if a measure names a metric that no run has."""
    named = tuple(_named(opened.lesson))
    case = replace(opened.case, metrics=(), published=(), expect=named)
    check_metrics(replace(opened.scenario, cases=(case,)))


def _named(lesson: Lesson) -> Iterator[Expectation]:
    for number, page in enumerate(lesson.pages):
        for name, measure in page.measures.items():
            if not measure.take:
                place = f"lesson.pages[{number}].measures.{name}"
                for path in {measure.metric, measure.relative_to} - {"", *page.measures}:
                    yield Expectation(path, None, None, "", "", place)
