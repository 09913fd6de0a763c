"""What a run was made of: all that decides what happens in it, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from ccplay.model.commands import AnyCommand, Build
from ccplay.scenario.file.mistakes import spell
from ccplay.scenario.values import Case


class RanStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command and its moment; see ``scenario.Step``."""

    at_s: float
    after: str | None = None
    command: AnyCommand


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """A case as it was played; its names, figures and expectations change nothing of that."""

    build: Build
    timeline: list[RanStep]
    until: str
    duration_s: float

    @property
    def sha256(self) -> str:
        """The digest of its JSON: two runs of one digest are repeats of the same."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()


def ran(case: Case) -> Ran:
    """Return what a case is made of. ``case`` is a repeat as it is played."""
    return Ran(
        build=case.build,
        timeline=[
            RanStep(at_s=step.at_s, after=step.after, command=step.command)
            for step in case.timeline
        ],
        until=case.until,
        duration_s=case.duration_s,
    )


def difference(before: Ran, now: Ran) -> str:
    """Say the first thing in which two differ: ``build.seed was 1, is 2``."""
    first = next(_differences(msgspec.to_builtins(before), msgspec.to_builtins(now), ()), None)
    return first or "the order of its links or hosts has changed"


def _differences(before: Any, now: Any, place: tuple[str | int, ...]) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [*before, *(key for key in now if key not in before)]:
            yield from _differences(before.get(key), now.get(key), (*place, key))
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for index, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from _differences(one, other, (*place, index))
    elif before != now:
        # A file has no table called build: what it holds stands at the top.
        where = spell(place[1:] if place[0] == "build" else place)
        yield f"{where} was {_shown(before)}, is {_shown(now)}"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"{len(value)} steps"
    text = "not said" if value is None else msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else text[:57] + "..."
