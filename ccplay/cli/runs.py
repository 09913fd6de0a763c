"""Reads the run directories and recordings that a command line names."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from ccplay.analysis.results import Result, checkpoint
from ccplay.analysis.summary import machine, summarise
from ccplay.errors import CcplayError, UsageError
from ccplay.experiment.plan import slug_of, usual_metrics
from ccplay.experiment.store import (
    SCENARIO,
    fingerprint_of,
    read_run_directory,
    recording_of,
    scenario_of,
)
from ccplay.report.comparison import settings_of_recording, settings_of_run
from ccplay.report.data.material import Material, Run, Settings, combined, of_results
from ccplay.scenario import writing
from ccplay.scenario.reading import load
from ccplay.session.archive import read_recording
from ccplay.state.lab_state import LabState
from ccplay.stream import wire
from ccplay.units import write_seconds


def gather(paths: Sequence[Path], *, outline: bool = False) -> Material:
    """Return the runs of run directories and recordings, several as one experiment.

    ``outline`` leaves out the measurements of a directory's single runs, but not the statistics.
    Raises ``RecordingError`` for an unreadable path, ``UsageError`` for one without runs.
    """
    found = [
        _of_directory(path, outline) if path.is_dir() else _of_recording(path) for path in paths
    ]
    for each, path in zip(found, paths, strict=True):
        if not each.runs:
            raise UsageError(f"{path} has no finished run yet")
    return found[0] if len(found) == 1 else combined(found)


def _of_directory(path: Path, outline: bool) -> Material:
    result = read_run_directory(path, outline=outline)
    text = scenario_of(path)
    about, about_cases, repeats = _of_scenario(path / SCENARIO)
    runs = []
    for each in result.cases:
        recording = recording_of(path, each)
        # An empty recording was interrupted before its first line.
        kept = recording if recording is not None and recording.stat().st_size else None
        runs.append(Run(each, kept, f"{slug_of(each.name)}-{each.repeat}"))
    return Material(
        name=path.resolve().name,
        title=result.title or result.scenario,
        about=about,
        result=result,
        runs=_distinct(runs),
        scenario_text=text,
        command=_command(result, repeats),
        about_cases=about_cases,
        made_of=_made_of(path, result),
    )


def _made_of(path: Path, result: Result) -> dict[str, Settings]:
    """Return the settings of each case by name, from its first run with a fingerprint."""
    found: dict[str, Settings] = {}
    for run in result.cases:
        made = None if run.name in found else fingerprint_of(path, run)
        if made is not None:
            steps = [(each.at_s, each.after, each.command) for each in made.timeline]
            ends = {"duration": write_seconds(made.duration_s), "until": made.until}
            found[run.name] = settings_of_run(made.build, steps, ends)
    return found


def _of_scenario(path: Path) -> tuple[str, dict[str, str], int]:
    """Return ``about`` of a scenario and of its cases where it differs, and the most repeats.

    All are empty if the scenario can't be read.
    """
    try:
        loaded = load(path)
    except CcplayError:
        return "", {}, 0
    about_cases = {case.name: case.about for case in loaded.cases if case.about != loaded.about}
    return loaded.about, about_cases, max(case.repeats for case in loaded.cases)


def _command(result: Result, repeats: int) -> str:
    """Return the command that repeats these runs."""
    words = ["ccplay", "run", f"{result.scenario}.toml", "--out", "results"]
    most = max((each.repeat for each in result.cases), default=1)
    if repeats and most != repeats:
        words += ["--repeats", str(most)]
    return shlex.join(words)


def _of_recording(path: Path) -> Material:
    state = read_recording(path)
    name = wire.printable(path.stem)
    title = (state.hello.title if state.hello else "") or name
    measured = summarise(state, name, checkpoint=checkpoint(state))
    run = Run(measured, path, slug_of(name))
    return Material(
        name=name,
        title=title,
        about="",
        result=of_results([measured], title=title, machine=machine(state), usual=usual_metrics),
        runs=[run],
        scenario_text=_written(state, title),
        command=shlex.join(["ccplay", "run", f"{name}.toml"]),
        about_cases={},
        made_of={name: settings_of_recording(state)},
    )


def _written(state: LabState, name: str) -> str | None:
    try:
        return writing.write(state, title=name)
    except CcplayError:
        return None


def _distinct(runs: Sequence[Run]) -> list[Run]:
    """Return the runs with unique slugs."""
    seen: dict[str, int] = {}
    distinct = []
    for run in runs:
        number = seen[run.slug] = seen.get(run.slug, 0) + 1
        slug = f"{run.slug}.{number}" if number > 1 else run.slug
        distinct.append(Run(run.result, run.recording, slug))
    return distinct
