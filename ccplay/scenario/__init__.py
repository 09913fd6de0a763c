"""Scenario files: a network, and what happens on it when, as data that people can read.

``scenarios/README.md`` has the format. ``load(find("bufferbloat"))`` reads one; every mistake in
it is refused, with its place, before anything starts.
"""

from ccplay.scenario.file.library import find, shipped
from ccplay.scenario.file.reading import load
from ccplay.scenario.repeats import repeated
from ccplay.scenario.rules.captures import captured
from ccplay.scenario.rules.own_algorithms import admit, driven, rerun
from ccplay.scenario.rules.support import check_against
from ccplay.scenario.values import Case, Expectation, Published, Scenario, Step

__all__ = [
    "Case",
    "Expectation",
    "Published",
    "Scenario",
    "Step",
    "admit",
    "captured",
    "check_against",
    "driven",
    "find",
    "load",
    "repeated",
    "rerun",
    "shipped",
]
