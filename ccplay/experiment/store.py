"""A run directory: every finished run in its own file, so that none is lost or run twice.

DIR/scenario.toml        the file as it was run
DIR/result.json          the ``Result``, rewritten at intervals and at the end
DIR/index.parquet        a row for each run, for data frames; only with many runs
DIR/runs/SLUG-2.ccplay   the recording of a case's second repeat
DIR/runs/SLUG-2.json     its ``KeptRun``; written last, so it exists only if the run is finished
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import os
import posixpath
import re
import secrets
import stat
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec
from msgspec.structs import replace

from ccplay.analysis import results
from ccplay.analysis.metrics import identity_of, metrics_of
from ccplay.analysis.results import CaseResult, Machine, Result
from ccplay.analysis.summary import summarise
from ccplay.errors import RecordingError, UsageError
from ccplay.experiment.plan import PlannedRun, extend_result, slugs
from ccplay.files.reading import read_at_most, read_regular
from ccplay.files.writing import Directory, explained
from ccplay.model.quantities import quote
from ccplay.scenario.document import spell
from ccplay.scenario.values import Case, Scenario
from ccplay.state.lab_state import LabState
from ccplay.stream import wire
from ccplay.stream.wire import AnyBuild, AnyCommand
from ccplay.traffic import RunResult
from ccplay.units import format_size
from ccplay.visible import printable, printable_json, printable_lines

# --- the files of a run directory, written by one experiment, each whole or not at all ------------

MOST = 1 << 28
"""Greatest number of bytes that are read of a file, unless a reader has a limit of its own."""


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn an ``OSError`` into a ``RecordingError`` with the path and the reason."""
    try:
        yield
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror}") from None


class Folder:
    """A directory held open; its failures are raised as ``RecordingError``."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self.path = directory.path
        """Path for messages; files are opened relative to the descriptor."""

    @classmethod
    def make(cls, path: Path) -> Self:
        """Open ``path``, created if missing. Raises ``RecordingError``."""
        with _readable(path):
            return cls(Directory(path, make=True))

    def close(self) -> None:
        """Close the directory and release its lock."""
        self._directory.close()

    def lock(self) -> None:
        """Lock the directory until ``close``. Raises ``UsageError`` if another ccplay uses it."""
        try:
            fcntl.flock(self._directory.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{self.path} is in use by another ccplay") from None

    def names(self) -> list[str]:
        """Return the names in the directory."""
        return sorted(os.listdir(self._directory.descriptor))  # noqa: PTH208 - by descriptor

    def folder(self, name: str) -> Folder:
        """Open a folder in the directory, created if missing. Raises ``RecordingError``."""
        with _readable(self.path / name):
            return Folder(self._directory.enter(name))

    def read(self, name: str, most: int = MOST) -> bytes | None:
        """Return the content of a file; None if there is none.

        Raises ``RecordingError``, also for a file of more than ``most`` bytes.
        """
        with (
            _readable(self.path / name),
            contextlib.suppress(FileNotFoundError),
            self._directory.open(name) as file,
        ):
            return read_at_most(file, most)
        return None

    def write(self, name: str, content: bytes) -> None:
        """Write a file completely and sync it. Raises ``RecordingError``."""
        with (
            explained(self.path / name, RecordingError),
            self._directory.written(name, replace=True) as file,
        ):
            file.write(content)

    def free(self, name: str) -> Path:
        """Delete the file with that name and return its path. Raises ``RecordingError``."""
        with explained(self.path / name, RecordingError):
            self._directory.discard(name)
        return self.path / name

    def settle(self, name: str) -> None:
        """Sync a file written by another program to the disk."""
        with contextlib.suppress(OSError), self._directory.open(name) as file:
            os.fsync(file.fileno())


# --- the index of a run directory: a row for each run, its metrics as columns, as Parquet ---------


def indexed(result: Result) -> bytes | None:
    """Return the index as a Parquet file; None if pyarrow is not installed."""
    try:
        import pyarrow  # noqa: ICN001, PLC0415 - results must be kept without it
        from pyarrow import parquet  # noqa: PLC0415
    except ModuleNotFoundError:
        return None
    rows = [_row(run) for run in result.cases]
    columns: dict[str, list[Any]] = {name: [] for row in rows for name in row}
    for row in rows:
        for name, values in columns.items():
            values.append(row.get(name))
    file = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), file, compression="zstd")
    return file.getvalue()


def _row(run: CaseResult) -> dict[str, Any]:
    """Return the row of a run: its identity, whether to trust it, and every metric."""
    return {
        **identity_of(run),
        "recording": run.recording,
        **{f"parameter.{name}": str(value) for name, value in run.parameters.items()},
        **metrics_of(run),
    }


# --- the fingerprint of a run: every setting that determines what happens in it -------------------


class FingerprintStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command and its moment, as in ``scenario.Step``."""

    at_s: float
    after: str | None = None
    command: AnyCommand


class Fingerprint(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a case as played, without names, metrics and expectations."""

    build: AnyBuild
    timeline: list[FingerprintStep]
    until: str
    duration_s: float

    @property
    def sha256(self) -> str:
        """Digest of the fingerprint's JSON; runs with equal digests are repeats of each other."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()


def fingerprint(case: Case) -> Fingerprint:
    """Return the fingerprint of ``case``, a repeat as played."""
    return msgspec.convert(case, Fingerprint, from_attributes=True)


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


# --- A run directory: every finished run in its own file, so that none is lost or run twice -------

FORMAT = 1
"""Version of the format of ``KeptRun``."""

MOST_OF_RESULT = 1 << 28
"""Greatest number of bytes of a result: 10,000 runs of two flows take 37 MB, 5,000 runs of a fat
tree with 96 queues 250 MB."""
MOST_OF_RUN = 1 << 25
"""Greatest number of bytes of the file of one run: 10,000 flows, the most of a recording, take
10 MB, and the results of three attempts are kept."""
MOST_OF_RUNS = 1 << 29
"""Greatest number of bytes of the files of runs that are read at once: twice those of a result,
because each has its settings, too."""
MOST_OF_SCENARIO = 1 << 22
"""Greatest number of bytes of a scenario as run: a file, and a command line with its settings."""
MOST_FILES = 500_000
"""Greatest number of files of runs, each of which has two, and may have captures."""
_LEAST_OF_VALUE = 16
"""Bytes that a value takes at least, on average over a file. Real ones take 17; values of two bytes
each would take thirty times the file's size in memory."""
_TOO_LARGE = re.compile(rb"[0-9][eE]\+?0*(?:[1-9][0-9]{2}|[0-9]{4})|[0-9]{100}")
"""Pattern of a number of 1e100 or more. No square of a smaller one is infinite."""
_SHAPE = bytes.maketrans(b"123456789E", b"000000000e")
_LARGE_SHAPES = (b"0e000", b"0e+000", b"0" * 100)
"""Parts of what ``_TOO_LARGE`` matches, after ``_SHAPE``: they are found ten times as fast."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)

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


class KeptRun(msgspec.Struct, frozen=True, kw_only=True):
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

    def __init__(self, path: Path, scenario: Scenario, *, shared: bool = False) -> None:
        self.scenario = scenario
        """The whole scenario: a directory may have more cases than are run this time."""
        self._path = path
        self._shared = shared
        """Whether the directory may have runs of cases that the scenario has not."""
        self._slugs = slugs(scenario.cases)
        self._since = 0
        self._open = contextlib.ExitStack()
        self.finished: dict[tuple[str, int], KeptRun] = {}
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
            for name, text in self.scenario.files.items():
                self._folder.write(name, text.encode())
            self._open = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def recording(self, run: PlannedRun) -> Path:
        """Return the path of a run's recording; delete that of an unfinished attempt."""
        return self._runs.free(f"{self._stem(run)}.ccplay")

    def recording_name(self, run: PlannedRun) -> str:
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
        run: PlannedRun,
        result: CaseResult,
        machine: Machine | None,
        took_s: float,
        discarded: list[CaseResult],
    ) -> None:
        """Keep a finished run. Raises ``RecordingError``."""
        made_of = fingerprint(run.played)
        kept = KeptRun(
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

    @property
    def succeeded(self) -> dict[tuple[str, int], KeptRun]:
        """The finished runs without errors; one with errors may succeed the next time."""
        return {key: each for key, each in self.finished.items() if not each.result.errors}

    def forget_untrusted(self) -> None:
        """Forget the runs that can't be trusted, so that they are made again."""
        kept = self.finished.items()
        self.finished = {key: run for key, run in kept if run.result.health.trustworthy}

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

    def _stem(self, run: PlannedRun) -> str:
        return f"{self._slugs[run.case.name]}-{run.repeat}"

    def _claim(self) -> None:
        """Claim an empty directory; refuse one that is no run directory of this scenario."""
        name = self.scenario.name
        content = self._folder.read(RESULT)
        if content is not None:
            earlier = decode(content, Result, self._path / RESULT)
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
        stems = set(self._slugs.values())
        for stem, kept in _kept(self._path, ()):
            result = kept.result
            what = f"{self._path}: case {quote(result.name)}"
            if result.name not in cases:
                if self._shared and stem.rpartition("-")[0] not in stems:
                    continue
                raise UsageError(f"{what} is no longer in {self.scenario.path.name}: {_OTHER}")
            run = PlannedRun(cases[result.name], result.repeat)
            now = fingerprint(run.played)
            if kept.sha256 != now.sha256:
                raise UsageError(
                    f"{what}, run {run.repeat} had other settings: {difference(kept.ran, now)}; "
                    f"undo the change, or {_OTHER}"
                )
            self.finished[run.key] = kept


def _as_run(scenario: Scenario) -> bytes:
    """Return the scenario file, with every ``--set`` as a comment at the top."""
    with _readable(scenario.path):
        text = scenario.text.encode() if scenario.text else scenario.path.read_bytes()
    header = "".join(f"# as run: --set {wire.printable(each)}\n" for each in scenario.settings)
    return header.encode() + text


class _Outline(Result, frozen=True, kw_only=True):
    """A result without what each run measured, which is most of its file."""

    cases: list[RunResult]  # type: ignore[assignment] # the identity that each result begins with
    discarded: list[RunResult] = msgspec.field(default_factory=list)  # type: ignore[assignment]


def read_run_directory(path: Path, *, outline: bool = False) -> Result:
    """Return the result of a run directory, finished or not.

    An ``outline`` has statistics, but only the identity of each run, so that thousands of runs take
    little memory. Raises ``RecordingError`` if ``path`` is no readable run directory.
    """
    if not os.path.lexists(path / RESULT):
        raise RecordingError(
            f"{path} is not a run directory: it has no {RESULT} "
            "(ccplay run SCENARIO --out DIR makes one)"
        )
    content = _read(path / RESULT, MOST_OF_RESULT)
    # Runs that are not in the file yet count in the statistics, which then need all runs.
    if outline and (found := _outlined(content, path)) is not None:
        return found
    result = decode(content, Result, path / RESULT)
    _check(result, path)
    return extend_result(result, _later(path, result.cases))


def _outlined(content: bytes, path: Path) -> Result | None:
    """Return the outline of a result; None if runs were finished since it was written."""
    found = decode(content, _Outline, path / RESULT)
    _check(found, path)
    if next(_later(path, found.cases), None) is not None:
        return None
    blank = summarise(LabState(), "")
    names = RunResult.__struct_fields__
    runs = [replace(blank, **{name: getattr(each, name) for name in names}) for each in found.cases]
    return Result(**{**msgspec.structs.asdict(found), "cases": runs, "discarded": []})


def _check(result: Result, path: Path) -> None:
    """Raise ``RecordingError`` for a newer format, or a run whose recording is not in ``path``."""
    if result.format > results.FORMAT:
        raise RecordingError(
            f"{path / RESULT}: format {result.format}; this ccplay reads up to {results.FORMAT}: "
            "update ccplay"
        )
    for number, run in enumerate(result.cases):
        _check_place(run, path / RESULT, f"cases[{number}].recording")


def _check_place(run: RunResult, file: Path, place: str) -> None:
    """Raise ``RecordingError`` if a file in a run directory names a recording elsewhere."""
    if run.recording is None:
        return
    folder, _, name = run.recording.partition("/")
    if folder != RUNS or not name or "/" in name or "\0" in name or name in (".", ".."):
        raise RecordingError(f"{file}: {place}: {quote(run.recording)} is not a file in {RUNS}/")


def _kept(path: Path, known: Collection[str]) -> Iterator[tuple[str, KeptRun]]:
    """Yield the finished runs in ``path`` but those ``known``, each with its stem.

    Raises ``RecordingError``.
    """
    folder = path / RUNS
    total = 0
    for name in _names(folder):
        stem, ending = os.path.splitext(name)  # noqa: PTH122 - thousands of them
        if ending != ".json" or stem in known or stem.startswith("."):
            continue
        content = _read(folder / name, MOST_OF_RUN)
        if (total := total + len(content)) > MOST_OF_RUNS:
            most = format_size(MOST_OF_RUNS)
            raise RecordingError(f"{folder}: its .json files are larger than {most} together")
        kept = decode(content, KeptRun, folder / name)
        _check_place(kept.result, folder / name, "result.recording")
        yield stem, kept


def _names(folder: Path) -> list[str]:
    """Return the names in the folder of runs, sorted. Raises ``RecordingError``."""
    if folder.is_symlink():
        raise RecordingError(f"{folder}: it is a symlink, which is not followed here")
    names: list[str] = []
    with _readable(folder), contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        names = sorted(entry.name for entry in islice(entries, MOST_FILES + 1))
    if len(names) > MOST_FILES:
        raise RecordingError(f"{folder}: more than {MOST_FILES:,} files")
    return names


def _later(path: Path, runs: Iterable[RunResult]) -> Iterator[tuple[CaseResult, Machine | None]]:
    """Yield the finished runs that are not in the result yet."""
    known = {posixpath.splitext((run.recording or "").rpartition("/")[2])[0] for run in runs}
    for _, kept in _kept(path, known):
        yield kept.result, kept.machine


def recording_of(path: Path, run: CaseResult) -> Path | None:
    """Return the recording of a run in the directory ``path``; None if there is none.

    Raises ``RecordingError`` for anything but a file in the directory's own folder of runs.
    """
    return None if run.recording is None else _file(path, run, path / run.recording)


def _file(path: Path, run: CaseResult, file: Path) -> Path | None:
    """Return a file of a run unless it is missing. Raises ``RecordingError``."""
    _check_place(run, path / RESULT, "recording")
    with _readable(file), contextlib.suppress(FileNotFoundError):
        kind = file.lstat().st_mode
        if stat.S_ISREG(kind):
            return file
        what = "a symlink, which is not followed here" if stat.S_ISLNK(kind) else "no regular file"
        raise RecordingError(f"{file}: it is {what}")
    return None


def fingerprint_of(path: Path, run: CaseResult) -> Fingerprint | None:
    """Return the fingerprint of a run in the directory ``path``; None if it has none.

    Raises ``RecordingError`` for a file that ccplay did not write.
    """
    if run.recording is None:
        return None
    kept = _file(path, run, (path / run.recording).with_suffix(".json"))
    return None if kept is None else decode(_read(kept, MOST_OF_RUN), KeptRun, kept).ran


def scenario_of(path: Path) -> str:
    """Return the scenario file of a run directory, as text. Raises ``RecordingError``."""
    text = _read(path / SCENARIO, MOST_OF_SCENARIO).decode(errors="replace")
    return printable_lines(text.replace("\r\n", "\n"))


def _read(path: Path, most: int) -> bytes:
    with _readable(path):
        return read_regular(path, most)


def decode(content: bytes, kind: type[_T], path: Path) -> _T:
    """Return a value from a file, which may be untrusted. Raises ``RecordingError``."""
    most = (MOST_OF_RUN if kind is KeptRun else MOST_OF_RESULT) // _LEAST_OF_VALUE
    if content.count(b",") > most:
        raise RecordingError(f"{path}: more than {most:,} values")
    if _has_large_number(content):
        raise RecordingError(f"{path}: it has a number of 1e100 or more, which is no measurement")
    try:
        return msgspec.json.decode(printable_json(content), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RecordingError(f"{path}: not a file of ccplay: {printable(str(error))}") from None


def _has_large_number(content: bytes) -> bool:
    """Whether JSON has a number of 1e100 or more outside of its texts."""
    shape = content.translate(_SHAPE)
    if not any(each in shape for each in _LARGE_SHAPES):
        return False
    return _TOO_LARGE.search(_STRING.sub(b'""', content)) is not None
