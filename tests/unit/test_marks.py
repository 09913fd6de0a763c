"""Marks in the lab: every one has a name of its own, and none stands in the future."""

import pytest

from ccplay.errors import CommandError
from ccplay.lab.lab import MarkNames
from ccplay.model.commands import ChangeMark, Mark, RemoveMark


def test_a_mark_gets_the_next_free_name() -> None:
    marks = MarkNames()
    assert marks.apply(Mark(text="a"), 5.0) == Mark(text="a", name="m1")
    assert marks.apply(Mark(text="b", at=2.0, name="m2"), 5.0) == Mark(text="b", at=2.0, name="m2")
    marks.apply(RemoveMark(name="m1"), 6.0)
    assert marks.apply(Mark(text="c"), 7.0) == Mark(text="c", name="m1")
    assert marks.apply(Mark(text="d"), 7.0) == Mark(text="d", name="m3")


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (Mark(text="b", at=5.1), "can't be at 5.1 s, in the future: it is 5 s now"),
        (ChangeMark(name="m1", at=6.0), "can't be at 6 s"),
        (Mark(text="b", name="m1"), "a mark named 'm1' already"),
        (ChangeMark(name="m2", text="b"), "no mark 'm2'"),
        (RemoveMark(name="m2"), "no mark 'm2'"),
    ],
    ids=str,
)
def test_what_no_mark_can_be_is_refused(command: Mark | ChangeMark | RemoveMark, why: str) -> None:
    marks = MarkNames()
    marks.apply(Mark(text="a"), 1.0)
    with pytest.raises(CommandError, match=why):
        marks.apply(command, 5.0)
