"""The report's page: one self-contained HTML file."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ccplay import __version__
from ccplay.analysis.metrics import metric_of
from ccplay.analysis.results import CaseStatistics, Result
from ccplay.analysis.trust import HEALTH
from ccplay.model.columns import UNKNOWN, ResultTable
from ccplay.model.events import Hello, LinkChanged
from ccplay.model.values import Capabilities
from ccplay.model.wording import describe_link, describe_qdisc
from ccplay.report.data import curves
from ccplay.report.data.findings import (
    FamilyFinding,
    Finding,
    MetricColumn,
    Verdict,
    agreement,
    citations,
    columns,
    family_findings,
    findings,
    misbehaviours,
    run_name,
    unmeasured,
    verdicts,
)
from ccplay.report.data.material import Material, Run, as_written, slug
from ccplay.report.data.naming import by_family, some_of, words
from ccplay.report.data.report_tables import result_tables
from ccplay.report.figures.run_figures import RunDrawing
from ccplay.report.figures.style import Overview, Saved

# --- the Jinja environment and the style sheet of all pages ---------------------------------------

_TEMPLATES = Path(__file__).parent / "templates"


def environment() -> Environment:
    """Return an environment that escapes every value and refuses undefined ones."""
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def style_sheet() -> Markup:
    """Return the style sheet of all pages."""
    return Markup((_TEMPLATES / "page.css").read_text(encoding="utf-8"))  # noqa: S704 - ours


# --- the machines and the network of a report's runs, as plain rows of text -----------------------


def machine(material: Material, hello: Hello | None) -> list[tuple[str, str]]:
    """Return facts about the labs' machines, which may explain differences between results."""
    found = material.result.machine
    facts: list[tuple[str, str]] = []
    if found is not None:
        facts += [
            ("kernel", f"Linux {found.kernel}"),
            ("cores", str(found.cpus) if found.cpus else UNKNOWN),
            ("privilege", found.privilege),
            ("delay by", ", ".join(found.delay_engines) or "no link delays"),
            ("segmentation offloads", "on" if found.offloads else "off"),
            ("sampling", f"{found.sample_hz:g} samples per second"),
            ("versions", f"ccplay {found.ccplay}, Python {found.python}"),
        ]
    runs = Counter(run.machine for run in material.result.cases)
    facts += [
        (f"machine {each.name}", f"{runs[each.name]} runs; Linux {each.kernel}, {each.cpus} cores")
        for each in material.result.machines
    ]
    facts += [("effect of the machine", str(each)) for each in material.result.machine_effects]
    if hello is not None:
        facts += _capabilities(hello.capabilities)
    return facts


def _capabilities(offered: Capabilities) -> list[tuple[str, str]]:
    kinds = (
        ("congestion control algorithms", offered.congestion_controls),
        ("queueing disciplines", offered.qdiscs),
        ("tools", offered.tools),
    )
    return [
        (name, ", ".join(each.name for each in features if each.available))
        for name, features in kinds
        if any(each.available for each in features)
    ]


def network(case: str, hello: Hello | None, links: Mapping[str, LinkChanged]) -> Grid | None:
    """Return a table of each direction of a link with its settings; None if they are unknown."""
    if hello is None or not links:
        return None
    address = {node.name: node.address for node in hello.network.nodes}
    rows = []
    for link in hello.network.links:
        change = links.get(link.name)
        if change is None:
            continue
        setting = change.setting
        observed = link.name in hello.network.observed
        rows.append(
            [
                f"{link.src} → {link.dst}" + (" (bottleneck)" if observed else ""),
                f"{address.get(link.src, '')} → {address.get(link.dst, '')}",
                describe_link(setting) or "unlimited",
                describe_qdisc(setting.qdisc) if setting.qdisc else UNKNOWN,
                change.delay_engine if change.delay_engine != "none" else UNKNOWN,
            ]
        )
    heads = ("link", "addresses", "rate, delay", "queue", "delay by")
    return Grid(case, [(head, "") for head in heads], rows, [True] * len(heads))


# --- the findings, checks and troubles of a report's page as rows of text -------------------------


class Family(msgspec.Struct, frozen=True):
    """The table of a family of cases, which share a name and axes."""

    name: str
    heads: list[str]
    columns: list[MetricColumn]
    rows: list[tuple[list[str], int, dict[str, Finding]]]
    """Of each case its labels, the number of its runs, and its findings by metric."""
    published: dict[str, FamilyFinding]
    """Published values of the family as a whole by metric; empty if there are none."""


def families(result: Result) -> list[Family]:
    """Return the findings as tables: a row per case, a column per metric."""
    by_case: dict[str, dict[str, Finding]] = {}
    for found in findings(result):
        by_case.setdefault(found.case.name, {})[found.metric] = found
    whole: dict[str, dict[str, FamilyFinding]] = {}
    for reading in family_findings(result):
        whole.setdefault(reading.family, {})[reading.metric] = reading
    tables = []
    for (name, axes), cases in by_family(result.statistics).items():
        rows = [
            (
                [as_written(each) for each in case.parameters.values()] or [case.name],
                case.runs,
                by_case.get(case.name, {}),
            )
            for case in cases
        ]
        heads = columns(each for *_, own in rows for each in own.values())
        published = whole.get(name, {}) if axes else {}
        tables.append(Family(name, list(axes) or ["case"], heads, rows, published))
    return tables


def notes(result: Result) -> list[str]:
    """Return the reasons why our values may differ from published ones, each once for a metric."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for each in findings(result):
        for note in each.notes:
            grouped.setdefault((words(each.metric).text, note), []).append(each.case.name)
    of_families = [
        ", ".join(part for part in (each.family, words(each.metric).text) if part) + f": {note}"
        for each in family_findings(result)
        for note in each.notes
    ]
    return of_families + [
        f"{first}{f' and {len(others)} more' if others else ''}, {metric}: {note}"
        for (metric, note), (first, *others) in grouped.items()
    ]


class Expected(msgspec.Struct, frozen=True):
    """An expectation of the scenario, and its outcome."""

    cases: str
    """Names of the cases that were checked; empty for all cases."""
    words: str
    """Printed name of the metric."""
    verdict: Verdict
    failed: list[str]
    """Runs in which the expectation did not hold, with their values."""


def check_rows(result: Result) -> list[Expected]:
    """Return each expectation once, with the runs in which it did not hold."""
    return [
        Expected(
            some_of(each.cases, result.statistics),
            words(each.check.metric).text,
            each,
            [f"{run_name(failure.run)}: {failure.value}" for failure in each.failed],
        )
        for each in verdicts(result.cases)
    ]


def troubles(result: Result) -> list[str]:
    """Return the reasons to doubt the values: failures, and runs that can't be trusted."""
    problems = [str(each) for each in result.machine_effects if each.differs]
    problems += unmeasured(result.statistics, result.cases)
    for run in result.cases:
        name = f"{run.name}, run {run.repeat}"
        problems += [f"{name}: {each}" for each in (*run.errors, *misbehaviours(run))]
        if run.interrupted:
            problems.append(f"{name}: interrupted")
        if not run.health.trustworthy:
            problems.append(f"{name}: {'; '.join(run.health.reasons)}")
    if again := result.discarded:
        runs = "1 run was" if len(again) == 1 else f"{len(again)} runs were"
        first = "" if len(again) == 1 else ", the first"
        why = "; ".join(again[0].health.reasons)
        problems.append(f"{runs} repeated{first} because {why}; see below.")
    return problems


def values(run: Run, heads: Sequence[MetricColumn]) -> list[str]:
    """Return the values of metrics in one run as text."""
    return [
        UNKNOWN if (value := metric_of(run.result, each.metric)) is None else each.unit.write(value)
        for each in heads
    ]


# --- tables of runs on a report's page: results, and the health of each run's lab -----------------

MOST_ROWS = 60
"""Largest number of rows in a table on the page; its file has all rows."""
Head: TypeAlias = tuple[str, str]
"""Name and unit of a column."""


class Grid(msgspec.Struct, frozen=True):
    """A table of text."""

    title: str
    heads: list[Head]
    rows: list[list[str]]
    left: list[bool]
    """Whether each column has words, which are left-aligned, rather than numbers."""
    left_out: int = 0


def grids(result: Result) -> list[Grid]:
    """Return the tables of runs that have rows."""
    several = len(result.cases) > 1
    return [
        _grid(table, [([run.name, str(run.repeat)] if several else [], row) for run, row in rows])
        for table, rows in result_tables(result.cases)
    ]


def health(result: Result) -> Grid:
    """Return the timing of each run's lab."""
    rows = [([run.name, str(run.repeat)], run.health) for run in result.cases]
    rows += [
        ([run.name, f"{run.repeat} (attempt {run.attempt})"], run.health)
        for run in result.discarded
    ]
    return _grid(HEALTH, rows, 4 * MOST_ROWS)


def _grid(
    table: ResultTable, rows: Sequence[tuple[list[str], object]], most: int = MOST_ROWS
) -> Grid:
    """Return a described table as text; each row has the names of its case and run, or none."""
    labels: list[Head] = [("case", ""), ("run", "")] if rows and rows[0][0] else []
    return Grid(
        table.title,
        [*labels, *((column.title, column.unit) for column in table.columns)],
        [[*names, *(column.cell(row) for column in table.columns)] for names, row in rows[:most]],
        [*(head[0] == "case" for head in labels), *(column.is_words for column in table.columns)],
        max(len(rows) - most, 0),
    )


# --- the report's page: one self-contained HTML file ----------------------------------------------

_MANY = 9
"""Smallest number of cases for which the page has an index."""
_LONG = 20
"""Largest number of rows of a table that is not folded."""
_COLUMN_IN = 5.0
"""Width in inches above which a figure takes the page's width."""
_DRAWN = "congestion window, queue, round-trip time and goodput over time"


class _Entry(msgspec.Struct, frozen=True):
    """An entry in the index of cases."""

    family: str
    cases: list[tuple[str, str]]
    """Anchors of cases on the page, with the names of the cases."""


def render(
    material: Material,
    *,
    charts: Sequence[tuple[Overview, Saved]],
    shown: Mapping[str, RunDrawing],
    drawing: str,
    table_files: Mapping[str, Sequence[str]],
    font_face: str,
    links: Mapping[str, tuple[str, str]],
) -> str:
    """Return the page.

    ``shown`` has the runs to show in full by slug; ``drawing`` is that of the first one's network,
    as SVG, empty for none. ``links`` has the addresses of each run's figure and recording relative
    to the page, empty for none, ``table_files`` the extensions of each table's files.
    """
    result = material.result
    checks = check_rows(result)
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
    built = f"The network of the case {first_case}, as built"
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            version=__version__,
            # Markup of our own: the style sheet, the font and the figures, which escape names.
            css=style_sheet(),
            font_face=Markup(font_face),  # noqa: S704
            charts=[_picture(*each) for each in charts],
            material=material,
            about=[" ".join(part.split()) for part in material.about.split("\n\n") if part.strip()],
            summary=_summary(material, first.hello if first else None),
            families=families(result),
            has_published=any(each.published for each in findings(result)),
            has_spread=any(f.n > 1 for case in result.statistics for f in case.metrics.values()),
            agreement=agreement(result),
            citations=citations(result),
            notes=notes(result),
            troubles=troubles(result),
            checks=checks,
            checked=sum(len(each.verdict.runs) for each in checks),
            held=sum(each.verdict.held for each in checks),
            cases=cases,
            index=_index(result.statistics, anchors),
            long_table=_LONG,
            tables=grids(result),
            table_files=table_files,
            drawn=material.whose if material.is_large and len(shown) < len(material.runs) else "",
            machine=machine(material, first.hello if first else None),
            drawing={"svg": _labelled(drawing, built), "caption": built, "files": [DRAWING]}
            if drawing
            else None,
            network=network(first_case, first.hello, first.links) if first else None,
            health=health(result),
            kept=sum(each.health.trustworthy for each in (*result.cases, *result.discarded)),
            links=_links,
        )
    )


DRAWING = "network.svg"
"""File name of the network's drawing among the figures."""


def _picture(figure: Overview, saved: Saved) -> dict[str, object]:
    wide = "page" if saved.width_in > _COLUMN_IN else "lead" if figure.lead else "column"
    return {
        "slug": figure.name,
        "title": figure.title,
        "caption": figure.caption,
        "svg": _labelled(saved.svg, f"{figure.title}. {figure.caption}"),
        "files": saved.files,
        "width": wide,
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
    shown: Mapping[str, RunDrawing],
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


def _shown(run: Run, found: RunDrawing) -> dict[str, object]:
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
        "intervals": _grid(curves.TABLE, [([], row) for row in found.intervals]),
    }


def _run(run: Run, heads: Sequence[MetricColumn], links: tuple[str, str]) -> dict[str, object]:
    again = f", attempt {run.result.attempt}" if run.result.attempt > 1 else ""
    return {
        "label": f"{run.result.repeat}{again}",
        "measured": values(run, heads),
        "trustworthy": run.result.health.trustworthy,
        "reasons": "; ".join(run.result.health.reasons),
        "figure": links[0],
        "recording": links[1],
    }
