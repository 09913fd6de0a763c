"""The fingerprint of a run: every setting that determines what happens in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from ccplay.model.commands import AnyCommand, Build
from ccplay.scenario.file.mistakes import spell
from ccplay.scenario.values import Case


class FingerprintStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command and its moment, as in ``scenario.Step``."""

    at_s: float
    after: str | None = None
    command: AnyCommand


class Fingerprint(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a case as played, without names, metrics and expectations."""

    build: Build
    timeline: list[FingerprintStep]
    until: str
    duration_s: float

    @property
    def sha256(self) -> str:
        """Digest of the fingerprint's JSON; runs with equal digests are repeats of each other."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()


def fingerprint(case: Case) -> Fingerprint:
    """Return the fingerprint of ``case``, a repeat as played."""
    return Fingerprint(
        build=case.build,
        timeline=[
            FingerprintStep(at_s=step.at_s, after=step.after, command=step.command)
            for step in case.timeline
        ],
        until=case.until,
        duration_s=case.duration_s,
    )


def difference(before: Fingerprint, now: Fingerprint) -> str:
    """Return the first difference as text: ``build.seed was 1, is 2``."""
    first = next(_differences(msgspec.to_builtins(before), msgspec.to_builtins(now), ()), None)
    return first or "the order of links or hosts changed"


def _differences(before: Any, now: Any, place: tuple[str | int, ...]) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [*before, *(key for key in now if key not in before)]:
            yield from _differences(before.get(key), now.get(key), (*place, key))
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for index, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from _differences(one, other, (*place, index))
    elif before != now:
        # A file has no table "build": its keys are at the top level.
        where = spell(place[1:] if place[0] == "build" else place)
        yield f"{where} was {_shown(before)}, is {_shown(now)}"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"{len(value)} steps"
    text = "not given" if value is None else msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else text[:57] + "..."
