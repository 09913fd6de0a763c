"""Captures in a scenario, from its steps and from the command line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import msgspec
from msgspec.structs import replace

from ccplay.errors import UsageError
from ccplay.model.commands import StartCapture, StopCapture
from ccplay.model.fields import fields_of
from ccplay.model.quoting import did_you_mean, quote
from ccplay.model.topologies import plan
from ccplay.scenario.fields.network import link_problem
from ccplay.scenario.fields.timeline import Draft
from ccplay.scenario.file.mistakes import Mistakes, spell
from ccplay.scenario.step import Step
from ccplay.scenario.values import Case, Scenario

MOST_CAPTURES = 16
LARGEST_CAPTURE = 100_000_000
"""Largest size of a capture in bytes: a stranger's file must not fill the user's disk."""


def captured(scenario: Scenario, links: Sequence[str]) -> Scenario:
    """Return the scenario with captures of these links from the start of every case.

    Raises ``UsageError`` for a link that a case does not have.
    """
    return replace(scenario, cases=tuple(_captured(case, links) for case in scenario.cases))


def _captured(case: Case, links: Sequence[str]) -> Case:
    network = plan(case.build.topology)
    commands = [step.command for step in case.timeline]
    taken = {each.capture for each in commands if isinstance(each, StartCapture)}
    free = (name for number in count(1) if (name := f"c{number}") not in taken)
    steps = []
    for link, name in zip(links, free, strict=False):
        if problem := link_problem(network, link):
            raise UsageError(f"--capture {link}: {problem}")
        steps.append(Step(0.0, StartCapture(link=link, capture=name), place=f"--capture {link}"))
    return replace(case, timeline=(*steps, *case.timeline))


def check_captures(drafts: list[Draft], mistakes: Mistakes) -> None:
    """Record captures with equal names, too large or too many ones, and stops without a start."""
    started: dict[str, Draft] = {}
    starts = [draft for draft in drafts if isinstance(draft.command, StartCapture)]
    if len(starts) > MOST_CAPTURES:
        mistakes.add(starts[MOST_CAPTURES].place, f"more than {MOST_CAPTURES} captures")
    for draft in starts:
        size = getattr(draft.command, "max_bytes", 0)
        if size > LARGEST_CAPTURE:
            field = fields_of(StartCapture)["max_bytes"]
            bounds = msgspec.structs.replace(field, high=LARGEST_CAPTURE).bounds
            mistakes.add(draft.at("max_bytes"), f"must be from {bounds}")
        name = getattr(draft.command, "capture", None)
        if name in started:
            first = spell(started[name].place)
            mistakes.add(draft.at("capture"), f"the name {quote(name)} is taken by {first}")
        elif name is not None:
            started[name] = draft
    for draft in drafts:
        if isinstance(draft.command, StopCapture) and draft.command.capture not in started:
            name = draft.command.capture
            text = f"no capture {quote(name)} is ever started{did_you_mean(name, started)}"
            mistakes.add(draft.at("capture"), text)
