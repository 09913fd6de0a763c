"""Reads the lesson of a scenario file, and describes it for the schema.

Nothing here runs or judges a lesson; see ``ccplay.lesson``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeAlias, cast

from msgspec.structs import replace

from ccplay.model.network import Network
from ccplay.model.quantities import FLAG, NUMBER, SECONDS, Field, Shape, did_you_mean, quote
from ccplay.model.settings import DAY_S
from ccplay.model.texts import LINE, NAME, PROSE, choice
from ccplay.model.variables import Variable
from ccplay.scenario.document import spell
from ccplay.scenario.evidence import METRIC
from ccplay.scenario.keys import link_problem
from ccplay.scenario.timeline import check_timeline, read_timeline
from ccplay.scenario.tree import Node, Reader
from ccplay.scenario.values import (
    Bound,
    Choice,
    Lesson,
    Look,
    Measure,
    Page,
    Question,
    Range,
    Step,
    Take,
)
from ccplay.traffic import TRAFFIC, VARIABLES, started_by

# --- the units of a lesson's measures, and the factors to them from the units of metrics ----------

FACTORS: dict[str, dict[str, float]] = {
    "": {"": 1.0, "segments": 1.0, "packets": 1.0},
    "ms": {"us": 1e-3, "ms": 1.0, "s": 1e3},
    "s": {"us": 1e-6, "ms": 1e-3, "s": 1.0},
    "kbit/s": {"bps": 1e-3},
    "Mbit/s": {"bps": 1e-6},
    "%": {"": 100.0, "share": 100.0},
    "times": {"": 1.0},
    "segments": {"": 1.0, "segments": 1.0},
    "packets": {"": 1.0, "packets": 1.0},
    "kB": {"bytes": 1e-3, "": 1e-3},
    "MB": {"bytes": 1e-6, "": 1e-6},
}
"""Factors from the units that a metric may have, by the unit of the measure."""

_SUBJECTS = {"flows": "flow", "downloads": "flow", "queues": "queue", "pings": "ping"}
"""Subjects of variables by the key of a result's members."""

GOODPUT = "goodput_bps"
UTILISATION = "utilisation"
DELAY = "delay_ms"
"""Name of the variable for a queue's delay in ms, which is computed rather than sampled."""

_DERIVED = {
    ("flow", GOODPUT): "bps",
    ("queue", UTILISATION): "",
    ("queue", DELAY): "ms",
}


def subject_of(group: str) -> str | None:
    """Return the subject of the variables in a result's group; None if it has no samples."""
    return _SUBJECTS.get(group)


def variables_of(subject: str) -> list[str]:
    """Return the names of the variables whose samples a measure may use."""
    known: dict[str, Variable] = VARIABLES[subject]
    names = [name for name, each in known.items() if each.kept]
    return [*names, *(name for kind, name in _DERIVED if kind == subject)]


def base_unit(measure: Measure) -> str:
    """Return the unit of a measure's metric in the result or the state."""
    if measure.relative_to:
        return ""
    group, _, rest = measure.metric.partition(".")
    name = rest.rpartition(".")[2] or group
    if measure.take:
        subject = _SUBJECTS.get(group, "")
        if (subject, name) in _DERIVED:
            return _DERIVED[subject, name]
        found = VARIABLES[subject].get(name) if subject else None
        return found.unit if found is not None else _suffix(name)
    return _suffix(name)


def _suffix(name: str) -> str:
    if name == "seconds":
        return "s"
    if name == "bytes":
        return "bytes"
    return next((unit for unit in ("us", "ms", "bps", "s") if name.endswith(f"_{unit}")), "")


def factor(measure: Measure) -> float | None:
    """Return the factor from a measure's metric to its unit; None if the units don't match."""
    return FACTORS[measure.unit].get(base_unit(measure))


def format_value(measure: Measure, value: float | None) -> str:
    """Return a measured value in the unit of its measure: ``486 ms``."""
    return "not measured" if value is None else in_unit(value, measure.unit)


def in_unit(value: float, unit: str) -> str:
    """Return a value with its unit, with as many digits as tell it from others: ``486 ms``."""
    size = abs(value)
    digits = 0 if size >= 100 or value == int(value) else 1 if size >= 10 else 2
    gap = "" if not unit else " "
    return f"{value:,.{digits}f}{gap}{unit}"


# --- the measures of a page: metrics of the result, or statistics of a variable's samples ---------

MOST_MEASURES = 12
UNREAD = ""
"""Name that stands for all traffic of a step that could not be read."""

TAKES = ("mean", "least", "greatest", "last", "growth")
MEASURE: dict[str, Field] = {
    "metric": Field(METRIC, "Path in the result, or with take of a variable", required=True),
    "text": Field(LINE, "What it is", required=True),
    "unit": Field(choice("unit", FACTORS), "Unit in which it is shown and compared"),
    "take": Field(
        choice("take", TAKES),
        "Statistic of a variable's samples during the page's run: flows.1.cwnd, "
        "queues.bottleneck.qlen, pings.p1.rtt_us, flows.1.goodput_bps",
    ),
    "from": Field(SECONDS, "Seconds of the run from which on samples count", 0, 600),
    "to": Field(SECONDS, "Seconds of the run until which samples count", 0, 600),
    "relative_to": Field(
        METRIC, "The metric that it is divided by, or the name of another measure of the page"
    ),
}


def read_fields(
    node: Node, table: Mapping[str, Node], fields: Mapping[str, Field], reader: Reader
) -> dict[str, Any]:
    """Return the values of single fields; a missing required one is a mistake."""
    found: dict[str, Any] = {}
    for key, field in fields.items():
        if key in table:
            found[key] = reader.value(table[key], field.read, None)
        elif field.required:
            reader.mistakes.add(node.place, f"{key} is missing: {field.meaning}")
    return {key: value for key, value in found.items() if value is not None}


def read_measures(
    node: Node | None, network: Network | None, started: Collection[str], reader: Reader
) -> dict[str, Measure]:
    """Read the measures of a page; ``started`` has the names of all traffic so far."""
    table = reader.table(node)
    if node is not None and len(table) > MOST_MEASURES:
        reader.mistakes.add(node.place, f"more than {MOST_MEASURES} measures")
    read = {
        name: _measure(each, network, (table.keys(), started), reader)
        for name, each in table.items()
    }
    return {name: each for name, each in read.items() if each is not None}


def _measure(
    node: Node,
    network: Network | None,
    known: tuple[Collection[str], Collection[str]],
    reader: Reader,
) -> Measure | None:
    """Read a measure; ``known`` has the page's measures, and the names of all traffic so far."""
    others, started = known
    before = reader.mistakes.count
    table = reader.table(node, MEASURE)
    given = read_fields(node, table, MEASURE, reader)
    if reader.mistakes.count > before:
        return None
    measure = Measure(
        metric=given["metric"],
        text=given["text"],
        unit=given.get("unit", ""),
        take=cast("Take", given.get("take", "")),
        from_s=given.get("from", 0.0),
        to_s=given.get("to"),
        relative_to=given.get("relative_to", ""),
    )
    for key in ("metric", "relative_to"):
        path = getattr(measure, key)
        if path and not (key == "relative_to" and path in others):
            for text in _problems(path, taken=bool(measure.take), network=network, started=started):
                reader.mistakes.add(table[key].place, text)
    if factor(measure) is None and reader.mistakes.count == before:
        text = f"{quote(measure.metric)} can't be shown in {measure.unit or 'plain numbers'}"
        reader.mistakes.add(node.place, text)
    if measure.to_s is not None and measure.to_s <= measure.from_s:
        reader.mistakes.add(node.place, "to is not later than from")
    return measure


def _problems(
    path: str, *, taken: bool, network: Network | None, started: Collection[str]
) -> Iterator[str]:
    """Yield why no run measures a metric; ``taken`` is whether it is a statistic of samples."""
    group, _, rest = path.partition(".")
    member, _, name = rest.rpartition(".")
    kinds = [kind.group for kind in TRAFFIC]
    if group == "queues" and network is not None and member:
        problem = link_problem(network, member)
        yield from [problem] if problem else []
    elif group in kinds and member and member not in started and UNREAD not in started:
        yield f"no page up to this one starts {quote(member)}{did_you_mean(member, started)}"
    if not taken:
        if member and group not in (*kinds, "queues"):
            yield f"nothing measures {quote(path)}{did_you_mean(group, (*kinds, 'queues'))}"
        return
    subject = subject_of(group)
    if subject is None or not member:
        yield 'take needs a variable, such as "flows.1.cwnd" or "queues.bottleneck.qlen"'
    elif name not in (known := variables_of(subject)) and "_" not in name:
        # Algorithms report variables of their own, such as dctcp_alpha_1024.
        yield f"no variable {quote(name)}{did_you_mean(name, known)}"


# --- the question of a page: choices, a number, or a region of a plot -----------------------------

MOST_CHOICES = 9
PLOTS = ("cwnd", "unacked", "queue", "udp", "rtt", "throughput", "pacing-rate", "acked")
"""Plots that a page may show."""

BOUND: dict[str, Field] = {
    "measure": Field(NAME, "Name of the measure", required=True),
    "at_least": Field(NUMBER, "Least value, in the measure's unit"),
    "at_most": Field(NUMBER, "Greatest value, in the measure's unit"),
}
CHOICE: dict[str, Field] = {
    "text": Field(LINE, "The answer", required=True),
    "usual": Field(FLAG, "Whether this is the usual outcome, which why explains"),
}
CHOICE_KEYS = (*CHOICE, "when")
NUMBERS: dict[str, Field] = {
    "measure": Field(NAME, "Name of the measure that is predicted", required=True),
    "low": Field(NUMBER, "Least answer, in the measure's unit", required=True),
    "high": Field(NUMBER, "Greatest answer, in the measure's unit", required=True),
}
TOLERANCE = Field(NUMBER, "Share of the measured value by which the answer may differ: 0.25", 0, 1)
REGION: dict[str, Field] = {
    "plot": Field(choice("plot", PLOTS), "The plot on which it is predicted", required=True),
    "width": Field(NUMBER, "Height of the region, in the measure's unit", required=True),
}
USUAL_KEYS = ("at_least", "at_most")
NUMBER_KEYS = (*NUMBERS, "tolerance", "usual")
REGION_KEYS = (*NUMBERS, *REGION, "usual")
QUESTION_KEYS = ("ask", "choices", "number", "region")
_ASK = Field(LINE, "The question", required=True)


def read_question(node: Node, measures: dict[str, Measure], reader: Reader) -> Question:
    """Read the question of a page about its measures."""
    table = reader.table(node, QUESTION_KEYS)
    given = read_fields(node, table, {"ask": _ASK}, reader)
    kinds = [key for key in QUESTION_KEYS[1:] if key in table]
    if len(kinds) != 1:
        reader.mistakes.add(node.place, "needs one of choices, number or region")
        return Question(given.get("ask", ""))
    kind = kinds[0]
    if kind == "choices":
        return Question(given.get("ask", ""), _choices(table[kind], measures, reader))
    return Question(given.get("ask", ""), range=_range(table[kind], kind, measures, reader))


def _choices(node: Node, measures: dict[str, Measure], reader: Reader) -> tuple[Choice, ...]:
    nodes = reader.members(node)
    if not 2 <= len(nodes) <= MOST_CHOICES:
        reader.mistakes.add(node.place, f"a question has 2 to {MOST_CHOICES} choices")
    found = []
    for each in nodes:
        table = reader.table(each, CHOICE_KEYS)
        given = read_fields(each, table, CHOICE, reader)
        when = tuple(_bound(one, measures, reader) for one in reader.members(table.get("when")))
        if not when:
            text = "when is missing: what the run measures if it is right, such as when = "
            text += '[{ measure = "rtt", at_least = 100 }]'
            reader.mistakes.add(each.place, text)
        found.append(Choice(given.get("text", ""), when, given.get("usual", False)))
    if sum(each.usual for each in found) > 1:
        reader.mistakes.add(node.place, "only one choice can be the usual one")
    return tuple(found)


def _bound(node: Node, measures: dict[str, Measure], reader: Reader) -> Bound:
    before = reader.mistakes.count
    table = reader.table(node, BOUND)
    given = read_fields(node, table, BOUND, reader)
    bound = Bound(given.get("measure", ""), given.get("at_least"), given.get("at_most"))
    if reader.mistakes.count == before:
        _check_bound(node, bound, reader)
    _check_measure(node, bound.measure, measures, reader)
    return bound


def _check_bound(node: Node, bound: Bound, reader: Reader) -> None:
    if bound.low is None and bound.high is None:
        reader.mistakes.add(node.place, "needs at_least or at_most")
    elif bound.low is not None and bound.high is not None and bound.low > bound.high:
        reader.mistakes.add(node.place, f"at_least {bound.low:g} is more than {bound.high:g}")


def _check_measure(node: Node, name: str, measures: dict[str, Measure], reader: Reader) -> None:
    if name and name not in measures:
        text = f"the page has no measure {quote(name)}{did_you_mean(name, measures)}"
        reader.mistakes.add(node.place, text)


def _range(node: Node, kind: str, measures: dict[str, Measure], reader: Reader) -> Range | None:
    before = reader.mistakes.count
    region = kind == "region"
    table = reader.table(node, REGION_KEYS if region else NUMBER_KEYS)
    given = read_fields(node, table, {**NUMBERS, **(REGION if region else {})}, reader)
    if reader.mistakes.count > before:
        return None
    _check_measure(node, given["measure"], measures, reader)
    found = Range(
        measure=given["measure"],
        low=float(given["low"]),
        high=float(given["high"]),
        plot=given.get("plot", ""),
        width=float(given.get("width", 0.0)),
        tolerance=reader.value(table.get("tolerance"), TOLERANCE.read, 0.25),
    )
    if found.low >= found.high:
        reader.mistakes.add(node.place, "low is not below high")
    if region and not 0 < found.width <= found.high - found.low:
        reader.mistakes.add(node.place, "width must be above 0 and fit between low and high")
    if "usual" in table:
        inner = reader.table(table["usual"], USUAL_KEYS)
        given = read_fields(table["usual"], inner, {key: BOUND[key] for key in USUAL_KEYS}, reader)
        usual = Bound(found.measure, given.get("at_least"), given.get("at_most"))
        _check_bound(table["usual"], usual, reader)
        found = replace(found, usual=usual)
    return found


# --- reads the lesson of a scenario file; mistakes are recorded with their places -----------------

MOST_PAGES = 30
LONGEST_TEXT = 4000
"""Largest length in characters of a page's text or explanation: spectators receive it in one
line."""

LESSON_KEYS = ("aim", "pages")
VALUES: dict[str, Field] = {
    "title": Field(LINE, "Title of the page", required=True),
    "text": Field(PROSE, "Text to read before the run, in Markdown", required=True),
    "run": Field(SECONDS, "Seconds that the steps run before the answer is revealed", 0, 600),
    "why": Field(PROSE, "Explanation, revealed with the result, in Markdown"),
}
PAGE_KEYS = (*VALUES, "look", "steps", "measures", "question")
LOOK: dict[str, Field] = {
    "flow": Field(NAME, "The traffic that is selected"),
    "queue": Field(LINE, 'The direction whose queue is shown: "r1->r2"'),
    "window": Field(SECONDS, "Seconds that the plots show", 1, DAY_S),
}
LOOK_KEYS = ("plots", *LOOK)


def read_lesson(node: Node | None, network: Network | None, reader: Reader) -> Lesson | None:
    """Read the lesson of a file; ``network`` is its first case's, None if that has a mistake."""
    if node is None:
        return None
    table = reader.table(node, LESSON_KEYS)
    pages = reader.members(table.get("pages"))
    if not 1 <= len(pages) <= MOST_PAGES:
        text = f"a lesson has 1 to {MOST_PAGES} [[lesson.pages]]"
        reader.mistakes.add(node.place, text)
        return None
    taken: dict[str, str] = {}
    read = tuple(_page(each, network, taken, reader) for each in pages)
    return Lesson(read, reader.value(table.get("aim"), LINE.read, ""))


def _page(node: Node, network: Network | None, taken: dict[str, str], reader: Reader) -> Page:
    table = reader.table(node, PAGE_KEYS)
    given = read_fields(node, table, VALUES, reader)
    for key in ("text", "why"):
        if len(given.get(key, "")) > LONGEST_TEXT:
            reader.mistakes.add(table[key].place, f"more than {LONGEST_TEXT:,} characters")
    run_s = given.get("run", 0.0)
    steps = _steps(table.get("steps"), run_s, network, taken, reader)
    if "steps" in table and not run_s:
        reader.mistakes.add(node.place, 'run is missing: how long the steps run, such as "10 s"')
    measures = read_measures(table.get("measures"), network, taken, reader)
    question = None
    if "question" in table:
        # A measure with a mistake has been reported, so the question may name it.
        unread = Measure(metric="", text="")
        names = dict.fromkeys(reader.table(table.get("measures")), unread)
        question = read_question(table["question"], names | measures, reader)
        if not given.get("why"):
            reader.mistakes.add(node.place, "why is missing: the explanation of the answer")
    return Page(
        title=given.get("title", ""),
        text=given.get("text", ""),
        steps=steps,
        run_s=run_s,
        look=_look(table.get("look"), network, reader),
        measures=measures,
        question=question,
        why=given.get("why", ""),
    )


def _steps(
    node: Node | None,
    run_s: float,
    network: Network | None,
    taken: dict[str, str],
    reader: Reader,
) -> tuple[Step, ...]:
    """Read the steps of a page; ``taken`` has the places of all traffic on earlier pages."""
    before = reader.mistakes.count
    drafts = read_timeline(node, run_s or 600.0, reader)
    whole = reader.mistakes.count == before
    steps = check_timeline(drafts, network, reader.mistakes, whole=whole)
    if not whole:
        # A step that could not be read may start anything.
        taken[UNREAD] = ""
    for step in steps:
        kind = started_by(step.command)
        name = kind.name_of(step.command) if kind is not None else None
        if name is None or node is None:
            continue
        if name in taken:
            text = f"the name {quote(name)} is taken by {taken[name]}: name traffic of each page"
            reader.mistakes.add(node.place, f"{text} differently")
        taken[name] = f"{spell(node.place)}"
    return steps


def _look(node: Node | None, network: Network | None, reader: Reader) -> Look:
    table = reader.table(node, LOOK_KEYS)
    if node is None:
        return Look()
    given = read_fields(node, table, LOOK, reader)
    plot = choice("plot", PLOTS)
    plots = tuple(
        reader.value(each, plot.read, "") for each in reader.members(table.get("plots"), "plots")
    )
    queue = given.get("queue", "")
    if queue and network is not None and queue not in network.observed:
        text = f"no observed queue {quote(queue)}{did_you_mean(queue, network.observed)}"
        reader.mistakes.add(table["queue"].place, text)
    return Look(plots, given.get("flow", ""), queue, given.get("window"))


# --- the JSON Schema of a lesson, made from the tables that read it -------------------------------

Table: TypeAlias = Callable[..., Shape]

_MEANINGS = {
    "lesson": "Pages beside the running network: read, predict, see, ask why",
    "aim": "One line: what one can explain afterwards",
    "pages": "The pages, in order",
    "look": "What the page shows of the network",
    "plots": "Names of plots, from left to right",
    "steps": "Steps as in timeline; they run once the question is answered, and each page that has "
    "some begins with the network as the file describes it",
    "measures": "Measures of the page's run, by name",
    "question": "The question asked before the steps run",
    "ask": "The question",
    "choices": "Answers, each with the measurements that make it right",
    "number": "A number to predict",
    "region": "A region of a plot to predict",
    "when": "Conditions on measures; the answer is right if all of them hold",
    "tolerance": "Share of the measured value by which the answer may differ, 0.25 by default",
    "usual": "The usual outcome, which why explains",
}


def definitions(
    table: Table, described: Callable[[Mapping[str, Field]], dict[str, Shape]]
) -> dict[str, Shape]:
    """Return the definitions of a lesson, made by the schema's ``table`` and ``described``."""

    def of(fields: Mapping[str, Field], **more: Shape) -> Shape:
        needed = tuple(key for key, field in fields.items() if field.required)
        return table({**described(fields), **more}, _MEANINGS, needed)

    def list_of(name: str, **more: Any) -> Shape:
        return {"type": "array", "items": {"$ref": f"#/$defs/{name}"}, **more}

    bounds = {key: BOUND[key] for key in USUAL_KEYS}
    usual = of(bounds)
    plots: Shape = {"type": "array", "items": {"enum": list(PLOTS)}}
    when = {**list_of("lesson-bound"), "minItems": 1}
    choice = of(CHOICE, when=when)
    choice["required"] = ["text", "when"]
    question = table(
        {
            "ask": {"$ref": "#/$defs/line"},
            "choices": list_of("lesson-choice", minItems=2, maxItems=MOST_CHOICES),
            "number": of(NUMBERS, tolerance={"$ref": "#/$defs/number"}, usual=usual),
            "region": of({**NUMBERS, **REGION}, usual=usual),
        },
        _MEANINGS,
        ("ask",),
        oneOf=[{"required": [key]} for key in ("choices", "number", "region")],
    )
    named: Shape = {
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/lesson-measure"},
        "maxProperties": MOST_MEASURES,
    }
    page = of(
        VALUES,
        look=of(LOOK, plots=plots),
        steps=list_of("step"),
        measures=named,
        question={"$ref": "#/$defs/lesson-question"},
    )
    pages = list_of("lesson-page", minItems=1, maxItems=MOST_PAGES)
    return {
        "lesson": table({"aim": {"$ref": "#/$defs/line"}, "pages": pages}, _MEANINGS, ("pages",)),
        "lesson-page": page,
        "lesson-measure": of(MEASURE),
        "lesson-bound": of(BOUND),
        "lesson-choice": choice,
        "lesson-question": question,
    }
