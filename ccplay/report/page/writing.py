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
from typing import Protocol, TypeVar
from urllib.parse import quote

import msgspec

from ccplay.analysis.results import CaseResult
from ccplay.errors import CcplayError, RecordingError, UsageError
from ccplay.files import writing
from ccplay.files.reading import read_regular
from ccplay.report.data.graph import graph
from ccplay.report.data.material import Material, slug
from ccplay.report.data.naming import in_order
from ccplay.report.data.tables import Table, tables
from ccplay.report.figures import fonts
from ccplay.report.figures.files import Saved
from ccplay.report.figures.job import Drawn, Job, Overview, draw, draw_overview
from ccplay.report.page import network_drawing
from ccplay.report.page.overviews import overviews
from ccplay.report.page.page import DRAWING, Picture, Shown, render

MANIFEST = ".ccplay-report.json"
"""Name of the file that lists a report's files, which may be deleted when it is rewritten."""
_MOST_CASES = 8
"""Largest number of cases of which one run each is drawn in every format and panel by panel."""
_EARLIER = "earlier"
_MOST_OF_MANIFEST = 1 << 24
"""Greatest number of bytes of a manifest: 100,000 figures take 5 MB."""
_COLUMN_IN = 5.0

Progress = Callable[[int, int, str], None]
"""Function that receives the progress: the number of finished tasks, of all tasks, and a
description."""

_T = TypeVar("_T")
_R = TypeVar("_R")


class _Workers(Protocol):
    """A function that applies another one to several items, as ``map`` does."""

    def __call__(self, work: Callable[[_T], _R], some: Sequence[_T], /) -> Iterator[_R]: ...


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
    cut = fonts.cut()
    # The longest jobs first, so that none runs alone at the end.
    planned_jobs = _jobs(material, figures, cut, every=every, plots=plots)
    jobs = sorted(planned_jobs, key=lambda job: not job.every_file)
    with _pool(len(jobs)) as workers:
        drawn = _done(workers, draw, jobs, progress, "runs drawn")
        planned = overviews(material, drawn, flow_names([run.result for run in material.runs]))
        work = partial(draw_overview, folder=figures, cut=cut)
        saved = _done(workers, work, planned, progress, "charts drawn")
    written = {table.name: _write(table, table_folder) for table in tables(material.result)}
    shown = {job.slug: _shown(each) for job, each in zip(jobs, drawn, strict=True) if job.full}
    if (first := next(iter(shown.values()), None)) and first.network:
        writing.write(figures / DRAWING, first.network)
    page = render(
        material,
        charts=[_picture(each, made) for each, made in zip(planned, saved, strict=True)],
        shown=shown,
        table_files=written,
        font_face=fonts.face(cut),
        links=_links(material, drawn, out),
    )
    writing.write(folder / "index.html", page)
    names = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file()]
    writing.write(folder / MANIFEST, msgspec.json.encode(names))


# --- figures ------------------------------------------------------------------------------------


def _jobs(
    material: Material, figures: Path, cut: Path, *, every: bool, plots: tuple[str, ...]
) -> Iterator[Job]:
    names = flow_names([run.result for run in material.runs])
    chosen = {
        run.slug
        for case in (material.result.statistics if every else material.drawn_cases)
        if (run := material.representative(case))
    }
    for run in material.runs:
        if run.recording is not None and (every or not material.is_large or run.slug in chosen):
            yield Job(
                recording=run.recording,
                folder=figures,
                slug=run.slug,
                names=names,
                full=every or run.slug in chosen,
                every_file=every or (run.slug in chosen and len(chosen) <= _MOST_CASES),
                fonts=cut,
                checkpoint=run.result.checkpoint,
                plots=plots,
            )


def flow_names(results: Sequence[CaseResult]) -> tuple[str, ...]:
    """Return the names of a report's drawn traffic in one order, so that each keeps its colour."""
    flows = {flow.id for result in results for flow in result.flows}
    subflows = {each.id for result in results for flow in result.flows for each in flow.subflows}
    downloads = {each.id for result in results for each in result.downloads}
    pings = {each.id for result in results for each in result.pings}
    udp = {each.id for result in results for each in result.udp}
    # Kinds added later come last, so that a name that two kinds share in old recordings keeps its
    # colour.
    kinds = (flows, subflows, downloads, pings, udp)
    return tuple(dict.fromkeys(name for each in kinds for name in in_order(each)))


def _picture(overview: Overview, saved: Saved) -> Picture:
    width = "page" if saved.width_in > _COLUMN_IN else "lead" if overview.lead else "column"
    return Picture(overview.name, overview.title, overview.caption, saved.svg, saved.files, width)


def _shown(drawn: Drawn) -> Shown:
    events = [(max(each.t - drawn.start, 0.0), each.text) for each in drawn.events]
    hello = drawn.hello
    found = graph(hello.network, drawn.links, drawn.loads, drawn.paths) if hello else None
    network = network_drawing.draw(found) if found else ""
    about = (drawn.hello, drawn.links, network, drawn.intervals)
    return Shown(drawn.svg, drawn.files, events, *about)


def _links(material: Material, drawn: Sequence[Drawn], out: Path) -> dict[str, tuple[str, str]]:
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


def _write(table: Table, folder: Path) -> list[str]:
    """Write a table and return the extensions of its files."""
    name, endings = slug(table.name), []
    for ending, text in table.files():
        writing.write(folder / f"{name}.{ending}", text)
        endings.append(ending)
    return endings


# --- workers --------------------------------------------------------------------------------------


def _done(
    workers: _Workers, work: Callable[[_T], _R], some: Sequence[_T], progress: Progress, what: str
) -> list[_R]:
    """Run all tasks, report the progress, and return the results in order."""
    progress(0, len(some), what)
    done: list[_R] = []
    for each in workers(work, some):
        done.append(each)
        progress(len(done), len(some), what)
    return done


@contextmanager
def _pool(most: int) -> Iterator[_Workers]:
    """Return a context with parallel workers, or with ``map`` for a single task or core."""
    workers = min(len(os.sched_getaffinity(0)), most)
    if workers < 2:
        yield map
        return
    # Threads that libraries start do not survive a fork.
    context = get_context("forkserver")
    # Importing matplotlib takes a second: once is enough for all workers.
    context.set_forkserver_preload(["__main__", draw.__module__])
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_ignore_interrupts) as pool:
        yield pool.map


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the parent: a worker would only print a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
