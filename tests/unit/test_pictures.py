"""A picture of a frame has each dot, block and line in its place; SVG keeps text as text."""

import io
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
from fontTools.ttLib import TTFont
from msgspec.structs import fields
from PIL import Image

from ccplay.errors import UsageError
from ccplay.ui import pictures as drawing
from ccplay.ui.cells import UNICODE
from ccplay.ui.pictures import Face, ScreenFrame, Span, is_drawn, png, shapes_of, svg

INK, PAPER, OTHER = "#ff8000", "#102030", "#405060"
SVG = "{http://www.w3.org/2000/svg}"


def frame(*rows: str, face: Face | None = None) -> ScreenFrame:
    """Return a frame of these rows, all in one face."""
    face = face or Face(INK, PAPER)
    spans = tuple((Span(0, tuple(row), face),) for row in rows)
    return ScreenFrame(len(rows[0]), len(rows), PAPER, spans)


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour[1:]))


def drawn(shown: ScreenFrame) -> Image.Image:
    return Image.open(io.BytesIO(png(shown))).convert("RGB")


def test_each_bit_of_a_braille_pattern_is_its_dot() -> None:
    """Each bit sets its dot of Unicode 16, chapter 21.1.

    Dots 1 to 3 run down the left, 4 to 6 down the right; 7 and 8 are at the bottom.
    """
    places = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)]
    patterns = "".join(chr(0x2800 + bits) for bits in range(256))
    image = drawn(frame(patterns))
    assert image.size == (256 * 20, 40)
    for bits in range(256):
        for bit, (column, row) in enumerate(places):
            at = (bits * 20 + 5 + column * 10, 5 + row * 10)
            assert image.getpixel(at) == rgb(INK if bits >> bit & 1 else PAPER), (bits, bit)


@pytest.mark.parametrize(
    ("char", "box"),
    [
        ("█", (0, 0, 20, 40)),
        ("▌", (0, 0, 10, 40)),
        ("▐", (10, 0, 20, 40)),
        ("▎", (0, 0, 5, 40)),
        ("▂", (0, 30, 20, 40)),
        ("▀", (0, 0, 20, 20)),
        ("▗", (10, 20, 20, 40)),
    ],
)
def test_a_block_fills_its_part_of_a_cell_and_nothing_else(
    char: str, box: tuple[int, int, int, int]
) -> None:
    image = drawn(frame(char))
    left, top, right, bottom = box
    for x in range(20):
        for y in range(40):
            inside = left <= x < right and top <= y < bottom
            assert image.getpixel((x, y)) == rgb(INK if inside else PAPER), (x, y)


def test_lines_join_across_cells_and_end_where_they_lead_nowhere() -> None:
    image = drawn(frame("┌─┐", "│ │", "└─┘"))
    for x in range(10, 51):
        assert image.getpixel((x, 20)) == image.getpixel((x, 100)) == rgb(INK), x
    for y in range(20, 101):
        assert image.getpixel((10, y)) == image.getpixel((50, y)) == rgb(INK), y
    assert image.getpixel((3, 20)) == image.getpixel((10, 10)) == rgb(PAPER)


def test_a_background_is_its_cells() -> None:
    two = (Span(0, (" ",), Face(INK, PAPER)), Span(1, ("a", " "), Face(INK, OTHER)))
    image = drawn(ScreenFrame(3, 1, PAPER, (two,)))
    assert image.getpixel((19, 39)) == rgb(PAPER)
    assert image.getpixel((20, 0)) == image.getpixel((59, 39)) == rgb(OTHER)


def test_every_character_of_ours_is_drawn_by_shapes_or_is_in_the_font() -> None:
    """Braille dots, blocks, box lines and glyphs need no font; the font has all others."""
    chars = {char for each in fields(UNICODE) for char in "".join(getattr(UNICODE, each.name))}
    path = next(each for each in drawing._font_folders() if each.is_dir()) / "DejaVuSansMono.ttf"
    known = TTFont(path).getBestCmap()
    assert [char for char in chars if not is_drawn(char) and ord(char) not in known] == []
    shaped = {*UNICODE.flow_glyphs, *UNICODE.ribbon, *UNICODE.queue_steps[1:], *"─│┌┐└┘├┤┬┴┼╭╮╯╰═"}
    assert [char for char in shaped if not shapes_of(char)] == []


def test_an_svg_has_text_as_text_and_one_dot_a_braille_dot() -> None:
    row = "ab  <&> ⣿⠂c"
    root = ET.fromstring(svg(frame(row), "title"))
    assert [each.text for each in root.iter(f"{SVG}text")] == ["ab  <&>", "c"]
    places = [(each.get("x"), each.get("textLength")) for each in root.iter(f"{SVG}text")]
    assert places == [("0", "70"), ("100", "10")]
    paths = "".join(each.get("d") or "" for each in root.iter(f"{SVG}path"))
    assert paths.count("M") == 9
    assert root.get("viewBox") == f"0 0 {len(row) * 10} 20"


def test_an_svg_of_a_strangers_text_has_nothing_of_his_in_it() -> None:
    face = Face(INK, PAPER, bold=True, underline=True)
    text = svg(frame("<script>\x1b\ud800'\"", face=face), "</title><script>\x00")
    root = ET.fromstring(text.encode())
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= {
        *("svg", "title", "rect", "g", "text", "path")
    }
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_the_faces_of_text_differ() -> None:
    faces = [Face(INK, PAPER, **{name: True}) for name in ("bold", "italic", "underline", "strike")]
    for picture in (png, lambda shown: svg(shown, "x")):
        assert len({picture(frame("word", face=face)) for face in [Face(INK, PAPER), *faces]}) == 5


def test_without_pillow_or_a_font_the_remedy_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as missing:
        missing.setitem(sys.modules, "PIL", None)
        with pytest.raises(UsageError, match=r"pip install .ccplay\[report\]"):
            png(frame("a"))
    monkeypatch.setattr(drawing, "_font_folders", list)
    with pytest.raises(UsageError, match=r"DejaVuSansMono\.ttf"):
        png(frame("a"))
    assert png(frame("⣿─█"))


def test_nobody_waits_for_pillow_before_a_png_is_drawn() -> None:
    modules = "ccplay.ui.offscreen, ccplay.ui.pictures"
    code = f"import sys, {modules}; print('PIL' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"False\n"
