"""The settings that differ between two runs."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ccplay.model.commands import AnyCommand, Build
from ccplay.model.events import Applied
from ccplay.model.traffic import TRAFFIC
from ccplay.scenario import writing
from ccplay.scenario.file.mistakes import spell
from ccplay.state.lab_state import LabState

Settings = Mapping[str, str]
"""Settings of a run as text, by path in a scenario file, or by step and key."""

_NEAR_S = 0.1
"""Seconds by which moments that count as equal may differ, because the start of a command's program
takes a varying time."""
_END_S = 1.0
"""Seconds before the end of a recording in which stops of traffic are part of the end."""
_FILLED_IN = ("src", "dst")
"""Keys for which the lab fills in defaults if a scenario leaves them out."""
_SUBJECTS = (*(kind.name for kind in TRAFFIC), "capture", "host", "link")
_MOMENT = "at"
_ENDS = ("duration", "until", "recorded")
"""Settings of a run's end. A recording has only its length, a run only what its scenario sets."""
_NEAR_LENGTH_S = 0.5
"""Seconds by which the lengths of two recordings that count as equal may differ."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that differs between two runs, A and B."""

    name: str
    """Name of the setting: ``links.bottleneck.queue.limit``, or of a step ``start-flow 1, cc``."""
    a: str | None
    """Value in A; null if A does not have the setting."""
    b: str | None


def of_run(
    build: Build,
    steps: Iterable[tuple[float, str | None, AnyCommand]],
    ends: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings of a network, of its timeline and of its end.

    A step is its moment in seconds, the name that it counts from (None: the start), and its
    command. ``ends`` has settings named in ``_ENDS``.
    """
    found = dict(ends or {})
    found |= _flat(tomllib.loads("\n".join(writing.network(build))), ())
    seen: dict[str, int] = {}
    for at_s, after, command in steps:
        fields = writing.step(Applied(t=at_s, command=command), 0.0)
        del fields[_MOMENT]
        name = " ".join(
            [str(fields.pop("do")), *(str(fields.pop(key)) for key in _SUBJECTS if key in fields)]
        )
        seen[name] = number = seen.get(name, 0) + 1
        name += f" #{number}" if number > 1 else ""
        fields[_MOMENT] = f"{at_s:.3f} s" + (f" after {after}" if after else "")
        found |= {f"{name}, {key}": text for key, text in _flat(fields, ())}
    return found


def of_recording(state: LabState) -> Settings:
    """Return the settings of a recorded session; empty if its network was never ready."""
    ready_at = state.ready_at
    if state.hello is None or state.hello.build is None or ready_at is None:
        return {}
    done = [
        (each.t - each.took_s - ready_at, None, each.command)
        for each in state.applied
        if not each.renewed
        and not (
            str(each.command.__struct_config__.tag).startswith("stop-")
            and each.t > state.now - _END_S
        )
    ]
    return of_run(state.hello.build, done, {"recorded": f"{state.now - ready_at:.1f} s"})


def differing(a: Settings, b: Settings) -> list[Setting]:
    """Return the settings that differ in the order of A, then steps that only A or only B has.

    Such a step is reported as one setting.
    """
    found = []
    lone: dict[str, None] = {}
    steps_a, steps_b = ({name.partition(", ")[0] for name in each} for each in (a, b))
    for name in dict.fromkeys([*a, *b]):
        step, _, key = name.partition(", ")
        if name in _ENDS and (name not in a or name not in b):
            continue
        if step not in steps_a or step not in steps_b:
            lone[step] = None
        elif not _alike(key or name, a.get(name), b.get(name)):
            found.append(Setting(name=name, a=a.get(name), b=b.get(name)))
    return found + [Setting(name=step, a=_whole(step, a), b=_whole(step, b)) for step in lone]


def _alike(key: str, one: str | None, other: str | None) -> bool:
    if key in _FILLED_IN and (one is None or other is None):
        return True
    if key == _MOMENT and one is not None and other is not None:
        (t, _, after), (u, _, behind) = one.partition(" s"), other.partition(" s")
        return after == behind and abs(float(t) - float(u)) < _NEAR_S
    if key == "recorded" and one is not None and other is not None:
        lengths = [float(each.removesuffix(" s")) for each in (one, other)]
        return abs(lengths[0] - lengths[1]) <= _NEAR_LENGTH_S
    return one == other


def _whole(step: str, settings: Settings) -> str | None:
    """Return a step or the value of a setting as text; None if missing."""
    parts = {
        name.removeprefix(step).removeprefix(", "): text
        for name, text in settings.items()
        if name == step or name.startswith(f"{step}, ")
    }
    if not parts:
        return None
    return ", ".join(f"{key} {text}".strip() for key, text in parts.items())


def _flat(value: Any, place: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, (*place, key))
    elif isinstance(value, str):
        yield spell(place), value
    else:
        yield spell(place), msgspec.json.encode(value).decode()
