"""A lesson in a scenario file is read, or refused with every mistake."""

# ruff: noqa: E501 - TOML 1.0 has an inline table on one line

import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from ccplay.errors import ScenarioError
from ccplay.lesson.library import ORDER, open_lesson, shipped
from ccplay.scenario import document
from ccplay.scenario.reading import parse
from ccplay.scenario.schema import schema
from ccplay.scenario.values import Bound, Lesson
from ccplay.traffic.flow import StartFlow

HEAD = """
duration = "60 s"
topology = { kind = "dumbbell", pairs = 2 }
links.bottleneck = { rate = "10 Mbit/s", delay = "10 ms" }
"""

PAGES = """
[lesson]
aim = "Explain it"

[[lesson.pages]]
title = "One"
text = "Read *this*."
look = { plots = ["cwnd"], flow = "a", queue = "r1->r2", window = "20 s" }
run = "10 s"
steps = [{ at = "1 s", do = "start-flow", flow = "a" }]
measures.rate = { metric = "flows.a.goodput_bps", take = "mean", from = "2 s", unit = "Mbit/s", text = "goodput" }
measures.top = { metric = "flows.a.cwnd_max", text = "cwnd" }
why = "Because."

[lesson.pages.question]
ask = "How fast?"
choices = [
  { text = "slow", when = [{ measure = "rate", at_most = 4 }] },
  { text = "fast", usual = true, when = [{ measure = "rate", at_least = 4.1 }] },
]

[[lesson.pages]]
title = "Two"
text = "And now?"
why = "So."
run = "5 s"
steps = [{ at = "0 s", do = "start-ping", ping = "p" }]
measures.rtt = { metric = "pings.p.rtt_us", take = "mean", unit = "ms", text = "RTT" }
question = { ask = "Where?", region = { plot = "rtt", measure = "rtt", low = 0, high = 100, width = 20, usual = { at_least = 19 } } }
"""


def lesson(pages: str = PAGES) -> Lesson:
    found = parse(HEAD + pages, Path("mine.toml")).lesson
    assert found is not None
    return found


def mistakes(old: str, new: str) -> str:
    assert old in PAGES
    with pytest.raises(ScenarioError) as refused:
        lesson(PAGES.replace(old, new, 1))
    return "\n".join(refused.value.lines)


def test_a_lesson_is_read_as_it_was_written() -> None:
    found = lesson()
    one, two = found.pages
    assert (found.aim, found.questions, found.run_s) == ("Explain it", 2, 15.0)
    assert (one.title, one.run_s, one.look.plots, one.look.queue) == (
        "One",
        10.0,
        ("cwnd",),
        "r1->r2",
    )
    (step,) = one.steps
    assert step.at_s == 1.0
    assert step.command == StartFlow(flow="a")
    assert one.measures["rate"].from_s == 2.0
    assert one.question is not None
    assert one.question.choices[1].when == (Bound("rate", low=4.1),)
    assert one.question.choices[1].usual
    assert two.question is not None
    assert two.question.range is not None
    assert two.question.range.usual == Bound("rtt", low=19.0)


def test_a_scenario_without_a_lesson_carries_none() -> None:
    assert parse(HEAD, Path("mine.toml")).lesson is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('title = "One"', "", "title is missing"),
        ('why = "Because."', "", "why is missing"),
        ('run = "10 s"', "", "run is missing"),
        ('measure = "rate", at_most', 'measure = "rat", at_most', 'did you mean "rate"'),
        ("at_most = 4 }", "at_least = 5, at_most = 4 }", "is more than 4"),
        ('metric = "flows.a.goodput_bps"', 'metric = "flows.b.goodput_bps"', "starts"),
        ('metric = "flows.a.goodput_bps"', 'metric = "flows.a.goodpud"', "no variable"),
        ('metric = "pings.p.rtt_us", take = "mean", unit = "ms"', 'metric = "pings.p.rtt_us", take = "mean", unit = "Mbit/s"', "can't be shown in"),
        ('unit = "Mbit/s"', 'unit = "Mbps"', "unknown unit"),
        ('plots = ["cwnd"]', 'plots = ["cwn"]', "unknown plot"),
        ('queue = "r1->r2"', 'queue = "r2->r1x"', "no observed queue"),
        ('ping = "p"', 'ping = "a"', "is taken by"),
        ("width = 20", "width = 200", "width must be"),
        ("low = 0, high = 100", "low = 100, high = 0", "low is not below high"),
        ('ask = "Where?", region', 'ask = "Where?", number = { measure = "rtt", low = 0, high = 1 }, region', "needs one of"),
        ('at = "1 s", do = "start-flow"', 'at = "11 s", do = "start-flow"', "later than the end"),
        ("usual = true, when", "when", ""),
    ],
)  # fmt: skip
def test_each_mistake_is_reported(old: str, new: str, said: str) -> None:
    if not said:
        lesson(PAGES.replace(old, new, 1))
        return
    assert said in mistakes(old, new)


def test_a_measure_is_divided_by_another_of_its_page() -> None:
    text = PAGES.replace(
        "measures.top =",
        'measures.part = { metric = "flows.a.cwnd", take = "least", relative_to = "top", '
        'unit = "%", text = "part" }\nmeasures.top =',
    )
    assert lesson(text).pages[0].measures["part"].relative_to == "top"


def test_a_metric_that_no_run_has_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(HEAD + PAGES.replace("cwnd_max", "cwnd_maxx"))
    with pytest.raises(ScenarioError, match=r"did you mean .flows.a.cwnd_max"):
        open_lesson(str(file))


def test_a_file_without_a_lesson_is_no_lesson(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(HEAD)
    with pytest.raises(ScenarioError, match="has no lesson"):
        open_lesson(str(file))


def test_a_misspelt_lesson_is_suggested() -> None:
    with pytest.raises(ScenarioError, match=r"did you mean .bufferbloat"):
        open_lesson("bufferblot")


def test_the_schema_takes_a_lesson_and_sees_what_an_editor_can() -> None:
    validator = Draft202012Validator(schema())
    assert validator.is_valid(document.loads(HEAD + PAGES))
    for old, new in (
        ('title = "One"', ""),
        ('unit = "ms"', 'unit = "mss"'),
        ("width = 20", "wide = 20"),
    ):
        assert not validator.is_valid(document.loads(HEAD + PAGES.replace(old, new, 1))), old


@pytest.mark.parametrize("name", ORDER)
def test_lessons_that_come_with_ccplay_can_be_taught(name: str) -> None:
    """A shipped lesson is complete; each question has the usual answer, to compare with a run."""
    opened = open_lesson(name)
    assert 3 <= len(opened.lesson.pages) <= 6
    assert 0 < opened.lesson.run_s < 150
    assert opened.lesson.aim
    assert opened.scenario.about
    for page in opened.lesson.pages:
        question = page.question
        if question is None:
            continue
        assert page.steps
        if question.range is None:
            assert sum(choice.usual for choice in question.choices) == 1
        else:
            assert question.range.usual is not None


def test_all_lessons_are_in_the_order_of_teaching() -> None:
    assert tuple(shipped()) == ORDER


@pytest.mark.parametrize("name", ORDER)
def test_the_schema_takes_the_lessons_that_come_with_ccplay(name: str) -> None:
    content = document.loads(shipped()[name].read_text(encoding="utf-8"))
    errors = [error.message for error in Draft202012Validator(schema()).iter_errors(content)]
    assert errors == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('take = "mean"', 'take = "meen"'),
        ('kind = "linear"', 'kind = "lineer"'),
        ('kind = "pfifo"', 'kind = "pfifi"'),
        ('do = "start-flow"', 'do = "start-flaw"'),
        ("at_least = ", 'at_least = "x" # '),
    ],
)
def test_one_mistake_is_reported_once(right: str, wrong: str) -> None:
    path = shipped()["bufferbloat"]
    text = path.read_text()
    assert right in text
    if right.startswith("at_least"):
        text = re.sub(r"at_least = [0-9.]+", 'at_least = "x"', text, count=1)
    else:
        text = text.replace(right, wrong, 1)
    with pytest.raises(ScenarioError) as caught:
        parse(text, path)
    assert len(caught.value.lines) == 1, caught.value.lines
