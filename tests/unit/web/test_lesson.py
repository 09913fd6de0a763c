"""A lesson's page as a browser has it: words, known elements, and nothing before its time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ccplay.share.frames import Board
from ccplay.share.web import facts
from ccplay.share.web.facts import lesson

BOARD = Board(
    title="Queues",
    page=2,
    pages=3,
    heading="How long?",
    lines=("A *queue*.",),
    phase="asking",
    question=66,
    ask="Which?",
    choices=("one", "two"),
    open=True,
)
RIGHT = "The right answer: two"
UNUSUAL = "This run's result is unusual; the explanation describes the usual one."


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("It is\n**10 segments** `cwnd`",
         [["p", "It is ", ["strong", "10 segments"], " ", ["code", "cwnd"]]]),
        ("- a\n- *b*", [["ul", ["li", "a"], ["li", ["em", "b"]]]]),
        ("    ccplay <x>\n", [["pre", "ccplay <x>"]]),
        ("# Title\n\n1. a", [["h3", "Title"], ["ol", ["li", "a"]]]),
        ("<b>bold</b> & <script>", [["p", "<b>bold</b> & <script>"]]),
        (
            "[a link](http://a.b) ![a picture](x.png)",
            [["p", "[a link](http://a.b) ![a picture](x.png)"]],
        ),
    ],
)  # fmt: skip
def test_markdown_becomes_known_elements(text: str, blocks: list[object]) -> None:
    assert facts.blocks(text.splitlines()) == blocks


@given(st.text(alphabet="*_`[]()<>!#-1. \n>ab\\&;~:/\"'", max_size=300))
def test_nothing_else_ever_comes_of_a_text(text: str) -> None:
    assert names(facts.blocks(text.splitlines())) <= facts.ELEMENTS


def test_what_is_nested_without_end_is_cut() -> None:
    assert depth(facts.blocks([">" * 3000 + " deep"])) <= facts.DEEPEST + 1
    assert depth(facts.blocks(["*" * 4000 + "a" + "*" * 4000])) <= facts.DEEPEST + 1


def names(nodes: list[object]) -> set[str]:
    return set(_names(nodes))


def _names(nodes: list[object]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, list):
            assert isinstance(node[0], str)
            yield node[0]
            yield from _names(node[1:])


def depth(nodes: list[object]) -> int:
    return max((1 + depth(node[1:]) for node in nodes if isinstance(node, list)), default=0)


def test_every_lesson_that_ships_is_readable() -> None:
    lessons = Path(__file__).parents[3] / "scenarios" / "lessons"
    for path in lessons.glob("*.toml"):
        content = msgspec.toml.decode(path.read_bytes())
        for page in content["lesson"]["pages"]:
            for text in (page["text"], page.get("why", "")):
                assert not {"blockquote", "hr", "br"} & names(facts.blocks(text.splitlines()))
                assert "**" not in str(facts.blocks(text.splitlines()))


def test_no_page_is_no_lesson() -> None:
    assert lesson(None, votes=True) is None
    assert lesson(Board(), votes=True) is None


def shown(board: Board, *, votes: bool = True) -> dict[str, Any]:
    found = lesson(board, votes=votes)
    assert found is not None
    return found


def test_a_page_without_a_question_asks_nothing() -> None:
    found = shown(Board(page=1, pages=1, heading="Read"))
    assert (found["place"], found["heading"], found["question"]) == ("1/1", "Read", None)


def test_an_open_question_reveals_nothing() -> None:
    found = shown(BOARD)
    asked = found["question"]
    assert (asked["kind"], asked["open"], asked["votes"]) == ("choices", True, True)
    assert asked["choices"] == ("one", "two")
    assert (asked["counts"], asked["right"], asked["verdict"], found["why"]) == ((), None, [], [])


def test_a_region_is_moved_in_25_steps_and_votes_are_counted_in_eighths() -> None:
    board = replace(BOARD, choices=(), low=0.0, high=400.0, width=100.0, unit="ms", plot="rtt")
    found = shown(board)
    assert (found["question"]["kind"], found["question"]["step"]) == ("region", 16)
    found = shown(replace(board, counts=(1,) * 8))
    assert found["question"]["bins"][:2] == ["0 to <50 ms", "50 to <100 ms"]
    assert len(found["question"]["bins"]) == 8
    found = shown(replace(board, plot="", width=0.0), votes=False)
    assert (found["question"]["kind"], found["question"]["votes"]) == ("number", False)


def test_what_is_revealed_is_in_words() -> None:
    board = replace(BOARD, open=False, phase="revealed")
    for changed, words in (
        ({"right": 1.0}, ["The right answer: two"]),
        ({"problem": "no loss"}, ["no loss"]),
        ({}, ["the measurements do not decide this"]),
        ({"right": 1.0, "counts": (3, 1), "voted_right": 1}, [RIGHT, "Votes: 1 of 4 right"]),
        ({"right": 1.0, "usual": False}, [RIGHT, UNUSUAL]),
        ({"choices": (), "right": 20.43, "unit": "ms"}, ["The right answer: 20.4 ms"]),
    ):
        assert shown(replace(board, **changed))["question"]["verdict"] == words
