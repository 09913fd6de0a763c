"""The report's page: one self-contained HTML file."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import msgspec
from markupsafe import Markup

from ccplay import __version__
from ccplay.analysis.results import CaseStatistics
from ccplay.model.events import Hello, LinkChanged
from ccplay.report.data import intervals
from ccplay.report.data.families import by_family
from ccplay.report.data.findings import Column, Finding, agreement, citations, columns, findings
from ccplay.report.data.intervals import Summary
from ccplay.report.data.material import Material, Run, as_written, slug
from ccplay.report.data.naming import words
from ccplay.report.page import machine, run_tables, sections
from ccplay.report.page.environment import environment, style_sheet

_MANY = 9
"""Smallest number of cases for which the page has an index."""
_LONG = 20
"""Largest number of rows of a table that is not folded."""
_DRAWN = "congestion window, queue, round-trip time and goodput over time"


class _Entry(msgspec.Struct, frozen=True):
    """An entry in the index of cases."""

    family: str
    cases: list[tuple[str, str]]
    """Anchors of cases on the page, with the names of the cases."""


class Picture(msgspec.Struct, frozen=True):
    """A figure on the page."""

    slug: str
    title: str
    caption: str
    svg: str
    files: list[str]
    width: str = "column"
    """Width: ``column``, ``page`` for the page's width, or ``lead`` for the main figure."""


class Shown(msgspec.Struct, frozen=True):
    """A run that is shown in full."""

    svg: str
    files: list[str]
    events: list[tuple[float, str]]
    hello: Hello | None
    links: dict[str, LinkChanged]
    network: str
    """Drawing of the network as SVG; empty for none."""
    intervals: Sequence[Summary] = ()
    """Statistics of the bytes that each traffic moved per second."""


def render(
    material: Material,
    *,
    charts: Sequence[Picture],
    shown: Mapping[str, Shown],
    table_files: Mapping[str, Sequence[str]],
    font_face: str,
    links: Mapping[str, tuple[str, str]],
) -> str:
    """Return the page.

    ``shown`` has the runs to show in full by slug, ``links`` the addresses of each run's figure and
    recording relative to the page, empty for none. ``table_files`` has the extensions of each
    table's files.
    """
    result = material.result
    checks = sections.checks(result)
    anchors = _anchors(result.statistics)
    found: dict[str, list[Finding]] = {}
    for each in findings(result):
        found.setdefault(each.case.name, []).append(each)
    cases = [
        _case(material, case, anchor, shown, (found.get(case.name, []), links))
        for case, anchor in zip(result.statistics, anchors, strict=True)
    ]
    first = next(iter(shown.values()), None)
    first_case = result.statistics[0].name if result.statistics else ""
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            version=__version__,
            # Markup of our own: the style sheet, the font and the figures, which escape names.
            css=style_sheet(),
            font_face=Markup(font_face),  # noqa: S704
            charts=[_as_markup(each) for each in charts],
            material=material,
            about=[" ".join(part.split()) for part in material.about.split("\n\n") if part.strip()],
            summary=_summary(material, first.hello if first else None),
            families=sections.families(result),
            has_published=any(each.published for each in findings(result)),
            has_spread=any(f.n > 1 for case in result.statistics for f in case.metrics.values()),
            agreement=agreement(result),
            citations=citations(result),
            notes=sections.notes(result),
            troubles=sections.troubles(result),
            checks=checks,
            checked=sum(each.verdict.total for each in checks),
            held=sum(each.verdict.held for each in checks),
            cases=cases,
            index=_index(result.statistics, anchors),
            long_table=_LONG,
            tables=run_tables.grids(result),
            table_files=table_files,
            drawn=material.whose if material.is_large and len(shown) < len(material.runs) else "",
            machine=machine.machine(material, first.hello if first else None),
            drawing=_drawn(first_case, first) if first else None,
            network=machine.network(first_case, first.hello, first.links) if first else None,
            health=run_tables.health(result),
            kept=sum(each.health.trustworthy for each in (*result.cases, *result.discarded)),
            links=_links,
        )
    )


DRAWING = "network.svg"
"""File name of the network's drawing among the figures."""


def _drawn(case: str, shown: Shown) -> dict[str, object] | None:
    """Return the drawing of a case's network; None if there is none."""
    if not shown.network:
        return None
    text = f"The network of the case {case}, as built"
    return {"svg": _labelled(shown.network, text), "caption": text, "files": [DRAWING]}


def _as_markup(picture: Picture) -> dict[str, object]:
    return {
        "slug": picture.slug,
        "title": picture.title,
        "caption": picture.caption,
        "svg": _labelled(picture.svg, f"{picture.title}. {picture.caption}"),
        "files": picture.files,
        "width": picture.width,
    }


def _labelled(svg: str, text: str) -> Markup:
    """Return a figure as markup with a description for screen readers."""
    head, tag, rest = svg.partition("<svg ")
    label = Markup('role="img" aria-label="{}" ').format(text)
    return Markup(head + tag) + label + Markup(rest)  # noqa: S704 - matplotlib escapes all text


def _links(files: Sequence[str]) -> Markup:
    """Return links to a figure's files, labelled with their formats."""
    links = [
        Markup('<a href="{}">{}</a>').format(f"figures/{quote(name)}", name.rpartition(".")[2])
        for name in files
    ]
    return Markup("({})").format(Markup(", ").join(links)) if links else Markup("")


def _summary(material: Material, hello: Hello | None) -> str:
    result = material.result
    runs, cases = len(result.cases), len(result.statistics)
    parts = [f"{runs} run{'s' if runs != 1 else ''} of {cases} case{'s' if cases != 1 else ''}"]
    if hello is not None:
        day = dt.datetime.fromtimestamp(hello.wall_time, dt.UTC)
        parts.append(f"{day:%Y-%m-%d %H:%M} UTC")
    if result.machine is not None:
        parts.append(f"Linux {result.machine.kernel}")
        parts.append(f"ccplay {result.machine.ccplay}")
    return " · ".join(parts)


def _anchors(cases: Sequence[CaseStatistics]) -> list[str]:
    """Return each case's anchor on the page; equal names are numbered."""
    seen: dict[str, int] = {}
    found = []
    for case in cases:
        name = f"case-{slug(case.name)}"
        number = seen[name] = seen.get(name, 0) + 1
        found.append(f"{name}.{number}" if number > 1 else name)
    return found


def _index(cases: Sequence[CaseStatistics], anchors: Sequence[str]) -> list[_Entry]:
    """Return links to the cases, family by family; none if there are only a few."""
    if len(cases) < _MANY:
        return []
    where = dict(zip((case.name for case in cases), anchors, strict=True))
    return [
        _Entry(
            family,
            [
                (
                    where[each.name],
                    ", ".join(map(as_written, each.parameters.values())) or each.name,
                )
                for each in members
            ],
        )
        for (family, _), members in by_family(cases).items()
    ]


def _case(
    material: Material,
    case: CaseStatistics,
    anchor: str,
    shown: Mapping[str, Shown],
    known: tuple[Sequence[Finding], Mapping[str, tuple[str, str]]],
) -> dict[str, object]:
    found, links = known
    runs = material.runs_of(case)
    full = material.representative(case)
    full = full if full and full.slug in shown else None
    heads = columns(found)
    return {
        "slug": anchor,
        "name": case.name,
        "about": material.about_cases.get(case.name, ""),
        "columns": heads,
        "chosen_by": words(case.reported[0]).text if case.reported and len(runs) > 1 else "",
        "shown": _shown(full, shown[full.slug]) if full else None,
        "runs": [_run(run, heads, links.get(run.slug, ("", ""))) for run in runs],
    }


def _shown(run: Run, found: Shown) -> dict[str, object]:
    # Files of the whole figure come first, because single panels have many.
    stacked = [name for name in found.files if name.startswith(f"{run.slug}.")]
    panels: dict[str, list[str]] = {}
    for name in found.files:
        if name not in stacked:
            panel = name.removeprefix(f"{run.slug}-").rpartition(".")[0]
            panels.setdefault(panel, []).append(name)
    return {
        "svg": _labelled(found.svg, f"{run.result.name}, run {run.result.repeat}: {_DRAWN}"),
        "repeat": run.result.repeat,
        "files": stacked,
        "panels": list(panels.items()),
        "events": found.events,
        "intervals": [
            [column.cell(row) for column in intervals.TABLE.columns] for row in found.intervals
        ],
        "interval_heads": [column.title for column in intervals.TABLE.columns],
    }


def _run(run: Run, heads: Sequence[Column], links: tuple[str, str]) -> dict[str, object]:
    again = f", attempt {run.result.attempt}" if run.result.attempt > 1 else ""
    return {
        "label": f"{run.result.repeat}{again}",
        "measured": sections.values(run, heads),
        "trustworthy": run.result.health.trustworthy,
        "reasons": "; ".join(run.result.health.reasons),
        "figure": links[0],
        "recording": links[1],
    }
