"""The figures of one run: its panels on one time axis, each alone, and the jobs that draw them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ccplay.analysis.results import Checkpoint
from ccplay.analysis.trust import credible
from ccplay.model.events import Hello, LinkChanged
from ccplay.model.series import Series
from ccplay.model.variables import Subject, variable
from ccplay.plots.table import PLOTS, reported
from ccplay.report.data import curves
from ccplay.report.data.charts import growth
from ccplay.report.data.curves import INTERVAL_S, ByteStatistics, Curve, moved, name_of, summaries
from ccplay.report.data.findings import Distribution, distributions
from ccplay.report.data.material import slug
from ccplay.report.data.scene import Scene, Stretch, first_reduction, scene, states, within
from ccplay.report.figures import backgrounds, lines, style
from ccplay.report.figures.backgrounds import shade, state_handles
from ccplay.report.figures.lines import MANY, PlotPart, flow_label, queue_label
from ccplay.report.figures.network_drawing import Graph, graph, loads, paths
from ccplay.report.figures.style import Inks, grid, save
from ccplay.session.archive import read_recording
from ccplay.traffic import is_brief
from ccplay.traffic.connections import Flow
from ccplay.traffic.plot import Plot, Titled, of_variable

# --- the panels of a run's figure, made from the descriptions of plots ----------------------------


class Panel(Titled, frozen=True, kw_only=True):
    """One panel of a run's figure; its ``label`` has the unit."""

    draw: Callable[[Axes], list[Artist]]
    """Function that draws the panel and returns the entries of its legend."""
    window: tuple[float, float] | None = None
    """Start and end of the panel's time axis in seconds; None for the whole run."""
    counts: bool = False
    """Whether the values are whole numbers."""

    @property
    def slug(self) -> str:
        """Name of the panel, reduced to characters that are safe in file names."""
        return slug(self.name)


Drawing: TypeAlias = Callable[..., list[Artist]]
"""Function of axes and a ``part``: it draws a panel and returns the entries of its legend."""


def panels(scene: Scene, inks: Inks, names: Collection[str] = ()) -> list[Panel]:
    """Return the panels for which this run has data, from top to bottom.

    They show the plots that reports draw by default, and those in ``names``.
    """
    found: list[Panel] = []
    for plot in reported(names):
        if not any(lines.has(scene, line) for line in plot.lines):
            continue
        match plot.apart:
            case "flow":
                found += _by_flow(plot, scene, inks)
            case "queue":
                found += _by_queue(plot, scene, inks)
            case _:
                found.append(together(PlotPart(plot, scene, inks, scene.flows)))
    return found


def together(part: PlotPart) -> Panel:
    """Return one panel with all of a run's lines of a plot."""
    plot = part.plot
    name = f"own-{plot.name}" if plot.variable.subject is None else plot.name
    title = (plot.about or plot.title).format(interval=lines.interval(part.scene.span_s))
    if plot.variable.rate is not None and lines.counted(part.scene):
        words = " and ".join(dict.fromkeys(each.word for each in lines.counted(part.scene)))
        title += f", and {words} received" if part.flows else f" of {words} received"
    return _panel(part, name, title)


_DRAWINGS: Mapping[tuple[Subject | None, str], Drawing] = {
    ("flow", "rate"): lines.throughput,
    ("flow", "bars"): lines.transfer,
    ("flow", "total"): lines.acked,
    ("other", "area"): lines.draw_cross_traffic,
}
"""Drawings by subject and style of a plot's last line; style ``rate`` is a line of a derived
variable."""


def _panel(part: PlotPart, name: str, title: str) -> Panel:
    line = part.plot.lines[-1]
    style = "rate" if line.variable.rate and line.style == "line" else line.style
    subject = line.subject if line.subject in (None, "flow", "queue") else "other"
    drawing = _DRAWINGS.get((subject, style), lines.draw)
    whole = line.variable.whole and part.unit == line.variable.unit
    return Panel(
        name=name,
        title=title,
        label=part.label,
        height_in=part.plot.height_in,
        draw=partial(drawing, part=part),
        counts=whole,
    )


def _by_queue(plot: Plot, scene: Scene, inks: Inks) -> list[Panel]:
    alone = len(scene.queues) == 1
    return [
        _panel(
            PlotPart(plot, scene, inks, scene.flows, queue.link),
            plot.name if alone else f"{plot.name}-{queue.link}",
            queue_label(queue.link),
        )
        for queue in scene.queues
    ]


def _by_flow(plot: Plot, scene: Scene, inks: Inks) -> list[Panel]:
    """Return a panel for each flow, and one for all short transfers; if too many, one for all."""
    flows = [each for each in scene.flows if lines.of_flow(each, plot.lines[-1])]
    long = [each for each in flows if not is_brief(each[0])]
    short = [each for each in flows if is_brief(each[0])]
    groups = [[each] for each in long] + ([short] if short else [])
    if len(groups) > MANY:
        groups = [flows]
    top = max((_top(plot, each) for each in long), default=0.0)
    found = []
    for group in groups:
        name = plot.name if len(groups) == 1 else f"{plot.name}-{group[0][0].name}"
        shared = 0.0 if is_brief(group[0][0]) else top
        found.append(_panel(PlotPart(plot, scene, inks, group, top=shared), name, _title(group)))
    return found


def _top(plot: Plot, streams: list[Flow]) -> float:
    """Return a flow's greatest value in the axis's unit; the panels of flows share their scale."""
    variable = plot.variable
    most, (_, factor) = credible(variable.name), variable.axis()
    every = (each.series[variable.series] for each in streams)
    return max((curves.curve(each, factor=factor, most=most).top for each in every), default=0.0)


def _title(group: list[list[Flow]]) -> str:
    if len(group) == 1:
        return flow_label(group[0])
    kind = group[0][0].kind if all(is_brief(each[0]) for each in group) else "flow"
    return f"{kind}s " + ", ".join(each[0].name for each in group)


# --- the panels of own values of algorithms and disciplines, one for each variable ----------------

_MOST = 6
"""Largest number of own values that get a panel, to keep the page short."""

_ELSEWHERE = frozenset(
    line.variable.series for plot in PLOTS.values() for line in plot.lines if line.subject is None
)
"""Names of own values that have a plot of their own, and so need no panel here."""


def own_values(scene: Scene, inks: Inks) -> list[Panel]:
    """Return a panel for each own value that changed.

    If there are too many, each algorithm or discipline gets about the same number of panels.
    """
    extremes: dict[str, set[float]] = {}
    for name, series in _own(scene):
        if name not in _ELSEWHERE:
            found = series.extremes(series.first, series.end) or ()
            extremes.setdefault(name, set()).update(found)
    names = [name for name, found in extremes.items() if len(found) > 1]
    algorithms = [variable(name).algorithm for name in names]
    place = {name: algorithms[:at].count(algorithms[at]) for at, name in enumerate(names)}
    chosen = sorted(names, key=lambda name: place[name])[:_MOST]
    peaks = {name: max(extremes[name]) for name in chosen}
    return [
        together(PlotPart(of_variable(variable(name)), scene, inks, scene.flows, peak=peaks[name]))
        for name in names
        if name in peaks
    ]


def _own(scene: Scene) -> Iterator[tuple[str, Series]]:
    """Yield the own values of each flow's stream and each queue, with their names."""
    for streams in scene.flows:
        for each in streams:
            yield from each.own.items()
    for queue in scene.queues:
        yield from queue.own.items()


# --- the panels of traced flows around their first reduction: each ACK, and the exact states ------

_ZOOM_MOST = 4
"""Largest number of traced flows that get a panel."""


def zoomed(scene: Scene, inks: Inks) -> list[Panel]:
    """Return a panel for each traced flow whose cwnd was reduced, at most four."""
    found = [
        _zoom_panel(scene, streams, flow, stretch, inks[name_of(streams)].colour)
        for streams in scene.flows
        for flow in streams
        if (stretch := first_reduction(flow)) is not None
    ]
    return found[:_ZOOM_MOST]


def _zoom_panel(
    scene: Scene, streams: list[Flow], flow: Flow, stretch: Stretch, colour: str
) -> Panel:
    left, right = (t - scene.start for t in stretch)
    return Panel(
        name=f"zoom-{flow.name}",
        title=f"{flow_label(streams)}, ACK by ACK",
        label="cwnd (segments)",
        height_in=1.6,
        draw=lambda axes: _draw_zoom(axes, scene, flow, stretch, colour),
        window=(left, right),
    )


def _draw_zoom(axes: Axes, scene: Scene, flow: Flow, stretch: Stretch, colour: str) -> list[Artist]:
    if flow.trace is None:
        return []
    exact, threshold = (
        within(flow.trace.series[name], stretch, start=scene.start, most=credible(name))
        for name in ("cwnd", "ssthresh")
    )
    sampled = within(flow.series["cwnd"], stretch, start=scene.start, most=credible("cwnd"))
    seen = shade(axes, states(flow, start=scene.start))
    dotted: dict[str, Any] = {"color": style.MUTED, "linestyle": (0, (1, 1.1))}
    axes.step(threshold.t, threshold.y, where="post", linewidth=0.9, **dotted)
    # Traced values are those before the ACK takes effect, so they hold since the previous ACK.
    axes.step(exact.t, exact.y, where="pre", color=colour, linewidth=0.5, alpha=0.6)
    axes.plot(exact.t, exact.y, ".", markersize=2.2, color=colour)
    circles: dict[str, Any] = {
        "linestyle": "",
        "marker": "o",
        "markersize": 4.0,
        "markerfacecolor": "none",
        "markeredgecolor": style.INK,
        "markeredgewidth": 0.6,
    }
    axes.plot(sampled.t, sampled.y, **circles)
    axes.set_ylim(0, max(exact.top, sampled.top) * 1.12 or 1)
    return [
        Line2D([], [], color=colour, linewidth=0.5, marker=".", markersize=3, label="at each ACK"),
        Line2D([], [], label="sampled", **circles),
        Line2D([], [], label="ssthresh", **dotted),
        *state_handles(seen),
    ]


# --- the figures of one run: all its panels on one time axis, and each panel alone ----------------

_LEFT_IN = 0.62
_RIGHT_IN = 0.14
_BOTTOM_IN = 0.36
_HEAD_IN = 0.17
"""Height in inches of the line above each panel, with its title and its legend."""
_ROW_IN = 0.14
_GAP_IN = 0.09
_ALONE_IN = 1.55
_SECONDS = 4
"""Length of a run in seconds below which its axis has fractions of seconds."""
_TITLE: dict[str, Any] = {
    "xycoords": "axes fraction",
    "textcoords": "offset points",
    "fontsize": 7.5,
    "fontweight": "bold",
    "annotation_clip": False,
}


def stacked(scene: Scene, inks: Inks, names: Collection[str] = ()) -> Figure:
    """Return all panels of a run one above the other, on one time axis.

    ``names`` are plots to draw in addition to those that reports draw by default.
    """
    whole = [*panels(scene, inks, names), *own_values(scene, inks)]
    parts = zoomed(scene, inks)
    shown = [*whole, *parts]
    width = style.PAGE_IN - _LEFT_IN - _RIGHT_IN
    labels = backgrounds.place(scene.marks, scene.span_s, width)
    top = backgrounds.height_in(labels) + (0.06 if labels else 0.0)
    figure = Figure(figsize=(style.PAGE_IN, 1))
    drawn = []
    for panel in shown:
        axes = style.box(figure, 0, 0, 1, 1)
        handles = _draw_panel(axes, panel, scene)
        title = style.text_width_in(panel.title, 7.5, "bold") + 0.2
        columns, rows = _fit(handles, width - title)
        drawn.append((panel, axes, handles, columns, _HEAD_IN + _ROW_IN * max(rows - 1, 0)))
    height = top + sum(p.height_in + head + _GAP_IN for p, *_, head in drawn)
    height += _BOTTOM_IN * (1 + len(parts))
    figure.set_size_inches(style.PAGE_IN, height)
    y = height - top
    for panel, axes, handles, columns, head in drawn:
        y -= head + panel.height_in
        style.move(axes, _LEFT_IN, y, width, panel.height_in)
        _head(axes, panel, handles, columns)
        y -= _GAP_IN
        if panel is shown[0]:
            backgrounds.draw(axes, labels, head + 0.02)
        if panel in whole[:-1]:
            axes.tick_params(bottom=False, labelbottom=False)
        else:
            axes.set_xlabel("time (s)", labelpad=1.5)
            y -= _BOTTOM_IN
        # Labels are aligned, whatever the width of the numbers.
        axes.yaxis.set_label_coords(-0.42 / width, 0.5)
    return figure


def single(scene: Scene, panel: Panel) -> Figure:
    """Return one panel as a figure of the width of a paper's column."""
    width = style.COLUMN_IN - _LEFT_IN - 0.1
    figure = Figure(figsize=(style.COLUMN_IN, 1))
    axes = style.box(figure, 0, 0, 1, 1)
    handles = _draw_panel(axes, panel, scene)
    columns, rows = _fit(handles, width)
    head = _ROW_IN * rows + (0.15 if panel.title else 0) + 0.04
    height = _BOTTOM_IN + _ALONE_IN + head
    figure.set_size_inches(style.COLUMN_IN, height)
    style.move(axes, _LEFT_IN, _BOTTOM_IN, width, _ALONE_IN)
    axes.set_xlabel("time (s)", labelpad=1.5)
    axes.yaxis.set_label_coords(-0.42 / width, 0.5)
    if handles:
        axes.legend(
            handles=handles,
            loc="lower left",
            bbox_to_anchor=(0, 1.0 + 0.02 / _ALONE_IN),
            ncols=columns,
        )
    if panel.title:
        above = 72 * (_ROW_IN * rows + 0.03)
        axes.annotate(panel.title, (0, 1), xytext=(0, above), va="bottom", **_TITLE)
    return figure


def _draw_panel(axes: Axes, panel: Panel, scene: Scene) -> list[Artist]:
    handles = panel.draw(axes)
    left, right = panel.window or (0.0, scene.span_s)
    axes.set_xlim(left, right)
    axes.set_ylabel(panel.label)
    whole = panel.window is None and right >= _SECONDS
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10], integer=whole))
    axes.yaxis.set_major_locator(
        MaxNLocator(5, steps=[1, 2, 2.5, 5, 10], min_n_ticks=3, integer=panel.counts)
    )
    grid(axes)
    backgrounds.rule(axes, [each for each in scene.marks if left <= each[0] <= right])
    return handles


def _head(axes: Axes, panel: Panel, handles: Sequence[Artist], columns: int) -> None:
    """Write a panel's title at the left and its legend at the right of the line above it."""
    if panel.title:
        paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
        axes.annotate(panel.title, (0, 1), xytext=(0, 2.5), bbox=paper, **_TITLE)
    if handles:
        axes.legend(handles=list(handles), loc="lower right", bbox_to_anchor=(1, 1), ncols=columns)


def _fit(handles: Sequence[Artist], width_in: float) -> tuple[int, int]:
    """Return the numbers of columns and rows with which a legend fits into a width."""
    if not handles:
        return 1, 0
    columns = style.legend_columns([str(each.get_label()) for each in handles], width_in + 0.1)
    return columns, -(-len(handles) // columns)


# --- the jobs of a report's worker processes, each of which draws one recorded run ----------------


class RunJob(msgspec.Struct, frozen=True):
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
    """Folder that ``write_fonts`` returned."""
    checkpoint: Checkpoint | None
    plots: tuple[str, ...] = ()
    """Plots to draw in addition to those that reports draw by default."""


class RunDrawing(msgspec.Struct, frozen=True):
    """The result of a job."""

    slug: str
    svg: str
    """Figure with all panels for the page; empty if the run is not shown in full."""
    files: list[str]
    distributions: Mapping[tuple[str, str], Distribution] = {}
    growth: Curve | None = None
    """Acknowledged segments of the run's only flow over time; None if it had several or none."""
    events: Sequence[tuple[float, str]] = ()
    """Entries of the event log with their moments in seconds on the figures' axis."""
    hello: Hello | None = None
    links: Mapping[str, LinkChanged] = {}
    """Settings of each direction of a link when the network was ready, by name."""
    intervals: Sequence[ByteStatistics] = ()
    """Statistics of the bytes that each traffic moved per second."""
    graph: Graph | None = None
    """Network with its load; None if it is unknown or can't be drawn."""


def draw_run(job: RunJob) -> RunDrawing:
    """Draw a run into files. Raises ``RecordingError`` or ``OSError``."""
    style.use_fonts(job.fonts)
    state = read_recording(job.recording)
    shown, inks = scene(state, job.checkpoint), Inks(job.names)
    start, face = shown.start, style.font_face(job.fonts)
    formats = style.FORMATS if job.every_file else ("svg",)
    with style.look():
        saved = save(stacked(shown, inks, job.plots), job.folder / job.slug, formats, face)
        files = list(saved.files)
        single_panels = [
            *panels(shown, inks, job.plots),
            *own_values(shown, inks),
            *zoomed(shown, inks),
        ]
        for panel in single_panels if job.every_file else ():
            stem = job.folder / f"{job.slug}-{panel.slug}"
            files += save(single(shown, panel), stem, formats, face).files
    known = {link: found for link in state.links if (found := state.link_at(link, start))}
    drawn: Graph | None = None
    if state.hello is not None:
        built = state.hello.network
        drawn = graph(built, known, loads(state, built, start), paths(state, built))
    return RunDrawing(
        slug=job.slug,
        svg=saved.svg if job.full else "",
        files=files,
        distributions=distributions(state),
        growth=growth(state),
        events=[
            (max(entry.t - start, 0.0), entry.text)
            for entry in sorted(state.log, key=lambda entry: entry.t)
        ],
        hello=state.hello,
        links=known,
        intervals=summaries(moved(state, start, start + shown.span_s, INTERVAL_S)),
        graph=drawn,
    )
