"""Writes a whole report (figures, tables and the page) into a directory of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import msgspec

from ccplay.analysis.results import CaseResult, CaseStatistics
from ccplay.errors import CcplayError, RecordingError, UsageError
from ccplay.files import writing
from ccplay.files.reading import read_regular
from ccplay.report.data.charts import Chart, charts, families
from ccplay.report.data.findings import TIMES, Distribution, together
from ccplay.report.data.material import Material, MatrixAxis, as_written, axes, place, point, slug
from ccplay.report.data.naming import in_order
from ccplay.report.data.report_tables import ReportTable, tables
from ccplay.report.figures import experiment_figures, network_drawing, style
from ccplay.report.figures.run_figures import RunDrawing, RunJob, draw_run
from ccplay.report.figures.style import Inks, Overview, draw_overview
from ccplay.report.page.page import DRAWING, render
from ccplay.traffic import TRAFFIC

# --- the figures of a whole experiment, each with its title, caption and drawing function ---------

_MOST_LINES = 9
"""Largest number of cases in one panel; more are spread over panels if the matrix has two axes."""


def overviews(
    material: Material, drawn: Sequence[RunDrawing], names: Sequence[str]
) -> list[Overview]:
    """Return the figures in the order of the page; ``names`` are those of all drawn traffic."""
    # Growth over time comes first, because it shows more than any mean.
    found = list(_growth(material, drawn))
    inks = Inks(names)
    for number, each in enumerate(charts(material.result.statistics, material.result.cases)):
        lead = number == 0 and each.drawn_along
        work = partial(experiment_figures.draw_chart, each, inks)
        found.append(Overview(each.name, each.title, _caption(each), work, lead))
    return [*found, *_trade_off(material), *_distributions(material, drawn)]


def _trade_off(material: Material) -> Iterator[Overview]:
    """Yield goodput against self-inflicted delay, if links moved; a panel for each path."""
    cases = material.result.statistics
    known = [axis.name for axis in _shared_axes(cases)]
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for case in cases:
        where, names = place(case), known[: max(1, len(known) - 1)]
        title = point(known[-1], where[known[-1]]) if len(known) > 1 else ""
        name = ", ".join(as_written(where[each]) for each in names) or case.name
        for run in material.runs_of(case):
            delays = [each.self_inflicted_delay_ms or 0.0 for each in run.result.queues]
            if (rate := run.result.goodput_bps) and any(delays):
                dots = panels.setdefault(title, {}).setdefault(name, [])
                dots.append((max(delays), rate / 1e6))
    if 1 < len({name for names in panels.values() for name in names}) <= _MOST_LINES:
        yield Overview(
            "trade-off",
            "Goodput against self-inflicted delay",
            "The time that 95 % of the packets waited for the link that moved, and the goodput of "
            "all flows; dots: single runs; ellipses: their standard deviation.",
            partial(experiment_figures.draw_trade_off, panels),
        )


def _shared_axes(cases: Sequence[CaseStatistics]) -> list[MatrixAxis]:
    """Return the axes with several values; none if families of cases have axes of their own."""
    found = [axis for axis in axes(cases) if len(axis.values) > 1]
    names = {axis.name for axis in found}
    return found if all(place(case).keys() >= names for case in cases) else []


def _growth(material: Material, drawn: Sequence[RunDrawing]) -> Iterator[Overview]:
    by_run = {each.slug: each.growth for each in drawn if each.growth is not None}
    found = families(material, by_run)
    names = list(dict.fromkeys(name for lines in found.values() for name in lines))
    for family, lines in found.items():
        yield Overview(
            f"growth-{slug(family)}" if family else "growth",
            f"Acknowledged segments, {family}" if family else "Acknowledged segments",
            "Acknowledged segments of the flow since it started; one run of each case.",
            partial(experiment_figures.draw_growth, lines, names),
        )


def _caption(each: Chart) -> str:
    fewest, most = each.runs
    counts = f"n = {fewest}" if fewest == most else f"n = {fewest} to {most}"
    parts = ["Single runs"]
    if most > 1:
        bars = "" if each.drawn_along else "thick bars: standard deviation; "
        interval = f"thin bars: 95 % confidence interval of the mean (Student's t, {counts})"
        parts = [f"Means; {bars}{interval}; dots: single runs"]
    if each.cut:
        parts.append("arrows: intervals that extend beyond the frame")
    if each.published:
        parts.append("diamonds: published values")
    if each.published_of_all:
        parts.append("dashed: values published for all cases together")
    return "; ".join(parts) + "."


def _by_case(
    material: Material, drawn: Sequence[RunDrawing], key: tuple[str, str]
) -> dict[str, Distribution]:
    """Return the distribution over all drawn runs of each case that has values, by case."""
    by_slug = {each.slug: each.distributions for each in drawn}
    found: dict[str, Distribution] = {}
    for case in material.result.statistics:
        own = [by_slug[run.slug] for run in material.runs_of(case) if run.slug in by_slug]
        if parts := [each[key] for each in own if key in each]:
            found[case.name] = together(parts)
    return found


def _distributions(material: Material, drawn: Sequence[RunDrawing]) -> Iterator[Overview]:
    """Yield a figure for each of ``TIMES`` that was measured.

    Of several panels, such as size classes, each is a line if there is a single case.
    """
    names = [case.name for case in material.result.statistics]
    whose = material.whose if len(drawn) < len(material.runs) else "all runs"
    for times in TIMES:
        by_panel = [(each, _by_case(material, drawn, (times.name, each))) for each in times.panels]
        shown = [(title, by_case) for title, by_case in by_panel if by_case]
        if not shown:
            continue
        labels = (times.label, times.share)
        if len(times.panels) > 1:
            if len(names) == 1:
                shown = [("", {title: by_case[names[0]] for title, by_case in shown})]
            order = names if len(names) > 1 else list(shown[0][1])
            draw = partial(experiment_figures.draw_completion_times, labels, shown, order)
        else:
            by_case = shown[0][1]
            cases = [each for each in material.result.statistics if each.name in by_case]
            panels, ordered = _panels(cases, by_case)
            draw = partial(experiment_figures.draw_cdf, labels, panels, names, ordered=ordered)
        yield Overview(
            f"cdf-{times.name}",
            f"Distribution of {times.label.partition(' (')[0]}",
            times.caption.replace("all runs", whose),
            draw,
        )


def _panels(
    cases: Sequence[CaseStatistics], by_case: dict[str, Distribution]
) -> tuple[list[tuple[str, dict[str, Distribution]]], bool]:
    """Distribute cases over panels: one, or for many cases one per value of the shortest axis.

    Return the panels, and whether their lines have an order, as numbers have.
    """
    known = _shared_axes(cases)
    if len(cases) <= _MOST_LINES or len(known) < 2:
        return [("", {case.name: by_case[case.name] for case in cases})], False
    split = min(known, key=lambda axis: len(axis.values))
    others = [axis for axis in known if axis != split]
    ordered = any(axis.numbers is not None for axis in others)
    panels: dict[str, dict[str, Distribution]] = {}
    for case in cases:
        where = place(case)
        # Values of a single remaining axis, such as algorithms, need no name; numbers do.
        alone = len(others) == 1 and not ordered
        rest = [
            as_written(where[a.name]) if alone else point(a.name, where[a.name]) for a in others
        ]
        title = point(split.name, where[split.name])
        panels.setdefault(title, {})[", ".join(rest)] = by_case[case.name]
    return list(panels.items()), ordered


# --- writes a whole report (figures, tables and the page) into a directory of its own -------------

MANIFEST = ".ccplay-report.json"
"""Name of the file that lists a report's files, which may be deleted when it is rewritten."""
_MOST_CASES = 8
"""Largest number of cases of which one run each is drawn in every format and panel by panel."""
_EARLIER = "earlier"
_MOST_OF_MANIFEST = 1 << 24
"""Greatest number of bytes of a manifest: 100,000 figures take 5 MB."""

Progress = Callable[[int, int, str], None]
"""Function that receives the progress: the number of finished tasks, of all tasks, and a
description."""

_T = TypeVar("_T")
_R = TypeVar("_R")


def write(
    material: Material,
    out: Path,
    progress: Progress,
    *,
    every: bool = False,
    plots: tuple[str, ...] = (),
) -> Path:
    """Write a report into ``out`` and return the path of its page.

    ``every`` draws all runs in every format and panel by panel; otherwise at most one run per case
    is drawn so. ``plots`` are drawn in addition to those that reports draw by default.

    Raises ``UsageError`` if ``out`` has files that are not from a report, ``RecordingError`` for
    runs that can't be read or an ``out`` that can't be written, ``CcplayError`` if a worker died.
    """
    _claim(out)
    try:
        writing.make_directory(out.parent)

        def rescue(left: Path) -> None:
            writing.put_back(left / _EARLIER, out)

        with writing.passing_folder(out.parent, f".{out.name}-", rescue) as made:
            folder = made / out.name
            _fill(material, folder, out, progress, every=every, plots=plots)
            writing.replace_directory(folder, out, made / _EARLIER)
    except OSError as error:
        raise RecordingError(f"can't write {out}: {error.strerror}") from None
    except BrokenProcessPool:
        raise CcplayError("a process that draws figures was killed: out of memory?") from None
    return out / "index.html"


def _claim(out: Path) -> None:
    """Raise ``UsageError`` if ``out`` has files that are not from a report."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise UsageError(f"{out} is not a directory: name another with --out")
    if not out.exists() or not any(out.iterdir()):
        return
    try:
        ours = set(
            msgspec.json.decode(read_regular(out / MANIFEST, _MOST_OF_MANIFEST), type=list[str])
        )
    except (OSError, msgspec.MsgspecError):
        raise UsageError(
            f"{out} contains files that are not from a report: name another directory with --out"
        ) from None
    there = {
        str(Path(folder, name).relative_to(out))
        for folder, _, names in os.walk(out)
        for name in names
    }
    if others := sorted(there - ours - {MANIFEST}):
        raise UsageError(
            f"{out} contains {others[0]!r}, which is not from a report: move it away first"
        )


def _fill(
    material: Material,
    folder: Path,
    out: Path,
    progress: Progress,
    *,
    every: bool,
    plots: tuple[str, ...],
) -> None:
    figures, table_folder = folder / "figures", folder / "tables"
    for each in (figures, table_folder):
        writing.make_directory(each)
    fonts = style.write_fonts()
    # The longest jobs first, so that none runs alone at the end.
    planned_jobs = _jobs(material, figures, fonts, every=every, plots=plots)
    jobs = sorted(planned_jobs, key=lambda job: not job.every_file)
    with _pool(len(jobs)) as workers:
        drawn = _done(workers, draw_run, jobs, progress, "runs drawn")
        planned = overviews(material, drawn, flow_names([run.result for run in material.runs]))
        work = partial(draw_overview, folder=figures, fonts=fonts)
        saved = _done(workers, work, planned, progress, "charts drawn")
    written = {table.name: _write(table, table_folder) for table in tables(material.result)}
    shown = {job.slug: each for job, each in zip(jobs, drawn, strict=True) if job.full}
    first = next(iter(shown.values()), None)
    drawing = network_drawing.draw(first.graph) if first and first.graph else ""
    if drawing:
        writing.write(figures / DRAWING, drawing)
    page = render(
        material,
        charts=list(zip(planned, saved, strict=True)),
        shown=shown,
        drawing=drawing,
        table_files=written,
        font_face=style.font_face(fonts),
        links=_links(material, drawn, out),
    )
    writing.write(folder / "index.html", page)
    names = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file()]
    writing.write(folder / MANIFEST, msgspec.json.encode(names))


# --- figures ------------------------------------------------------------------------------------


def _jobs(
    material: Material, figures: Path, fonts: Path, *, every: bool, plots: tuple[str, ...]
) -> Iterator[RunJob]:
    names = flow_names([run.result for run in material.runs])
    chosen = {
        run.slug
        for case in (material.result.statistics if every else material.drawn_cases)
        if (run := material.representative(case))
    }
    for run in material.runs:
        if run.recording is not None and (every or not material.is_large or run.slug in chosen):
            yield RunJob(
                recording=run.recording,
                folder=figures,
                slug=run.slug,
                names=names,
                full=every or run.slug in chosen,
                every_file=every or (run.slug in chosen and len(chosen) <= _MOST_CASES),
                fonts=fonts,
                checkpoint=run.result.checkpoint,
                plots=plots,
            )


def flow_names(results: Sequence[CaseResult]) -> tuple[str, ...]:
    """Return the names of a report's drawn traffic in one order, so that each keeps its colour."""
    names: list[str] = []
    # Kinds added later come last, so that a name that two kinds share in old recordings keeps its
    # colour.
    for kind in TRAFFIC:
        found = [each for result in results for each in getattr(result, kind.group)]
        names += in_order({each.id for each in found})
        names += in_order({sub.id for each in found for sub in getattr(each, "subflows", ())})
    return tuple(dict.fromkeys(names))


def _links(
    material: Material, drawn: Sequence[RunDrawing], out: Path
) -> dict[str, tuple[str, str]]:
    """Return the addresses of each run's figure and recording by slug, relative to the page."""
    figures = {each.slug: f"figures/{quote(each.slug)}.svg" for each in drawn}
    seen_from = out.resolve()
    folders: dict[Path, str] = {}
    links = {}
    for run in material.runs:
        recording = ""
        if run.recording is not None:
            folder = run.recording.parent
            if folder not in folders:
                folders[folder] = os.path.relpath(folder.resolve(), seen_from)
            recording = quote(os.fsencode(Path(folders[folder], run.recording.name)))
        links[run.slug] = (figures.get(run.slug, ""), recording)
    return links


def _write(table: ReportTable, folder: Path) -> list[str]:
    """Write a table and return the extensions of its files."""
    name, endings = slug(table.name), []
    for ending, text in table.files():
        writing.write(folder / f"{name}.{ending}", text)
        endings.append(ending)
    return endings


# --- workers --------------------------------------------------------------------------------------


def _done(
    workers: ProcessPoolExecutor | None,
    work: Callable[[_T], _R],
    some: Sequence[_T],
    progress: Progress,
    what: str,
) -> list[_R]:
    """Run all tasks, report the progress, and return the results in order."""
    progress(0, len(some), what)
    done: list[_R] = []
    for each in map(work, some) if workers is None else workers.map(work, some):
        done.append(each)
        progress(len(done), len(some), what)
    return done


@contextmanager
def _pool(most: int) -> Iterator[ProcessPoolExecutor | None]:
    """Return a context with parallel workers; with None for a single task or core."""
    workers = min(len(os.sched_getaffinity(0)), most)
    if workers < 2:
        yield None
        return
    # Threads that libraries start do not survive a fork.
    context = get_context("forkserver")
    # Importing matplotlib takes a second: once is enough for all workers.
    context.set_forkserver_preload(["__main__", draw_run.__module__])
    # Ctrl-C is for the parent: a worker would only print a traceback.
    ignore = (signal.SIGINT, signal.SIG_IGN)
    with ProcessPoolExecutor(workers, context, signal.signal, ignore) as pool:
        yield pool
