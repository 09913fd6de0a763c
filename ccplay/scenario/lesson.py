"""The lesson of a scenario file: its pages, questions and measures, read and described.

Nothing here runs or judges a lesson; see ``ccplay.lesson``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from ccplay.model.network import Network
from ccplay.model.quantities import Field, did_you_mean, quote
from ccplay.model.texts import LINE, choice
from ccplay.model.variables import Variable
from ccplay.scenario.document import spell
from ccplay.scenario.keys import link_problem
from ccplay.scenario.parts import Items, Named, TomlTable, keys_of
from ccplay.scenario.timeline import STEP, check_timeline, read_timeline
from ccplay.scenario.tree import Placed, Reader
from ccplay.scenario.values import (
    FACTORS,
    PLOTS,
    AnswerChoice,
    Bound,
    Lesson,
    LessonPage,
    Measure,
    PageLook,
    PageQuestion,
    Range,
    Step,
)
from ccplay.traffic import TRAFFIC, VARIABLES, started_by

# --- the units of a lesson's measures, and the factors to them from the units of metrics ----------

SUBJECTS = {
    "queues": "queue",
    **{
        kind.group: "flow" if kind.connection else kind.name
        for kind in TRAFFIC
        if kind.connection or any(each.kept for each in kind.variables)
    },
}
"""Subjects of variables by the group of a result; those of other groups are not sampled."""

GOODPUT = "goodput_bps"
UTILISATION = "utilisation"
DELAY = "delay_ms"
"""Name of the variable for a queue's delay in ms, which is computed rather than sampled."""

_DERIVED = {("flow", GOODPUT): "bps", ("queue", UTILISATION): "", ("queue", DELAY): "ms"}


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
        subject = SUBJECTS.get(group, "")
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


def _check_measure(values: dict[str, Any], node: Placed, reader: Reader) -> None:
    if "to_s" in values and values["to_s"] <= values.get("from_s", 0.0):
        reader.mistakes.add(node.place, "to is not later than from")


MEASURES = Named(
    of=TomlTable(
        definition="lesson-measure", keys=keys_of(Measure), make=Measure, check=_check_measure
    ),
    most=MOST_MEASURES,
    bounds=f"more than {MOST_MEASURES} measures",
    meaning="Measures of the page's run, by name",
)


def check_measures(
    measures: Mapping[str, Measure],
    node: Placed,
    network: Network | None,
    started: Collection[str],
    reader: Reader,
) -> None:
    """Record metrics that no run measures; ``started`` has the names of all traffic so far."""
    for name, measure in measures.items():
        before = reader.mistakes.count
        for key in ("metric", "relative_to"):
            path = getattr(measure, key)
            if path and not (key == "relative_to" and path in node.value):
                taken = bool(measure.take)
                for text in _problems(path, taken=taken, network=network, started=started):
                    reader.mistakes.add(node.at(name, key), text)
        if factor(measure) is None and reader.mistakes.count == before:
            text = f"{quote(measure.metric)} can't be shown in {measure.unit or 'plain numbers'}"
            reader.mistakes.add(node.at(name), text)


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
    subject = SUBJECTS.get(group)
    if subject is None or not member:
        yield 'take needs a variable, such as "flows.1.cwnd" or "queues.bottleneck.qlen"'
    elif name not in (known := variables_of(subject)) and "_" not in name:
        # Algorithms report variables of their own, such as dctcp_alpha_1024.
        yield f"no variable {quote(name)}{did_you_mean(name, known)}"


# --- the question of a page: choices, a number, or a region of a plot -----------------------------

MOST_CHOICES = 9
_BOUNDS = {key: each for key, each in keys_of(Bound).items() if key != "measure"}


def _check_bound(values: dict[str, Any], node: Placed, reader: Reader) -> None:
    if not node.value.keys() & _BOUNDS.keys():
        reader.mistakes.add(node.place, "needs at_least or at_most")
    elif {"low", "high"} <= values.keys() and values["low"] > values["high"]:
        reader.mistakes.add(
            node.place, f"at_least {values['low']:g} is more than {values['high']:g}"
        )


BOUND = TomlTable(definition="lesson-bound", keys=keys_of(Bound), make=Bound, check=_check_bound)
_LACK = 'what the run measures if it is right, such as when = [{ measure = "rtt", at_least = 100 }]'
CHOICE = TomlTable(
    definition="lesson-choice",
    keys=keys_of(
        AnswerChoice,
        when=Items(
            of=BOUND,
            least=1,
            bounds=f"needs a condition: {_LACK}",
            make=tuple,
            meaning="Conditions on measures; the answer is right if all of them hold",
            required=True,
        ),
    ),
    make=AnswerChoice,
    missing={"when": f": {_LACK}"},
)
_OF_RANGE = keys_of(
    Range,
    usual=TomlTable(
        keys=_BOUNDS,
        make=lambda **bounds: Bound("", **bounds),
        check=_check_bound,
        meaning="The usual outcome, which why explains",
    ),
)
_NUMBER = {key: each for key, each in _OF_RANGE.items() if key not in ("plot", "width")}
_REGION = {
    key: replace(each, required=True) if key in ("plot", "width") else each
    for key, each in _OF_RANGE.items()
    if key != "tolerance"
}


def _range(*, measure: str, usual: Bound | None = None, **values: Any) -> Range:
    return Range(measure=measure, usual=usual and replace(usual, measure=measure), **values)


def _check_range(values: dict[str, Any], node: Placed, reader: Reader) -> None:
    if not {"low", "high"} <= values.keys():
        return
    span = values["high"] - values["low"]
    if span <= 0:
        reader.mistakes.add(node.place, "low is not below high")
    if "width" in values and not 0 < values["width"] <= span:
        reader.mistakes.add(node.place, "width must be above 0 and fit between low and high")


_KINDS = {
    "choices": Items(
        of=CHOICE,
        least=2,
        most=MOST_CHOICES,
        bounds=f"a question has 2 to {MOST_CHOICES} choices",
        make=tuple,
        meaning="Answers, each with the measurements that make it right",
    ),
    "number": TomlTable(
        keys=_NUMBER, make=_range, check=_check_range, meaning="A number to predict", name="range"
    ),
    "region": TomlTable(
        keys=_REGION,
        make=_range,
        check=_check_range,
        meaning="A region of a plot to predict",
        name="range",
    ),
}


def _check_question(values: dict[str, Any], node: Placed, reader: Reader) -> None:
    if len(node.value.keys() & _KINDS.keys()) != 1:
        reader.mistakes.add(node.place, "needs one of choices, number or region")
    if sum(each.usual for each in values.get("choices", ())) > 1:
        reader.mistakes.add(node.at("choices"), "only one choice can be the usual one")


QUESTION = TomlTable(
    definition="lesson-question",
    keys=keys_of(PageQuestion, **_KINDS),
    make=PageQuestion,
    check=_check_question,
    words={"oneOf": [{"required": [key]} for key in _KINDS]},
    meaning="The question asked before the steps run",
)


def check_question(
    question: PageQuestion, node: Placed, measures: Collection[str], reader: Reader
) -> None:
    """Record each measure that a question names and its page does not have."""
    named = [
        ((*node.at("choices"), number, "when", place), bound.measure)
        for number, choice in enumerate(question.choices)
        for place, bound in enumerate(choice.when)
    ]
    if question.range is not None:
        named.append(
            (node.at("region" if question.range.plot else "number"), question.range.measure)
        )
    for place, name in named:
        if name not in measures:
            text = f"the page has no measure {quote(name)}{did_you_mean(name, measures)}"
            reader.mistakes.add(place, text)


# --- the pages ------------------------------------------------------------------------------------

MOST_PAGES = 30
LOOK = TomlTable(
    keys=keys_of(
        PageLook,
        plots=Items(
            of=Field(choice("plot", PLOTS)),
            noun="plots",
            make=tuple,
            meaning="Names of plots, from left to right",
        ),
    ),
    make=PageLook,
    meaning="What the page shows of the network",
)
PAGE = TomlTable(
    definition="lesson-page",
    keys=keys_of(
        LessonPage,
        look=LOOK,
        steps=Items(
            of=STEP,
            meaning="Steps as in timeline; they run once the question is answered, and each page "
            "that has some begins with the network as the file describes it",
        ),
        measures=MEASURES,
        question=QUESTION,
    ),
)
LESSON = TomlTable(
    definition="lesson",
    meaning="Pages beside the running network: ccplay lesson FILE",
    keys={
        "aim": Field(LINE, "One line: what students can explain afterwards"),
        "pages": Items(
            of=PAGE,
            words={"minItems": 1, "maxItems": MOST_PAGES},
            meaning="The pages, in order",
            required=True,
        ),
    },
)


def read_lesson(node: Placed | None, network: Network | None, reader: Reader) -> Lesson | None:
    """Read the lesson of a file; ``network`` is its first case's, None if that has a mistake."""
    if node is None:
        return None
    table = reader.table(node, LESSON.keys)
    pages = reader.members(table.get("pages"))
    if not 1 <= len(pages) <= MOST_PAGES:
        reader.mistakes.add(node.place, f"a lesson has 1 to {MOST_PAGES} [[lesson.pages]]")
        return None
    taken: dict[str, str] = {}
    read = tuple(_page(each, network, taken, reader) for each in pages)
    return Lesson(read, reader.value(table.get("aim"), LINE.read, ""))


def _page(
    node: Placed, network: Network | None, taken: dict[str, str], reader: Reader
) -> LessonPage:
    """Read a page; ``taken`` has the places of all traffic on earlier pages."""
    table = reader.table(node, PAGE.keys)
    timed = table.pop("steps", None)
    values = PAGE.values(Placed(node.place, table), reader)
    values = {"title": "", "text": "", "run_s": 0.0, "why": "", **values}
    values["steps"] = _steps(timed, values["run_s"], network, taken, reader)
    if timed is not None and not values["run_s"]:
        reader.mistakes.add(node.place, 'run is missing: how long the steps run, such as "10 s"')
    if "measures" in values:
        check_measures(values["measures"], table["measures"], network, taken, reader)
    if "question" in table and not values["why"]:
        reader.mistakes.add(node.place, "why is missing: the explanation of the answer")
    if "question" in values:
        # A measure with a mistake has been reported, so the question may name it.
        names = reader.table(table.get("measures"))
        check_question(values["question"], table["question"], names, reader)
    queue = values["look"].queue if "look" in values else ""
    if queue and network is not None and queue not in network.observed:
        text = f"no observed queue {quote(queue)}{did_you_mean(queue, network.observed)}"
        reader.mistakes.add(node.at("look", "queue"), text)
    return LessonPage(**values)


def _steps(
    node: Placed | None,
    run_s: float,
    network: Network | None,
    taken: dict[str, str],
    reader: Reader,
) -> tuple[Step, ...]:
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
