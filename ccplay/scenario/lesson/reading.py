"""Reads the lesson of a scenario file; mistakes are recorded with their places."""

from __future__ import annotations

from ccplay.model.fields import Field
from ccplay.model.network import Network
from ccplay.model.quantities import SECONDS
from ccplay.model.quoting import did_you_mean, quote
from ccplay.model.settings import DAY_S
from ccplay.model.texts import LINE, NAME, PROSE, choice
from ccplay.model.traffic import started_by
from ccplay.scenario.fields.timeline import read_timeline
from ccplay.scenario.file.mistakes import spell
from ccplay.scenario.file.tree import Node, Reader
from ccplay.scenario.lesson.measures import UNREAD, read_fields, read_measures
from ccplay.scenario.lesson.questions import PLOTS, read_question
from ccplay.scenario.lesson.values import Lesson, Look, Measure, Page
from ccplay.scenario.rules.timeline import check_timeline
from ccplay.scenario.step import Step

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
