"""Exactly the changed spans are written to the terminal, in place and in the right colours."""

import re

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate
from textual.color import Color
from textual.strip import Strip

from ccplay.ui.compositor import Colourless, ThriftyUpdate

WIDTH = 12
STYLES = [
    Style.parse(ink)
    for ink in ("#ff0000 on #000000", "bold #ff0000 on #000000", "#00ff00 on #000000", "#00ff00")
]
_ESCAPE = re.compile(r"\x1b\[([\d;]*)([HCm])|(.)", re.DOTALL)


def screen_of(written: str) -> dict[tuple[int, int], tuple[str, str]]:
    """Return what a terminal would show: character and SGR state by column and row."""
    shown, x, y, state = {}, 0, 0, ""
    for numbers, kind, char in _ESCAPE.findall(written):
        if kind == "H":
            y, x = (int(number) - 1 for number in numbers.split(";"))
        elif kind == "C":
            x += int(numbers)
        elif kind == "m":
            state = _combined(state, numbers)
        else:
            shown[x, y] = (char, state)
            x += 1
    return shown


def _combined(state: str, codes: str) -> str:
    """Return a state of bold, colour and background after an SGR sequence, sorted."""
    if codes == "0":
        return ""
    parts = dict(part.split("=") for part in state.split(",") if part)
    for code in re.findall(r"[34]8;2;\d+;\d+;\d+|1", codes):
        parts[code[:2]] = code
    return ",".join(f"{key}={value}" for key, value in sorted(parts.items()))


line = st.lists(st.sampled_from(range(len(STYLES))), min_size=WIDTH, max_size=WIDTH)
spans = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, WIDTH - 1), st.integers(1, WIDTH)).filter(
        lambda span: span[1] < span[2]
    ),
    min_size=1,
    max_size=4,
)


@given(line, line, spans, st.integers(1, WIDTH - 1))
def test_every_cell_of_every_span_and_no_other(
    upper: list[int], lower: list[int], spans: list[tuple[int, int, int]], cut: int
) -> None:
    """Exactly the cells of the spans are written; in each line two widgets meet at ``cut``."""
    lines = [upper, lower]
    strips = [
        Strip([Segment(chr(97 + x), STYLES[n]) for x, n in enumerate(numbers)]).divide([cut, WIDTH])
        for numbers in lines
    ]
    chops = [{0: near, cut: far} for near, far in strips]
    console = Console(color_system="truecolor", force_terminal=True)
    update = ChopsUpdate(chops, spans, [[cut, WIDTH]] * 2)
    shown = screen_of(ThriftyUpdate(update).render_segments(console))
    expected = {
        (x, y): (chr(97 + x), _state(STYLES[lines[y][x]]))
        for y, start, end in spans
        for x in range(start, end)
    }
    assert shown == expected


def _state(style: Style) -> str:
    codes = style._make_ansi_codes(Console(color_system="truecolor")._color_system)  # type: ignore[arg-type]
    return _combined("", codes)


def test_a_terminal_without_colours_gets_none() -> None:
    """Attributes stand for colours: reversed on a bright background, dim where hard to see."""
    styles = (
        Style.parse("bold #ffffff on #000000"),
        Style.parse("#000000 on #ffffff"),
        Style.parse("#333333 on #000000"),
    )
    strip = Strip([Segment("hello", style) for style in styles])
    strip = strip.apply_filter(Colourless(lambda: True), Color.parse("black"))
    update = ChopsUpdate([{0: strip}], [(0, 0, 15)], [[15]])
    written = ThriftyUpdate(update).render_segments(Console(color_system=None, force_terminal=True))
    expected = "\x1b[1;1H\x1b[1mhello\x1b[0m\x1b[7mhello\x1b[0m\x1b[2mhello\x1b[0m"
    assert written == expected
