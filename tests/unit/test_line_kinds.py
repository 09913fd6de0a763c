"""Kinds of lines: each repeats itself in its own way, along the time axis and up a steep piece."""

import pytest

from ccplay.ui.plot_canvas import CellColumn, of_kind
from ccplay.ui.plot_traces import LINE_KINDS


@pytest.mark.parametrize("finely", [1, 8])
def test_kinds_differ_to_the_right_and_upwards(finely: int) -> None:
    flat = {
        tuple(bool(of_kind(kind, range(3, 4), at, finely)) for at in range(60))
        for kind in LINE_KINDS
    }
    steep = {tuple(of_kind(kind, range(60), 7, finely)) for kind in LINE_KINDS}
    assert len(flat) == len(steep) == len(LINE_KINDS) == 4


def test_only_a_solid_line_has_no_gaps() -> None:
    for kind in LINE_KINDS:
        whole = all(of_kind(kind, range(3, 4), at, 8) for at in range(60))
        assert whole == (kind == "solid")


def test_a_bold_column_fills_quarters_where_thick_dots_are() -> None:
    """A thin dot, such as the shade of an area, stays a dot."""
    column = CellColumn(3, bold=True)
    column.dot(0, 0x01, "", thick=True)
    column.dot(1, 0x01, "")
    for bit in (0x04, 0x80):
        column.dot(2, bit, "", thick=True)
    cells = [(" ", "")] * 3
    column.cover(cells)
    assert "".join(char for char, _ in cells) == "▘\u2801▄"


def test_what_a_bold_cell_hides_does_not_give_it_its_colour() -> None:
    bold, normal = CellColumn(1, bold=True), CellColumn(1)
    for column in (bold, normal):
        column.dot(0, 0x01, "#ff0000", thick=True)
        column.dot(0, 0x80, "#00ff00")
    cells: list[tuple[str, str]] = [("", "")]
    bold.cover(cells)
    assert cells == [("▘", "#ff0000")]
    normal.cover(cells)
    assert cells[0][1] == "#00ff00"
