"""The runs of an evaluation: criterion after criterion, kept, resumed, and printed as a table."""

from __future__ import annotations

import asyncio
import io
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from signal import SIGINT
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ccplay.analysis.results import Machine, Result
from ccplay.errors import RecordingError, UnsupportedError
from ccplay.evaluation.criteria import (
    CriterionResult,
    Evaluation,
    Judged,
    Measured,
    Subject,
    Verdict,
    compare,
    criterion_result,
    find_criteria,
    in_order,
    judge,
    left_out,
    load_criterion,
    references,
    subject_of,
    write_figure,
)
from ccplay.experiment.plan import RunOptions, goal_of, with_options
from ccplay.experiment.runner import KILLED, Experiment, OpenWorkers, open_workers, showing_progress
from ccplay.experiment.store import Store, decode
from ccplay.files import writing
from ccplay.files.reading import read_regular
from ccplay.model.commands import Build
from ccplay.model.quantities import quote
from ccplay.report.terminal.progress_display import ProgressDisplay, roughly
from ccplay.scenario.library import criteria
from ccplay.scenario.matrix import word_of
from ccplay.scenario.reading import load
from ccplay.scenario.values import Case, Scenario
from ccplay.stream.sources import Source
from ccplay.visible import notify, printable

if TYPE_CHECKING:
    from ccplay.ui.evaluation_table import CriterionRow, EvaluationBoard

RESULT = "evaluation.json"
"""File of an evaluation in its directory; beside it each criterion has a run directory."""
_MOST = 1 << 26
_AROUND_S = 2.0
"""Seconds to assume for the start and the end of a run's lab."""
_STYLES: dict[Verdict, str] = {
    "pass": "green",
    "fail": "red",
    "unclear": "yellow",
    "not judged": "magenta",
    "not evaluated": "dim",
}


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be evaluated, and how."""

    subject: Subject
    """What is judged."""
    against: tuple[Subject, ...]
    """Those that are measured for comparison and as competitors; the subject may be among them."""
    only: tuple[str, ...] = ()
    quick: bool = False
    out: Path
    """Directory of the evaluation."""
    baseline: Evaluation | None = None
    own: Mapping[str, str] = {}
    """The user's algorithms by name, with the digests of their sources."""
    own_queues: Mapping[str, str] = {}
    options: RunOptions
    repeat: str
    """Options of ``ccplay run`` that name the user's own files, as text."""


class Planned(msgspec.Struct, frozen=True):
    """A criterion with the scenario that evaluates it."""

    name: str
    scenario: Scenario
    subjects: tuple[Subject, ...]
    """Subjects of its runs; the first one is judged."""


def plan_criteria(wanted: Wanted) -> list[Planned]:
    """Return the criteria to evaluate in the order of their sections. Raises ``CcplayError``."""
    planned, kind = [], wanted.subject.kind
    for name, path in find_criteria(kind, wanted.only).items():
        criterion = load(path).criterion
        needed = references(criterion) if criterion else []
        named = [wanted.subject, *wanted.against, *(subject_of(e, kind) for e in needed)]
        subjects = tuple({each.name: each for each in named}.values())
        beside = [each.name for each in wanted.against]
        scenario = load_criterion(path, subjects, beside, quick=wanted.quick)
        cases = tuple(_with_own(case, wanted) for case in scenario.cases)
        scenario = replace(scenario, cases=cases)
        planned.append(Planned(name, with_options(scenario, wanted.options), subjects))
    order = in_order(criterion_result(e.name, e.scenario, (), "") for e in planned)
    place = {each.name: number for number, each in enumerate(order)}
    return sorted(planned, key=lambda each: place[each.name])


def _with_own(case: Case, wanted: Wanted) -> Case:
    """Return a case with the digests of the user's files that it uses; other runs are shared."""
    used = {word_of(value) for value in case.parameters.values()}
    own = {name: digest for name, digest in wanted.own.items() if name in used}
    queues = {name: digest for name, digest in wanted.own_queues.items() if name in used}
    return replace(case, build=replace(case.build, algorithms=own, disciplines=queues))


def read_evaluation(path: Path) -> Evaluation:
    """Return the evaluation in a directory. Raises ``RecordingError``."""
    file = path / RESULT if path.is_dir() else path
    try:
        return decode(read_regular(file, _MOST), Evaluation, file)
    except OSError as error:
        raise RecordingError(f"{file}: {error.strerror}; ccplay evaluate makes one") from None


# --- the runs -------------------------------------------------------------------------------------


class _Going(msgspec.Struct):
    """An evaluation while it is made."""

    wanted: Wanted
    open_source: Callable[[Build], Source]
    elsewhere: OpenWorkers | None
    finish: Callable[[Evaluation], None]
    """Function that receives the evaluation so far after each criterion."""
    planned: list[Planned]
    stop: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    found: list[CriterionResult] = []
    machine: Machine | None = None

    @property
    def evaluation(self) -> Evaluation:
        """The verdicts so far."""
        wanted = self.wanted
        evaluation = Evaluation(
            subject=wanted.subject.name,
            kind=wanted.subject.kind,
            against=[each.name for each in wanted.against if each != wanted.subject],
            quick=wanted.quick,
            machine=self.machine,
            criteria=list(self.found),
            left_out=[] if wanted.only else left_out(wanted.subject.kind),
        )
        if wanted.baseline is None:
            return evaluation
        changes = list(compare(wanted.baseline, evaluation))
        return replace(evaluation, changes=changes)


async def evaluate(
    wanted: Wanted,
    open_source: Callable[[Build], Source],
    elsewhere: OpenWorkers | None = None,
    finish: Callable[[Evaluation], None] = lambda _: None,
) -> tuple[Evaluation, int]:
    """Make the runs of all criteria that are not finished; return the verdicts and an exit code.

    Rows of the table go to stderr as criteria finish. ``finish`` receives the evaluation so far
    after each. Raises ``CcplayError`` if the subject can't be evaluated at all.
    """
    going = _Going(wanted, open_source, elsewhere, finish, plan_criteria(wanted))
    runs = sum(len(each.scenario.cases) for each in going.planned)
    with showing_progress(going.stop, runs) as (display, _, signals):
        number = 0
        async for each, row in _criteria(going, display):
            if row is None:
                number += 1
                title = f"{number} of {len(going.planned)}: {each.scenario.title}"
                display.print(title, "bold")
            else:
                display.show(_line(row))
    return going.evaluation, _code(going, signals[0] if signals else 0)


def _code(going: _Going, signal: int) -> int:
    """Return the exit code, and say what is kept if a signal or a key ended the evaluation."""
    if signal:
        notify(f"finished runs are kept in {going.wanted.out}; the same command runs the rest")
        return KILLED + signal
    return 1 if going.evaluation.failed_musts else 0


async def _criteria(
    going: _Going, display: ProgressDisplay
) -> AsyncIterator[tuple[Planned, CriterionResult | None]]:
    """Yield each criterion before its runs, without a result, and after them with it."""
    wanted = going.wanted
    for each in going.planned:
        yield each, None
        judged: list[Judged] = []
        why = ""
        try:
            result = await _measure(going, each, display)
        except UnsupportedError as error:
            why = error.lines[0]
            if not going.found and quote(wanted.subject.name) in str(error):
                raise
        else:
            going.machine = going.machine or result.machine
            judged = judge(each.scenario, result, each.subjects, folder=each.name)
        if going.stop.is_set():
            return
        row = criterion_result(each.name, each.scenario, judged, command_of(wanted, each), why)
        going.found.append(row)
        going.finish(going.evaluation)
        yield each, row


async def _measure(going: _Going, planned: Planned, display: ProgressDisplay) -> Result:
    """Make the runs of a criterion that are not finished, or could not be trusted."""
    wanted, scenario, stop = going.wanted, planned.scenario, going.stop
    with Store(wanted.out / planned.name, scenario, shared=True) as store:
        store.forget_untrusted()
        async with open_workers(going.elsewhere, store, stop, display) as workers:
            experiment = Experiment(
                scenario,
                going.open_source,
                stop,
                display,
                jobs=wanted.options.jobs,
                goal=goal_of(scenario, wanted.options),
                store=store,
                workers=workers,
            )
            return await experiment.measure()


def command_of(wanted: Wanted, planned: Planned) -> str:
    """Return the command that repeats the runs of a criterion."""
    words = ["ccplay", "run", f"evaluation/{planned.name}"]
    for each in planned.scenario.settings:
        words += ["--set", each]
    repeats = {case.repeats for case in planned.scenario.cases}
    words += ["--repeats", str(max(repeats))] if wanted.quick else []
    return " ".join(filter(None, [shlex.join(words), wanted.repeat]))


def write_result(evaluation: Evaluation, out: Path) -> None:
    """Write the evaluation into its directory. Raises ``RecordingError``."""
    text = msgspec.json.format(msgspec.json.encode(evaluation), indent=1).decode() + "\n"
    with writing.explained(out / RESULT, RecordingError):
        writing.write(out / RESULT, text, replace=True)


# --- the table on the screen ----------------------------------------------------------------------


class _OnScreen(ProgressDisplay):
    """Progress for the table on the screen: what would be printed is its newest message."""

    def __init__(self, board: EvaluationBoard, runs: int, coming: Callable[[], float]) -> None:
        super().__init__(Console(file=io.StringIO()), runs, story=False)
        self._board = board
        self._coming = coming
        self.name = ""

    @property
    def live(self) -> bool:
        """Whether lines need not say how much time is left."""
        return True

    def show(self, line: Text) -> None:
        """Show a message."""
        self._board.said, self._board.changed = line, True

    def overall(self, done: int, total: int, left: str) -> None:  # noqa: ARG002
        """Show the runs of the present criterion, and the time that all will take."""
        self._board.rows[self.name].runs = (done, total)
        self._board.left, self._board.changed = roughly(self._coming()), True


async def evaluate_on_screen(
    wanted: Wanted,
    open_source: Callable[[Build], Source],
    elsewhere: OpenWorkers | None = None,
    finish: Callable[[Evaluation], None] = lambda _: None,
    *,
    ascii: bool = False,  # noqa: A002
) -> tuple[Evaluation, int]:
    """Do as ``evaluate``, with the table on the whole screen until the user leaves it."""
    from ccplay.ui import preferences  # noqa: PLC0415 - Textual is imported only for a screen
    from ccplay.ui.evaluation_table import EvaluationBoard, EvaluationTable  # noqa: PLC0415
    from ccplay.ui.themes import load_looks  # noqa: PLC0415

    going = _Going(wanted, open_source, elsewhere, finish, plan_criteria(wanted))
    rows = {each.name: waiting_row(each) for each in going.planned}
    board = EvaluationBoard(title=f"Evaluation of {wanted.subject.name}", rows=rows)
    looks = load_looks()
    table = EvaluationTable(
        board,
        lambda path: (sys.executable, "-P", "-m", "ccplay", "replay", str(path)),
        looks=looks,
        preferences=preferences.load(looks),
        ascii=ascii,
    )
    runs = sum(row.runs[1] for row in rows.values())
    display = _OnScreen(board, runs, lambda: _seconds_left(going, rows))

    async def make() -> None:
        try:
            async for each, row in _criteria(going, display):
                display.name = each.name
                rows[each.name].verdict = "running" if row is None else row.verdict
                if row is not None:
                    fill_row(rows[each.name], row, wanted.out)
                board.changed = True
        except BaseException:
            table.exit()
            raise
        board.over, board.changed = True, True
        board.left, board.said = "", Text("all runs are done", "dim")

    making = asyncio.create_task(make())
    try:
        code = await table.run_async() or 0
    finally:
        stopped = not making.done()
        going.stop.set()
    await making
    # A key ends it as Ctrl-C would.
    signal = (code - KILLED if code > KILLED else int(SIGINT)) if stopped else 0
    return going.evaluation, _code(going, signal)


def waiting_row(planned: Planned) -> CriterionRow:
    """Return the row of a criterion before its runs."""
    from ccplay.ui.evaluation_table import CriterionRow  # noqa: PLC0415 - see above

    criterion = planned.scenario.criterion
    assert criterion is not None  # noqa: S101 - ``load_criterion`` has looked
    return CriterionRow(
        section=criterion.section,
        level=criterion.level,
        question=criterion.question,
        runs=(0, sum(case.repeats for case in planned.scenario.cases)),
        details=[f"RFC {criterion.rfc}, {criterion.section}: {criterion.sentence}"],
    )


def fill_row(row: CriterionRow, found: CriterionResult, out: Path) -> None:
    """Put the verdict on a criterion into its row."""
    row.runs = (row.runs[1], row.runs[1])
    lines = [found.why] if found.why else []
    if found.judged:
        ours = found.judged[0]
        row.figure, row.bound = write_figure(ours.deciding), ours.deciding.bound
        for number, measured in enumerate(ours.measures):
            others = [f"{e.subject} {write_figure(e.measures[number])}" for e in found.judged[1:]]
            figures = "; ".join([write_figure(measured), *others])
            lines.append(f"{measured.text}: {figures}. Holds if {measured.bound}.")
        if ours.deciding.worst.recording is not None:
            row.recording = out / ours.deciding.worst.recording
    row.details = [*lines, *row.details]


def _seconds_left(going: _Going, rows: Mapping[str, CriterionRow]) -> float:
    """Return the seconds that the runs of all criteria will still take."""
    left = 0.0
    for each in going.planned:
        done, total = rows[each.name].runs
        cases = each.scenario.cases
        mean = sum(case.duration_s + _AROUND_S for case in cases) / len(cases)
        left += mean * (total - done)
    return left / max(going.wanted.options.jobs, 1)


# --- the table ------------------------------------------------------------------------------------


def _line(row: CriterionResult) -> Text:
    """Return the verdict on a criterion in a line."""
    text = Text(f"{row.section} {row.level} ", style="")
    text.append(row.verdict, _STYLES[row.verdict])
    text.append(f"  {printable(row.question)}  ")
    if row.judged:
        first = row.judged[0].deciding
        text.append(f"{first.text}: {write_figure(first)}, {first.bound}", "dim")
    elif row.why:
        text.append(printable(row.why), "dim")
    return text


_NARROWEST, _FIGURE = 88, 17
"""Columns of the table with room for the criteria, and of each other algorithm's figures."""


def show_evaluation(evaluation: Evaluation, console: Console) -> None:
    """Print the verdicts as a table, with the figures of as many others as there is room for."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    heads = ("", "", "criterion", "verdict", evaluation.subject)
    for head in heads:
        table.add_column(head, overflow="fold")
    others = evaluation.against[: max(console.width - _NARROWEST, 0) // _FIGURE]
    for name in others:
        table.add_column(name, style="dim", overflow="fold")
    table.add_column("bound (ours)", style="dim", overflow="fold")
    for row in in_order(evaluation.criteria):
        verdict = Text(row.verdict, _STYLES[row.verdict])
        if not row.judged:
            table.add_row(row.section, row.level, row.question, verdict, Text(row.why, "dim"))
            continue
        for number, measured in enumerate(row.judged[0].measures):
            found = {each.subject: each.measures[number] for each in row.judged}
            first = number == 0
            table.add_row(
                row.section if first else "",
                row.level if first else "",
                row.question if first else Text(f"  {measured.text}", "dim"),
                verdict if first else "",
                _figure(measured),
                *(_figure(found[name]) if name in found else "" for name in others),
                measured.bound,
            )
    console.print(table)
    if more := evaluation.against[len(others) :]:
        console.print(Text(f"{', '.join(more)}: on the page, or in a wider terminal", "dim"))
    for line in closing_lines(evaluation):
        console.print(Text(line))


def _figure(measured: Measured) -> Text:
    """Return the worst figure of a measure, in the colour of its verdict unless it passes."""
    verdict = measured.worst.verdict
    return Text(write_figure(measured), "" if verdict == "pass" else _STYLES[verdict])


def closing_lines(evaluation: Evaluation) -> Iterator[str]:
    """Yield the summary, what is not clear and why, and what changed."""
    yield evaluation.counts()
    if evaluation.failed_musts:
        yield f"failed with MUST: {', '.join(evaluation.failed_musts)}"
    for row in evaluation.criteria:
        if row.why and row.judged:
            yield f"{row.name}: {printable(row.why)}"
    for each in evaluation.changes:
        if each.change != "not clear" or each.before != each.now:
            yield (
                f"{each.name}: {each.change} by {each.metric}, {each.before} before, {each.now} now"
            )
    if evaluation.quick:
        yield "quick: one run a point, so figures have no intervals"


def list_criteria(kind: str, console: Console) -> None:
    """Print the criteria of algorithms or of disciplines, and what is left out."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for head in ("name", "RFC", "section", "", "question"):
        table.add_column(head)
    paths = criteria()
    rows = in_order(
        criterion_result(name, load(paths[name]), (), "") for name in find_criteria(kind)
    )
    for row in rows:
        table.add_row(row.name, row.rfc, row.section, row.level, row.question)
    for each in left_out(kind):
        why = Text(f"{each.question} Not evaluated: {each.why}", "dim")
        table.add_row("", each.rfc, each.section, each.level, why)
    console.print(table)
