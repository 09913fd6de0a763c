"""Pictures and casts of recordings equal the screen cell by cell, without a terminal."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pyte
import pytest
from PIL import Image

from ccplay.cli import main
from ccplay.stream import wire
from ccplay.ui.cells import Sheet
from ccplay.ui.offscreen import FPS, PictureOptions, offscreen, write_cast
from ccplay.ui.pictures import HEIGHT, WIDTH, ScreenFrame, frame_of, png
from tests.ui.synthetic import stream
from tests.ui.test_main import live, playing, until
from tests.ui.test_snapshots import RECORDING

BRAILLE = 0x2800
DOTS = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))


def cells(frame: ScreenFrame) -> dict[tuple[int, int], tuple[str, str, str]]:
    """Return character, ink and background of each cell; a space has no ink."""
    return {
        (x, y): (char, "" if char == " " else span.face.ink[1:], span.face.paper[1:])
        for y, row in enumerate(frame.rows)
        for span in row
        for x, char in enumerate(span.cells, span.x)
    }


def seen(screen: pyte.Screen) -> dict[tuple[int, int], tuple[str, str, str]]:
    """Return character, ink and background of each cell of a terminal; a space has no ink."""
    return {
        (x, y): (cell.data, "" if cell.data == " " else cell.fg, cell.bg)
        for y in range(screen.lines)
        for x in range(screen.columns)
        for cell in (screen.buffer[y][x],)
    }


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour))


async def test_a_png_has_every_dot_of_the_plots_and_no_other() -> None:
    async with playing(live(stream(seconds=20))) as (app, pilot):
        await until(pilot, lambda: app.main.shown.playhead.t > 19)
        app.main.redraw()
        await pilot.pause()
        frame = frame_of(app)
    image = Image.open(io.BytesIO(png(frame))).convert("RGB")
    assert image.size == (frame.width * 2 * WIDTH, frame.height * 2 * HEIGHT)
    plotted = 0
    for (x, y), (char, ink, paper) in cells(frame).items():
        if not 0 < (bits := ord(char) - BRAILLE) < 0x100:
            continue
        for bit, (column, row) in enumerate(DOTS):
            at = (x * 20 + 5 + column * 10, y * 40 + 5 + row * 10)
            assert image.getpixel(at) == rgb(ink if bits >> bit & 1 else paper), (x, y, bit)
            plotted += bits >> bit & 1
    assert plotted > 500


async def test_a_picture_of_a_dialog_has_what_lies_under_it_faded() -> None:
    async with playing(live(stream(seconds=5))) as (app, pilot):
        await pilot.pause()
        plain = cells(frame_of(app))
        await pilot.press("c")
        # As before the dialog is first drawn, when the faded screen below is not yet cached.
        app.screen.refresh()
        frame = frame_of(app)
    text, faded = "\n".join(frame.lines), cells(frame)
    assert "Congestion control" in text
    assert "congestion window" in text
    assert faded[0, 8][0] == plain[0, 8][0] == "c"
    assert faded[0, 8][1] != plain[0, 8][1]


async def test_a_picture_is_what_the_terminal_shows_at_any_moment_and_in_any_order() -> None:
    setting = PictureOptions(size=(100, 30), look="light", window=10.0)
    async with offscreen(RECORDING, "title", setting) as shown:
        pictures: dict[float, ScreenFrame] = {}
        for t in (29.0, 5.0, 33.0, 29.0, 5.0):
            await shown.show(t)
            assert pictures.setdefault(t, shown.frame) == shown.frame
        assert (pictures[5.0].width, pictures[5.0].height) == (100, 30)
        assert "00:05" in pictures[5.0].lines[0]
        assert "00:29" in pictures[29.0].lines[0]
        assert pictures[29.0].paper == shown.colours[1] != "#11161c"
        assert pictures[5.0].rows[1:] != pictures[29.0].rows[1:]


async def test_a_cast_shows_in_a_terminal_what_each_frame_is() -> None:
    """Each event of a cast turns the previous frame in a terminal into the next, with colours."""
    terminal = pyte.Screen(100, 30)
    feed = pyte.Stream(terminal).feed
    async with offscreen(RECORDING, "title", PictureOptions(size=(100, 30), speed=2.0)) as shown:
        await shown.show(22.0)
        picture = shown.frame
        moments: list[float] = []
        async for t, text in shown.play(22.0, 26.0):
            feed(text)
            assert seen(terminal) == cells(shown.frame), t
            if not moments:
                assert shown.frame == picture
            moments.append(t)
    assert moments[0] == 0.0
    assert moments[-1] == pytest.approx(2.0)
    assert len(moments) == len(set(moments)) > FPS
    assert "00:26" in terminal.display[0]


async def test_a_cast_is_a_header_and_events_as_asciinema_wants_them(tmp_path: Path) -> None:
    """A cast has the format of https://docs.asciinema.org/manual/asciicast/v2/."""
    path = tmp_path / "a.cast"
    async with offscreen(RECORDING, "title", PictureOptions(speed=4.0)) as shown:
        await write_cast(shown, path, 20.0, 24.0, 4.0)
        await shown.show(20.0)
        picture = shown.frame
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    header = json.loads(first)
    assert {**header, "theme": 0} == {
        "version": 2,
        "width": 120,
        "height": 40,
        "duration": 1.0,
        "title": "ccplay title",
        "env": {"TERM": "xterm-256color"},
        "theme": 0,
    }
    assert len(header["theme"]["palette"].split(":")) == 16
    events: list[list[Any]] = [json.loads(each) for each in lines]
    assert all(kind == "o" and isinstance(text, str) for _, kind, text in events)
    moments = [t for t, _, _ in events]
    assert moments == sorted(moments)
    assert 0.0 <= moments[0] <= moments[-1] <= 1.0
    terminal = pyte.Screen(120, 40)
    pyte.Stream(terminal).feed(events[0][2])
    assert seen(terminal) == cells(picture)
    assert terminal.cursor.hidden


@pytest.fixture
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_here")
@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("--picture 29", {"ccplay-00m29.0s.svg", "ccplay-00m29.0s.png"}),
        ("--picture 0:29 --out a.svg", {"a.svg"}),
        ("--picture 5 --picture 0:29 --out a.png", {"a-00m05.0s.png", "a-00m29.0s.png"}),
        ("--cast a.cast --from 20 --to 21", {"a.cast"}),
        ("--picture 5 --out a.svg --cast a.cast --at 35.5 --size 80x24", {"a.svg", "a.cast"}),
    ],
)
def test_files_are_written_without_a_terminal_and_named_on_stdout(
    words: str, names: set[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(RECORDING), *words.split()]) == 0
    assert set(capfd.readouterr().out.split()) == names
    assert {each.name for each in Path().iterdir()} == names
    for name in names:
        begins = {".svg": b"<svg", ".png": b"\x89PNG", ".cast": b'{"version": 2'}[Path(name).suffix]
        assert Path(name).read_bytes().startswith(begins)


@pytest.mark.usefixtures("_here")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--picture 999", "nothing is recorded at 999 s: the recording ends at 00:36"),
        ("--picture 5 --out there.svg", "there.svg already exists: choose another name"),
        ("--picture 5 --out no/a.svg", "can't write no/a.svg: No such file or directory"),
        ("--cast there.svg", "there.svg already exists: choose another name"),
        ("--cast a.cast --to 999", "nothing is recorded at 999 s"),
        ("--cast a.cast --at 9 --to 8", "--to (8 s) must be later than the start (9 s)"),
        ("--out a.svg", "--out names a picture: name its moment too"),
        ("--to 8", "--to ends a cast: name its file too"),
        ("--picture 5 --theme nix", "unknown theme 'nix'"),
    ],
)
def test_what_can_not_be_drawn_is_one_line_and_leaves_no_file(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("there.svg").write_text("precious")
    assert main(["replay", str(RECORDING), *words.split()]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith(f"ccplay: {said}")
    assert errors.count("\n") == 1
    assert [each.name for each in Path().iterdir()] == ["there.svg"]
    assert Path("there.svg").read_text() == "precious"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--picture 5 --out a.gif", "--out: a.gif ends neither in .svg nor in .png"),
        ("--picture 5 --size 79x24", "--size: must be from 80x24 to 500x200 cells, not 79x24"),
        ("--picture 5 --size huge", "--size: huge is not a size such as 120x40"),
        ("--picture 5 --window 0s", "--window: must be from 0.1 s to 6 h, not 0s"),
        ("--picture x", "--picture: 'x' is not a number"),
    ],
)
def test_words_that_mean_nothing_are_refused(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["replay", str(RECORDING), *words.split()])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("_here")
def test_without_pillow_the_svg_is_there_and_the_remedy_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert main(["replay", str(RECORDING), "--picture", "29"]) == 2
    assert [each.name for each in Path().iterdir()] == ["ccplay-00m29.0s.svg"]
    assert capsys.readouterr().err.startswith("ccplay: a PNG needs Pillow: pip install")


@pytest.mark.usefixtures("_here")
def test_a_recording_or_a_ghost_that_ends_in_rubbish_is_no_picture(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = RECORDING.read_bytes().splitlines(keepends=True)[:200]
    Path("cut.ccplay").write_bytes(b"".join(lines) + b"oh!\n")
    for words in ([], ["--ghost", "cut.ccplay"]):
        whole = str(RECORDING) if words else "cut.ccplay"
        assert main(["replay", whole, *words, "--picture", "1", "--out", "a.svg"]) == 4
        assert capsys.readouterr().err.startswith("ccplay: cut.ccplay:201: ")
    assert not Path("a.svg").exists()


async def test_a_ghost_lies_under_a_picture() -> None:
    without, ghost = PictureOptions(), PictureOptions(ghost=RECORDING)
    frames = []
    for setting in (without, ghost):
        async with offscreen(RECORDING, "title", setting) as shown:
            await shown.show(12.0)
            frames.append(shown.frame)
    assert frames[0] != frames[1]


async def test_a_picture_has_a_table_as_high_as_its_moment_needs(tmp_path: Path) -> None:
    """The table has a row for each of eight flows, although it had one flow a picture earlier."""
    path = tmp_path / "many.ccplay"
    with path.open("wb") as file:
        file.writelines(wire.encode(each) for each in stream(pairs=8, flows=8, seconds=25.0))
    async with offscreen(path, "many", PictureOptions()) as shown:
        for t, lines in ((2.0, 2), (24.0, 9)):
            await shown.show(t)
            table = shown._app.main.query_one("#flows", Sheet)
            text = table_text(table)
            assert "more" not in text
            assert sum(bool(each.strip()) for each in text.splitlines()) == lines + 1


def table_text(sheet: Sheet) -> str:
    return "\n".join("".join(char for char, _ in row) for row in sheet._cells)
