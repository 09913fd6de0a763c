"""The page of an evaluation: one self-contained HTML file for a reader of five minutes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from markupsafe import Markup, escape

from ccplay import __version__
from ccplay.errors import CcplayError, RecordingError
from ccplay.evaluation.criteria import (
    CriterionResult,
    Evaluation,
    Figure,
    Judged,
    Measured,
    Verdict,
    in_order,
    section_of,
    write_figure,
    write_value,
)
from ccplay.files import writing
from ccplay.report.data.curves import bins, flow_groups, transfers
from ccplay.report.data.naming import words, write
from ccplay.report.figures.style import FLOWS
from ccplay.report.page.page import environment, style_sheet
from ccplay.session.archive import read_recording
from ccplay.state.lab_state import LabState
from ccplay.traffic import VARIABLES

PAGE = "index.html"

_MOST_PANELS = 6
"""Greatest number of runs that are drawn for a criterion."""
_WIDTH, _HEIGHT = 240, 92
_LEFT, _BOTTOM = 30, 14
_BIN_S = 0.5
_STYLES: dict[Verdict, str] = {
    "pass": "v-pass",
    "fail": "v-fail",
    "unclear": "v-unclear",
    "not judged": "v-judged",
    "not evaluated": "v-not",
}


class _Grid(msgspec.Struct, frozen=True):
    """A measure of all subjects at all points."""

    title: str
    heads: list[str]
    rows: list[tuple[str, list[tuple[str, str]]]]
    note: str


class _Row(msgspec.Struct, frozen=True):
    """A criterion on the page."""

    found: CriterionResult
    lines: list[tuple[Measured, list[Measured | None]]] = []
    """Each measure of the subject, and that of the others; None for those without runs."""
    tables: list[_Grid] = []
    panels: list[tuple[Markup, str]] = []
    """Runs drawn small, with their captions."""
    case: str = ""
    """Option of the command that repeats the point that decided alone."""


class _Cell(msgspec.Struct, frozen=True):
    """A cell of a heat map."""

    text: str
    colour: str
    ink: str
    title: str


class _Heat(msgspec.Struct, frozen=True):
    """A heat map: a row for each pair, a column for each point."""

    title: str
    about: str
    heads: list[str]
    rows: list[tuple[str, list[_Cell]]]


def write_page(evaluation: Evaluation, out: Path) -> Path:
    """Write the page of an evaluation into its directory; return its path.

    Raises ``RecordingError`` if it can't be written.
    """
    page = out / PAGE
    with writing.explained(page, RecordingError):
        writing.write(page, render(evaluation, out), replace=True)
    return page


def render(evaluation: Evaluation, out: Path) -> str:
    """Return the page; recordings are read from the directory ``out``."""
    others = evaluation.against
    rows = [_row(each, others, out, evaluation.kind) for each in in_order(evaluation.criteria)]
    rows += [_row(each.as_result(), others, out, evaluation.kind) for each in evaluation.left_out]
    rows.sort(key=lambda row: section_of(row.found))
    found = evaluation.machine
    machine = (
        []
        if found is None
        else [
            ("kernel", f"Linux {found.kernel}"),
            ("cores", str(found.cpus)),
            ("delay by", ", ".join(found.delay_engines) or "no link delays"),
            ("sampling", f"{found.sample_hz:g} samples per second"),
            ("versions", f"ccplay {found.ccplay}, Python {found.python}"),
        ]
    )
    facts = [f"ccplay {__version__}", f"beside {', '.join(others)}" if others else ""]
    facts += [f"Linux {found.kernel}"] if found else []
    return (
        environment()
        .get_template("evaluation.html.j2")
        .render(
            css=style_sheet(),
            styles=_STYLES,
            at=_at,
            write_figure=write_figure,
            subject=evaluation.subject,
            facts=" · ".join(filter(None, facts)),
            summary=evaluation.counts(),
            musts=evaluation.failed_musts,
            quick=evaluation.quick,
            changes=evaluation.changes,
            others=[(each, evaluation.counts(each)) for each in others],
            rows=rows,
            heats=[heat for each in evaluation.criteria for heat in _heats(each)],
            machine=machine,
        )
    )


# --- rows and tables ------------------------------------------------------------------------------


def _row(found: CriterionResult, others: Sequence[str], out: Path, kind: str) -> _Row:
    if not found.judged:
        return _Row(found)
    ours = found.judged[0]
    by_name = {each.subject: each.measures for each in found.judged}
    lines = [
        (measured, [by_name[name][number] if name in by_name else None for name in others])
        for number, measured in enumerate(ours.measures)
    ]
    name = ", ".join(filter(None, [f"{kind} {ours.subject}", _at(ours.deciding.worst)]))
    case = f"--case {shlex.quote(name)}"
    return _Row(found, lines, list(_grids(found.judged)), list(_panels(ours, out)), case)


def _at(figure: Figure) -> str:
    return ", ".join(f"{axis} {value}" for axis, value in figure.at.items())


def _grids(judged: Sequence[Judged]) -> Iterator[_Grid]:
    for number, first in enumerate(judged[0].measures):
        measures = [each.measures[number] for each in judged]
        points = list(dict.fromkeys(_at(e) for measured in measures for e in measured.figures))
        rows = []
        for point in points:
            cells = []
            for measured in measures:
                here = next((e for e in measured.figures if _at(e) == point), None)
                shown = here and (measured is first or here.verdict != "pass")
                style = _STYLES[here.verdict] if here and shown else ""
                cells.append((_figure(first, here), style))
            rows.append((point or "all", cells))
        note = f"Holds if {first.bound}: {first.reason}."
        yield _Grid(first.text, [each.subject for each in judged], rows, note)


def _figure(measured: Measured, figure: Figure | None) -> str:
    """Return a figure with its interval, marked if it rests on runs that can't be trusted."""
    if figure is None:
        return ""
    text = write_figure(measured, figure)
    return f"{text} !" if figure.untrustworthy else text


# --- heat maps ------------------------------------------------------------------------------------


def _heats(found: CriterionResult) -> Iterator[_Heat]:
    """Yield a map for each relative measure of a criterion whose subjects compete in pairs."""
    beside = "beside"
    for number, first in enumerate(found.judged[0].measures if found.judged else ()):
        if not all(beside in each.at for each in first.figures) or len(first.figures) < 2:
            continue
        heads = list(dict.fromkeys(_without(each, beside) for each in first.figures))
        relative = any(each.alone != each.value for each in first.figures)
        rows = []
        for judged in found.judged:
            figures = judged.measures[number].figures
            for other in dict.fromkeys(each.at[beside] for each in figures):
                own = {_without(e, beside): e for e in figures if e.at[beside] == other}
                cells = [_cell(first.metric, own.get(head)) for head in heads]
                rows.append((f"{judged.subject} → {other}", cells))
        yield _Heat(
            # A relative measure is drawn as it is alone, under the name of its metric.
            title=words(first.metric).quantity.capitalize() if relative else first.text,
            about=f"{found.title}: {first.metric}",
            heads=heads,
            rows=rows,
        )


def _without(figure: Figure, axis: str) -> str:
    return ", ".join(value for name, value in figure.at.items() if name != axis)


def _cell(metric: str, figure: Figure | None) -> _Cell:
    if figure is None or figure.alone is None:
        return _Cell("–", "#f5f5f3", "#5a5a5a", figure.why if figure else "")
    share = min(max(figure.alone, 0.0), 1.0)
    # White to a dark red, which is as readable in grey.
    red, green, blue = (round(255 + (end - 255) * share) for end in (150, 20, 40))
    ink = "#fff" if share > 0.55 else "#1a1a1a"
    mark = " !" if figure.untrustworthy else ""
    text = f"{figure.alone:.2f}{mark}"
    return _Cell(text, f"rgb({red},{green},{blue})", ink, write(metric, figure.alone))


# --- small pictures of the runs behind a verdict --------------------------------------------------


def _panels(judged: Judged, out: Path) -> Iterator[tuple[Markup, str]]:
    """Yield a small picture of the first run at each point with its caption, the worst first."""
    measured = judged.deciding
    figures = sorted(measured.figures, key=lambda each: each is not measured.worst)
    for figure in [each for each in figures if each.recording][:_MOST_PANELS]:
        try:
            state = read_recording(out / str(figure.recording))
        except (CcplayError, OSError):
            continue
        value = write_value(measured.metric, measured.bound, figure.value)
        yield _picture(state), f"{_at(figure) or judged.subject}: {measured.text} {value}"


def _picture(state: LabState) -> Markup:
    """Return goodput of the flows over time as SVG."""
    start = state.ready_at or 0.0
    end = max(state.now, start + _BIN_S)
    edges = bins(start, end, _BIN_S)
    acked = VARIABLES["flow"]["bytes_acked"]
    lines = []
    for streams in (each for each in flow_groups(state) if each[0].kind == "flow"):
        moved = transfers(streams, edges, acked)
        rates = [8 * each / _BIN_S / 1e6 for each in moved]
        lines.append((streams[0].cc, rates, streams[0].started, streams[0].ended or end))
    most = max((rate for _, rates, *_ in lines for rate in rates), default=0.0) or 1.0
    wide, high = _WIDTH - _LEFT - 6, _HEIGHT - _BOTTOM - 8

    def place(t: float, rate: float) -> str:
        x = _LEFT + wide * (t - start) / (end - start)
        return f"{x:.1f},{8 + high * (1 - rate / most):.1f}"

    inks: dict[str, str] = {}
    paths = []
    for number, (cc, rates, since, until) in enumerate(lines):
        inks.setdefault(cc, colour := FLOWS[number % len(FLOWS)])
        middles = [(edge + _BIN_S / 2, rate) for edge, rate in zip(edges, rates, strict=False)]
        inside = [place(t, each) for t, each in middles if since <= t <= min(until, end)]
        paths.append(
            f'<polyline points="{" ".join(inside)}" fill="none" stroke="{colour}" '
            'stroke-width="1.2"/>'
        )
    names = "".join(f'<tspan fill="{each}"> {escape(cc)}</tspan>' for cc, each in inks.items())
    foot = 8 + high
    body = (
        f'<line x1="{_LEFT}" y1="{foot}" x2="{_WIDTH - 6}" y2="{foot}" stroke="#d9d9d9"/>'
        f'<text x="{_LEFT - 4}" y="14" text-anchor="end">{most:.3g}</text>'
        f'<text x="{_LEFT - 4}" y="{foot}" text-anchor="end">0</text>'
        f'<text x="{_WIDTH - 6}" y="{_HEIGHT - 3}" text-anchor="end">{end - start:.0f} s</text>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 3}">Mbit/s: {names}</text>{"".join(paths)}'
    )
    # Markup of our own: names are escaped, everything else is a number.
    return Markup(f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">{body}</svg>')  # noqa: S704
