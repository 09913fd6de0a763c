"""Write a whole report: figures, tables and the page, into a directory that is ours alone."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from urllib.parse import quote

import msgspec

from ccplay.errors import CcplayError, RecordingError, UsageError
from ccplay.measure.results import CaseResult, CaseStatistics
from ccplay.report.charts import Chart, charts
from ccplay.report.distributions import KINDS, Distribution, together
from ccplay.report.figures import cdf, chart, files, fonts
from ccplay.report.figures import growth as growth_figure
from ccplay.report.figures.job import Drawn, Job, draw
from ccplay.report.figures.style import Inks, look
from ccplay.report.growth import families
from ccplay.report.material import Material, axes, place, point, say, slug
from ccplay.report.naming import in_order
from ccplay.report.page import Picture, Shown, render
from ccplay.report.tables import Table, tables

MANIFEST = ".ccplay-report.json"
"""Lists what a report consists of: what may be deleted when it is made anew."""
_MOST_SINGLES = 8
"""With more cases than this nobody wants every panel of each as files, unless asked for."""
_COLUMN_IN = 5.0
_MOST_LINES = 9
"""With more cases than this their distributions are dealt to panels."""

Teller = Callable[[int, int, str], None]
"""Told how many steps are done, of how many, and what is being done."""


def write(material: Material, out: Path, tell: Teller, *, every: bool = False) -> Path:
    """Write a report into ``out`` and return its page.

    ``every`` draws all runs in full with every panel as a file, else one of each case. Raises
    ``UsageError`` where ``out`` has files that no report of ours has put there, ``RecordingError``
    for runs that can't be read.
    """
    earlier = _claim(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as made:
            folder = Path(made) / out.name
            _fill(material, folder, out, tell, every=every)
            if earlier:
                shutil.rmtree(out)
            elif out.exists():
                out.rmdir()
            folder.rename(out)
    except OSError as error:
        raise RecordingError(f"can't write {out}: {error.strerror}") from None
    except BrokenProcessPool:
        raise CcplayError("a process that drew figures was killed: is memory short?") from None
    return out / "index.html"


def _claim(out: Path) -> bool:
    """Return whether ``out`` is a report of ours. Raises ``UsageError`` for others' files."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise UsageError(f"{out} is no directory: name another with --out")
    if not out.exists() or not any(out.iterdir()):
        return False
    try:
        ours = set(msgspec.json.decode((out / MANIFEST).read_bytes(), type=list[str]))
    except (OSError, msgspec.MsgspecError):
        raise UsageError(
            f"{out} has files that no report put there: name another (--out)"
        ) from None
    there = {
        str(Path(folder, name).relative_to(out))
        for folder, _, names in os.walk(out)
        for name in names
    }
    if others := sorted(there - ours - {MANIFEST}):
        raise UsageError(f"{out} has {others[0]!r}, which no report put there: move it away first")
    return True


def _fill(material: Material, folder: Path, out: Path, tell: Teller, *, every: bool) -> None:
    figures, table_folder = folder / "figures", folder / "tables"
    figures.mkdir(parents=True)
    table_folder.mkdir()
    cut = fonts.cut()
    fonts.use(cut)
    face = fonts.face(cut)
    # The longest first, so that no worker is left alone with one at the end.
    jobs = sorted(_jobs(material, figures, cut, every=every), key=lambda job: not job.full)
    drawn = _draw(jobs, tell)
    pictures = _charts(material, drawn, figures, face)
    tell(len(jobs), len(jobs), "writing")
    found = tables(material.result)
    for table in found:
        _write_table(table, table_folder)
    shown = {job.slug: _shown(each) for job, each in zip(jobs, drawn, strict=True) if job.full}
    page = render(
        material,
        charts=pictures,
        shown=shown,
        table_names=[table.name for table in found],
        font_face=face,
        links=_links(material, drawn, out),
    )
    (folder / "index.html").write_text(page, encoding="utf-8")
    names = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file()]
    (folder / MANIFEST).write_bytes(msgspec.json.encode(names))


# --- runs ---------------------------------------------------------------------------------------


def _jobs(material: Material, figures: Path, cut: Path, *, every: bool) -> Iterator[Job]:
    names = flow_names([run.result for run in material.runs])
    chosen = {
        run.slug for case in material.result.statistics if (run := material.representative(case))
    }
    for run in material.runs:
        if run.recording is not None:
            yield Job(
                recording=run.recording,
                title=run.title,
                folder=figures,
                slug=run.slug,
                names=names,
                full=every or run.slug in chosen,
                singles=every or (run.slug in chosen and len(chosen) <= _MOST_SINGLES),
                fonts=cut,
                checkpoint=run.result.checkpoint,
            )


def flow_names(results: Sequence[CaseResult]) -> tuple[str, ...]:
    """Return all flows and downloads of a report in one order, so that each keeps its colour."""
    flows = {flow.id for result in results for flow in result.flows}
    downloads = {each.id for result in results for each in result.downloads}
    pings = {each.id for result in results for each in result.pings}
    return (*in_order(flows), *in_order(downloads - flows), *in_order(pings - flows - downloads))


def _draw(jobs: Sequence[Job], tell: Teller) -> list[Drawn]:
    """Draw all runs, side by side where there are several and more than one core."""
    drawn = []
    with _executor(len(jobs)) as executor:
        for number, each in enumerate(executor(jobs)):
            drawn.append(each)
            tell(number + 1, len(jobs), "drawing")
    return drawn


@contextmanager
def _executor(jobs: int) -> Iterator[Callable[[Sequence[Job]], Iterator[Drawn]]]:
    workers = min(len(os.sched_getaffinity(0)), jobs)
    if workers < 2:
        yield lambda some: map(draw, some)
        return
    # Threads that libraries start do not survive a fork.
    context = get_context("forkserver")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_ignore_interrupts) as pool:
        yield lambda some: pool.map(draw, some)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the parent: a worker would only die with a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _shown(drawn: Drawn) -> Shown:
    events = [(max(each.t - drawn.start, 0.0), each.text) for each in drawn.events]
    return Shown(drawn.svg, drawn.files, events, drawn.hello, drawn.links)


def _links(material: Material, drawn: Sequence[Drawn], out: Path) -> dict[str, tuple[str, str]]:
    """Return each run's figure and recording, as seen from the page."""
    figures = {each.slug: f"figures/{quote(each.slug)}.svg" for each in drawn}
    links = {}
    for run in material.runs:
        recording = ""
        if run.recording is not None:
            recording = quote(os.path.relpath(run.recording.resolve(), out.resolve()))
        links[run.slug] = (figures.get(run.slug, ""), recording)
    return links


# --- the experiment -----------------------------------------------------------------------------


def _charts(material: Material, drawn: Sequence[Drawn], figures: Path, face: str) -> list[Picture]:
    inks = Inks(flow_names([run.result for run in material.runs]))
    pictures: list[Picture] = []
    with look():
        # Who is ahead when says more than any mean.
        grown = list(_growth(material, drawn, figures, face))
        for each in charts(material.result.statistics, material.result.cases):
            figure = chart.draw(each, inks)
            names = files.save(figure, figures / each.name, files.FORMATS, face)
            pictures.append(
                Picture(
                    each.name,
                    each.title,
                    _caption(each),
                    files.svg(figure, each.name),
                    [path.name for path in names],
                    _width(figure.get_size_inches()[0], lead=not pictures and each.drawn_along),
                )
            )
        pictures = grown + pictures
        pictures += _distributions(material, drawn, figures, face)
    return pictures


def _growth(
    material: Material, drawn: Sequence[Drawn], figures: Path, face: str
) -> Iterator[Picture]:
    by_run = {each.slug: each.growth for each in drawn if each.growth is not None}
    for family, lines in families(material, by_run).items():
        figure = growth_figure.draw(lines)
        name = f"growth-{slug(family)}" if family else "growth"
        paths = files.save(figure, figures / name, files.FORMATS, face)
        yield Picture(
            name,
            f"Acknowledged segments, {family}" if family else "Acknowledged segments",
            "Segments that the flow has brought since it started; of each case one run.",
            files.svg(figure, name),
            [path.name for path in paths],
            _width(figure.get_size_inches()[0]),
        )


def _width(inches: float, *, lead: bool = False) -> str:
    if inches > _COLUMN_IN:
        return "page"
    return "lead" if lead else "column"


def _caption(each: Chart) -> str:
    fewest, most = each.runs
    counts = f"n = {fewest}" if fewest == most else f"n = {fewest} to {most}"
    parts = ["Single runs"]
    if most > 1:
        bars = "" if each.drawn_along else "thick bars: standard deviation; "
        interval = f"thin bars: 95 % confidence interval of the mean (Student's t, {counts})"
        parts = [f"Means; {bars}{interval}; dots: single runs"]
    if each.cut:
        parts.append("intervals that leave the frame are cut")
    if each.published:
        parts.append("diamonds: what was published")
    if each.published_of_all:
        parts.append("dashed: what was published without saying of which")
    return "; ".join(parts) + "."


def _distributions(
    material: Material, drawn: Sequence[Drawn], figures: Path, face: str
) -> list[Picture]:
    by_slug = {each.slug: each.distributions for each in drawn}
    pictures = []
    names = [case.name for case in material.result.statistics]
    for kind, label in KINDS.items():
        by_case: dict[str, Distribution] = {}
        for case in material.result.statistics:
            own = [by_slug[r.slug] for r in material.runs_of(case) if r.slug in by_slug]
            if parts := [each[kind] for each in own if kind in each]:
                by_case[case.name] = together(parts)
        if not by_case:
            continue
        cases = [each for each in material.result.statistics if each.name in by_case]
        panels, ordered = _panels(cases, by_case)
        figure = cdf.draw((label, _OF[kind]), panels, names, ordered=ordered)
        name = f"cdf-{kind}"
        paths = files.save(figure, figures / name, files.FORMATS, face)
        title = f"Distribution of {label.partition(' (')[0]}"
        pictures.append(
            Picture(
                name,
                title,
                _CDF[kind],
                files.svg(figure, name),
                [path.name for path in paths],
                _width(figure.get_size_inches()[0]),
            )
        )
    return pictures


_OF = {"rtt": "share of sweeps", "ping": "share of pings", "delay": "share of sweeps"}
_CDF = {
    "rtt": "Smoothed RTT of the long-lived flows over all sweeps of all runs.",
    "ping": "All answers of all runs.",
    "delay": "Backlog over rate at the bottleneck, over all sweeps of all runs.",
}


def _panels(
    cases: Sequence[CaseStatistics], by_case: dict[str, Distribution]
) -> tuple[list[tuple[str, dict[str, Distribution]]], bool]:
    """Deal cases to panels where they are many: one panel for each value of the shortest axis."""
    known = [axis for axis in axes(cases) if len(axis.values) > 1]
    if len(cases) <= _MOST_LINES or len(known) < 2:
        return [("", {case.name: by_case[case.name] for case in cases})], False
    split = min(known, key=lambda axis: len(axis.values))
    others = [axis for axis in known if axis != split]
    ordered = any(axis.numbers is not None for axis in others)
    panels: dict[str, dict[str, Distribution]] = {}
    for case in cases:
        where = place(case)
        # Names of a single axis, such as algorithms, speak for themselves.
        alone = len(others) == 1 and not ordered
        rest = [say(where[a.name]) if alone else point(a.name, where[a.name]) for a in others]
        title = point(split.name, where[split.name])
        panels.setdefault(title, {})[", ".join(rest)] = by_case[case.name]
    return list(panels.items()), ordered


def _write_table(table: Table, folder: Path) -> None:
    stem = folder / slug(table.name)
    for ending, text in (("md", table.markdown()), ("csv", table.csv()), ("json", table.json())):
        stem.with_name(f"{stem.name}.{ending}").write_text(text, encoding="utf-8", newline="")
