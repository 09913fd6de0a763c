"""The jobs of a report's worker processes: draw one recorded run, or one figure of all runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
from matplotlib.figure import Figure

from ccplay.analysis.results import Checkpoint
from ccplay.model.events import Hello, LinkChanged
from ccplay.report.data.charts import growth
from ccplay.report.data.curves import INTERVAL_S, Curve, Summary, moved, summaries
from ccplay.report.data.findings import Distribution, distributions
from ccplay.report.data.scene import Load, Scene, loads, paths, scene
from ccplay.report.figures import run, svg
from ccplay.report.figures.run import own_values, panels, zoomed
from ccplay.report.figures.style import Inks, look
from ccplay.report.figures.svg import FORMATS, Saved, save
from ccplay.session.archive import read_recording
from ccplay.state.lab_state import Entry


class Job(msgspec.Struct, frozen=True):
    """One run to draw."""

    recording: Path
    folder: Path
    """Folder for the run's files."""
    slug: str
    """Prefix of the files' names."""
    names: tuple[str, ...]
    """Names of all flows and downloads of the report, so that each keeps its colour."""
    full: bool
    """Whether the page shows the run in full."""
    every_file: bool
    """Whether to write every format, and each panel as a file of its own, rather than one SVG."""
    fonts: Path
    """Folder that ``fonts.cut`` returned."""
    checkpoint: Checkpoint | None
    plots: tuple[str, ...] = ()
    """Plots to draw in addition to those that reports draw by default."""


class Drawn(msgspec.Struct, frozen=True):
    """The result of a job."""

    slug: str
    svg: str
    """Figure with all panels for the page; empty if the run is not shown in full."""
    files: list[str]
    distributions: dict[str, Distribution]
    growth: Curve | None
    """Acknowledged segments of the run's only flow over time; None if it had several or none."""
    events: list[Entry]
    start: float
    """Moment of the stream in seconds at which the figures' axis is 0."""
    hello: Hello | None
    intervals: list[Summary]
    """Statistics of the bytes that each traffic moved per second."""
    links: dict[str, LinkChanged]
    """Settings of each direction of a link when the network was ready, by name."""
    loads: dict[str, Load] = msgspec.field(default_factory=dict)
    """Load of each observed direction of a link, by name."""
    paths: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """Nodes crossed by each flow's packets."""


class Overview(msgspec.Struct, frozen=True):
    """A job that draws a figure of all runs together."""

    name: str
    """Name of the figure's files."""
    title: str
    caption: str
    figure: Callable[[], Figure]
    """Function that draws the figure, in another process."""
    lead: bool = False
    """Whether this is the main figure."""


def draw_overview(overview: Overview, folder: Path, cut: Path) -> Saved:
    """Draw a figure of all runs into files. Raises ``OSError``."""
    svg.use(cut)
    with look():
        return save(overview.figure(), folder / overview.name, FORMATS, svg.face(cut))


def draw(job: Job) -> Drawn:
    """Draw a run into files. Raises ``RecordingError`` or ``OSError``."""
    svg.use(job.fonts)
    state = read_recording(job.recording)
    shown = scene(state, job.checkpoint)
    inks = Inks(job.names)
    face = svg.face(job.fonts)
    with look():
        figure = run.stacked(shown, inks, job.plots)
        formats = FORMATS if job.every_file else ("svg",)
        saved = save(figure, job.folder / job.slug, formats, face)
        singles = _singles(job, shown, inks, face) if job.every_file else []
    return Drawn(
        slug=job.slug,
        svg=saved.svg if job.full else "",
        files=[*saved.files, *singles],
        distributions=distributions(state),
        growth=growth(state),
        events=sorted(state.log, key=lambda entry: entry.t),
        start=shown.start,
        hello=state.hello,
        intervals=summaries(moved(state, shown.start, shown.start + shown.span_s, INTERVAL_S)),
        links={
            link: found
            for link in state.links
            if (found := state.link_at(link, shown.start)) is not None
        },
        loads=loads(state, shown.start),
        paths=paths(state),
    )


def _singles(job: Job, shown: Scene, inks: Inks, face: str) -> list[str]:
    return [
        name
        for panel in [
            *panels(shown, inks, job.plots),
            *own_values(shown, inks),
            *zoomed(shown, inks),
        ]
        for name in save(
            run.single(shown, panel), job.folder / f"{job.slug}-{panel.slug}", FORMATS, face
        ).files
    ]
