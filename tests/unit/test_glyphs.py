"""The characters of the screen."""

import pytest
from msgspec.structs import fields
from rich.cells import cell_len

from ccplay.model.wording import CA_STATES
from ccplay.ui.cells import ASCII, UNICODE, Glyphs

WORDS = ("name", "plot_cells", "border")


def drawn(glyphs: Glyphs) -> list[str]:
    """Every character of a set."""
    values = [getattr(glyphs, each.name) for each in fields(glyphs) if each.name not in WORDS]
    return [one for value in values for one in (value if isinstance(value, tuple) else (value,))]


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=lambda each: each.name)
def test_every_glyph_is_one_cell(glyphs: Glyphs) -> None:
    """Columns line up only if nothing is wider or narrower than a cell."""
    assert [one for one in drawn(glyphs) if cell_len(one) != 1 or len(one) != 1] == []


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=lambda each: each.name)
def test_flows_and_states_have_glyphs_of_their_own(glyphs: Glyphs) -> None:
    """Colour is never the only cue."""
    assert len(set(glyphs.flow_glyphs)) == len(glyphs.flow_glyphs) >= 8
    assert len(set(glyphs.ribbon)) == len(glyphs.ribbon) == len(CA_STATES)
    assert glyphs.flow_glyph(0) == glyphs.flow_glyph(len(glyphs.flow_glyphs))
    assert len({glyphs.live, glyphs.frozen, glyphs.replay}) == 3


def test_the_ascii_set_is_ascii() -> None:
    assert "".join(drawn(ASCII)).isascii()


def test_texts_can_be_shown_in_ascii() -> None:
    """What words.py writes survives where only ASCII can be shown."""
    text = "flow 1 switches reno → cubic · 20 µs ± 3 …"
    assert UNICODE.translate(text) == text
    assert ASCII.translate(text) == "flow 1 switches reno -> cubic - 20 us +- 3 ..."
