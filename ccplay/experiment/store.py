"""A run directory: every finished run in its own file, so that none is lost or run twice.

DIR/scenario.toml        the file as it was run
DIR/result.json          the ``Result``, rewritten at intervals and at the end
DIR/index.parquet        a row for each run, for data frames; only with many runs
DIR/runs/SLUG-2.ccplay   the recording of a case's second repeat
DIR/runs/SLUG-2.json     its ``Kept``; written last, so it exists only if the run is finished
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self, TypeVar

import msgspec

from ccplay.analysis import results
from ccplay.analysis.machines import MachineEffect
from ccplay.analysis.results import CaseResult, CaseStatistics, Machine, Result
from ccplay.analysis.summary import summarise
from ccplay.errors import RecordingError, UsageError
from ccplay.experiment.files import Folder
from ccplay.experiment.fingerprint import Fingerprint, difference, fingerprint
from ccplay.experiment.grouping import extended
from ccplay.experiment.index import indexed
from ccplay.experiment.plan import Run, slugs
from ccplay.files.reading import open_regular
from ccplay.model.quoting import quote
from ccplay.scenario.values import Scenario
from ccplay.state.kinds import RunResult
from ccplay.state.lab_state import LabState
from ccplay.stream import wire

FORMAT = 1
"""Version of the format of ``Kept``."""

RUNS = "runs"
RESULT = "result.json"
INDEX = "index.parquet"
INDEXED_FROM = 100
"""Least number of runs for which a directory has an index."""
_PARTS = 8
"""Number of times, roughly, that the result is rewritten until the number of runs has doubled."""
SCENARIO = "scenario.toml"
_IDENTITY = ".experiment"
_T = TypeVar("_T", bound=msgspec.Struct)
_OTHER = "keep this one in another directory (--out)"


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A finished run."""

    format: int = FORMAT
    sha256: str
    """Digest of ``ran``."""
    ran: Fingerprint
    machine: Machine | None
    took_s: float
    """Wall-clock seconds, start and end of the lab included."""
    result: CaseResult
    discarded: list[CaseResult] = []


class Store:
    """A run directory written by this experiment alone; used with ``with``."""

    def __init__(self, path: Path, scenario: Scenario) -> None:
        self.scenario = scenario
        """The whole scenario: a directory may have more cases than are run this time."""
        self._path = path
        self._slugs = slugs(scenario.cases)
        self._since = 0
        self._open = contextlib.ExitStack()
        self.finished: dict[tuple[str, int], Kept] = {}
        """The finished runs."""

    def __enter__(self) -> Self:
        """Open the directory, created if missing.

        Raises ``UsageError`` if it is no run directory, or one of another experiment.
        """
        with contextlib.ExitStack() as opened:
            self._folder = Folder.make(self._path)
            opened.callback(self._folder.close)
            self._folder.lock()
            self._claim()
            self._runs = self._folder.folder(RUNS)
            opened.callback(self._runs.close)
            self._recall()
            self._folder.write(SCENARIO, _as_run(self.scenario))
            self._open = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def recording(self, run: Run) -> Path:
        """Return the path of a run's recording; delete that of an unfinished attempt."""
        return self._runs.free(f"{self._stem(run)}.ccplay")

    def recording_name(self, run: Run) -> str:
        """Return the path of a run's recording as in ``CaseResult.recording``."""
        return f"{RUNS}/{self._stem(run)}.ccplay"

    def identity(self) -> str:
        """Return the permanent name of this experiment on other machines: 16 hexadecimal digits."""
        content = (self._folder.read(_IDENTITY) or b"").decode(errors="replace").strip()
        if not re.fullmatch("[0-9a-f]{16}", content):
            content = secrets.token_hex(8)
            self._folder.write(_IDENTITY, f"{content}\n".encode())
        return content

    def keep(
        self,
        run: Run,
        result: CaseResult,
        machine: Machine | None,
        took_s: float,
        discarded: list[CaseResult],
    ) -> None:
        """Keep a finished run. Raises ``RecordingError``."""
        made_of = fingerprint(run.played)
        kept = Kept(
            sha256=made_of.sha256,
            ran=made_of,
            machine=machine,
            took_s=round(took_s, 3),
            result=result,
            discarded=discarded,
        )
        self._runs.settle(f"{self._stem(run)}.ccplay")
        self._runs.write(f"{self._stem(run)}.json", msgspec.json.encode(kept) + b"\n")
        self.finished[run.key] = kept
        self._since += 1

    def is_due(self) -> bool:
        """Return whether enough runs were kept since the result was written to rewrite it.

        Rewriting it after every run would take time quadratic in their number. A reader of the
        directory completes the result from the runs' own files.
        """
        return self._since >= len(self.finished) / _PARTS

    def sum_up(self, result: Result) -> None:
        """Rewrite the result. Raises ``RecordingError``."""
        self._folder.write(RESULT, msgspec.json.encode(result) + b"\n")
        self._since = 0

    def index(self, result: Result) -> None:
        """Write a row for each run, if there are many and pyarrow is installed."""
        if len(result.cases) >= INDEXED_FROM and (content := indexed(result)) is not None:
            self._folder.write(INDEX, content)

    def _stem(self, run: Run) -> str:
        return f"{self._slugs[run.case.name]}-{run.repeat}"

    def _claim(self) -> None:
        """Claim an empty directory; refuse one that is no run directory of this scenario."""
        name = self.scenario.name
        content = self._folder.read(RESULT)
        if content is not None:
            earlier = _decode(content, Result, self._path / RESULT)
            if earlier.scenario != name:
                raise UsageError(
                    f"{self._path} has runs of {quote(earlier.scenario)}, not of {quote(name)}: "
                    f"{_OTHER}"
                )
            return
        if there := [each for each in self._folder.names() if not each.startswith(f".{RESULT}")]:
            raise UsageError(
                f"{self._path} is not a run directory (it contains {quote(there[0])}): "
                "name a new or an empty one (--out)"
            )
        # Written before any other file, because it claims the directory.
        empty = Result(scenario=name, title=self.scenario.title, machine=None, cases=[])
        self.sum_up(empty)

    def _recall(self) -> None:
        """Find the finished runs and check that they belong to this scenario."""
        cases = {case.name: case for case in self.scenario.cases}
        for name in self._runs.names():
            if not name.endswith(".json") or name.startswith("."):
                continue
            kept = _decode(self._runs.read(name) or b"", Kept, self._path / RUNS / name)
            result = kept.result
            what = f"{self._path}: case {quote(result.name)}"
            if result.name not in cases:
                raise UsageError(f"{what} is no longer in {self.scenario.path.name}: {_OTHER}")
            run = Run(cases[result.name], result.repeat)
            now = fingerprint(run.played)
            if kept.sha256 != now.sha256:
                raise UsageError(
                    f"{what}, run {run.repeat} had other settings: {difference(kept.ran, now)}; "
                    f"undo the change, or {_OTHER}"
                )
            self.finished[run.key] = kept


def _as_run(scenario: Scenario) -> bytes:
    """Return the scenario file, with every ``--set`` as a comment at the top."""
    try:
        text = scenario.text.encode() if scenario.text else scenario.path.read_bytes()
    except OSError as error:
        raise RecordingError(f"{scenario.path}: {error.strerror}") from None
    header = "".join(f"# as run: --set {wire.printable(each)}\n" for each in scenario.settings)
    return header.encode() + text


class _Outline(msgspec.Struct, frozen=True, kw_only=True):
    """A ``Result`` without what each run measured, which is most of its file."""

    format: int = results.FORMAT
    scenario: str
    title: str
    machine: Machine | None
    cases: list[RunResult]
    statistics: list[CaseStatistics] = []
    machines: list[Machine] = []
    machine_effects: list[MachineEffect] = []


def read_run_directory(path: Path, *, outline: bool = False) -> Result:
    """Return the result of a run directory, finished or not.

    An ``outline`` has statistics, but only the identity of each run, so that thousands of runs take
    little memory. Raises ``RecordingError`` if ``path`` is no readable run directory.
    """
    try:
        with open_regular(path / RESULT) as file:
            content = file.read()
    except FileNotFoundError:
        raise RecordingError(
            f"{path} is not a run directory: it has no {RESULT} "
            "(ccplay run SCENARIO --out DIR makes one)"
        ) from None
    except OSError as error:
        raise RecordingError(f"{path / RESULT}: {error.strerror}") from None
    # Runs that are not in the file yet count in the statistics, which then need all runs.
    if outline and (found := _outlined(content, path)) is not None:
        return found
    result = _decode(content, Result, path / RESULT)
    _check_format(result.format, path)
    return extended(result, _later(path, result.cases))


def _outlined(content: bytes, path: Path) -> Result | None:
    """Return the outline of a result; None if runs were finished since it was written."""
    found = _decode(content, _Outline, path / RESULT)
    _check_format(found.format, path)
    if next(_later(path, found.cases), None) is not None:
        return None
    blank = summarise(LabState(), "")
    names = RunResult.__struct_fields__
    runs = [
        msgspec.structs.replace(blank, **{name: getattr(each, name) for name in names})
        for each in found.cases
    ]
    return Result(
        **{name: getattr(found, name) for name in _Outline.__struct_fields__ if name != "cases"},
        cases=runs,
    )


def _check_format(number: int, path: Path) -> None:
    if number > results.FORMAT:
        raise RecordingError(
            f"{path / RESULT}: format {number}; this ccplay reads up to {results.FORMAT}: "
            "update ccplay"
        )


def _later(path: Path, runs: Iterable[RunResult]) -> Iterator[tuple[CaseResult, Machine | None]]:
    """Yield the finished runs that are not in the result yet."""
    known = {posixpath.splitext((run.recording or "").rpartition("/")[2])[0] for run in runs}
    with contextlib.suppress(FileNotFoundError), os.scandir(path / RUNS) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            stem, ending = os.path.splitext(entry.name)  # noqa: PTH122 - thousands of them
            if ending == ".json" and stem not in known and not stem.startswith("."):
                with open_regular(Path(entry.path)) as file:
                    kept = _decode(file.read(), Kept, Path(entry.path))
                yield kept.result, kept.machine


def recording_of(path: Path, run: CaseResult) -> Path | None:
    """Return the recording of a run in the directory ``path``; None if there is none.

    A stranger's directory may name files elsewhere: no file outside is ever returned.
    """
    found = _inside(path, run.recording)
    return found if found and found.is_file() and not found.is_symlink() else None


def _inside(path: Path, recording: str | None) -> Path | None:
    folder, _, name = (recording or "").partition("/")
    if folder != RUNS or not name or "/" in name or name in (".", ".."):
        return None
    return path / RUNS / name


def fingerprint_of(path: Path, run: CaseResult) -> Fingerprint | None:
    """Return the fingerprint of a run in the directory ``path``; None if it has none.

    Raises ``RecordingError`` for a file that ccplay did not write.
    """
    recording = _inside(path, run.recording)
    kept = recording.with_suffix(".json") if recording else None
    if kept is None or not kept.is_file() or kept.is_symlink():
        return None
    try:
        return _decode(kept.read_bytes(), Kept, kept).ran
    except OSError as error:
        raise RecordingError(f"{kept}: {error.strerror}") from None


def scenario_of(path: Path) -> str:
    """Return the scenario file of a run directory, as text. Raises ``RecordingError``."""
    try:
        return (path / SCENARIO).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise RecordingError(f"{path / SCENARIO}: {error.strerror}") from None


def _decode(content: bytes, kind: type[_T], path: Path) -> _T:
    try:
        if wire.is_printable(content):
            return msgspec.json.decode(content, type=kind)
        return msgspec.convert(wire.printable_value(msgspec.json.decode(content)), kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RecordingError(f"{path}: not a file of ccplay: {error}") from None
