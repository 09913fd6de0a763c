"""Every key and value of a TOML file is found on its line."""

import tomllib
from typing import Any

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from ccplay.scenario.document import locate, nearest

TEXT = '''\
a = 1   # a = 2
"b c".d = """
x = [1,
"""
e = [
  1, # ] not yet
  { f = 'it]', "g" = [2, 3] },
]
date = 1979-05-27 07:32:00
[t.u]
v = "\\"#"
[[w]]
x.y = 1
[[w]]
[w.z]
k = 5
[[w.list]]
n = 1
'''


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (("a",), 1),
        (("b c", "d"), 2),
        (("e",), 5),
        (("e", 0), 6),
        (("e", 1), 7),
        (("e", 1, "f"), 7),
        (("e", 1, "g", 1), 7),
        (("date",), 9),
        (("t", "u"), 10),
        (("t", "u", "v"), 11),
        (("w", 0), 12),
        (("w", 0, "x", "y"), 13),
        (("w", 1), 14),
        (("w", 1, "z", "k"), 16),
        (("w", 1, "list", 0, "n"), 18),
        (("w", 1, "nothing", "here"), 14),
        (("nothing",), 1),
    ],
)
def test_lines(place: tuple[str | int, ...], line: int) -> None:
    assert nearest(locate(TEXT), place) == line


values = st.recursive(
    st.integers() | st.booleans() | st.text(max_size=8) | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(document=st.dictionaries(st.text(max_size=5), values, max_size=5))
def test_no_value_is_missed(document: dict[str, Any]) -> None:
    """Whatever an independent writer writes, every place in it is found, in the right order."""
    text = tomlkit.dumps(document)
    found = locate(text)
    for place in _places(tomllib.loads(text)):
        assert place in found
    assert all(1 <= line <= text.count("\n") + 1 for line in found.values())


def _places(value: Any, place: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    here = [place] if place else []
    return here + [each for key, below in inner for each in _places(below, (*place, key))]
