"""The example of the tutorial is a working discipline."""

from __future__ import annotations

from pathlib import Path

from ccplay.lab.custom.trial import try_discipline

PAGE = Path(__file__).parents[3] / "docs/tutorials/own-discipline.md"


def test_the_example_works() -> None:
    text = PAGE.read_text(encoding="utf-8")
    source = text.partition("```python\n")[2].partition("```")[0]
    assert len(source.splitlines()) < 25
    found = try_discipline("late", source)
    assert found.mistakes == []
    assert found.dropped > 0
