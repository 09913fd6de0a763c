"""Shipped themes are legible to everybody, and a broken theme is reported."""

from pathlib import Path

import pytest

from ccplay.assets import assets
from ccplay.errors import UsageError
from ccplay.ui.themes import PLOT, Look, load_looks, read_look
from tests.unit.vision import MACHADO, ciede2000, closest, contrast, nearest_pair

SHIPPED = sorted(assets("themes").glob("*.toml"))

TEXT = ("axis", "text", "muted", "good", "warn", "bad")
"""Colours of words and numbers; the other colours of a plot are those of lines."""


@pytest.fixture(params=SHIPPED, ids=lambda path: path.stem)
def look(request: pytest.FixtureRequest) -> Look:
    """Return each shipped theme."""
    path: Path = request.param
    return read_look(path)


def background(look: Look) -> str:
    """Return the colour behind the plots."""
    return str(look.textual_theme.background)


def test_the_themes_that_were_promised_ship_with_the_default_first() -> None:
    looks = load_looks(folders=[assets("themes")])
    assert next(iter(looks)) == "dark"
    assert {"dark", "light", "colourblind", "projector"} <= set(looks)


def test_text_is_legible(look: Look) -> None:
    """Text has the contrast of 4.5:1 of WCAG 2.1, criterion 1.4.3, as have flows' names."""
    colours = [look.colours[name] for name in TEXT] + list(look.flows)
    assert min(contrast(each, background(look)) for each in colours) >= 4.5


def test_lines_stand_out(look: Look) -> None:
    """Lines other than the grid have the contrast of 3:1 of WCAG 2.1, criterion 1.4.11."""
    lines = [look.colours[name] for name in PLOT if name != "grid"] + list(look.ca_states)
    assert min(contrast(each, background(look)) for each in lines) >= 3


def test_ghosts_stand_out_and_back(look: Look) -> None:
    """A ghost's lines have a contrast of at least 3:1, but less than that of live lines."""
    for colour in (*look.flows, look.colours["queue"], look.colours["ping"]):
        faded = contrast(look.faded(colour), background(look))
        assert 3 <= faded < contrast(colour, background(look))


def test_a_theme_may_leave_the_ghost_out(tmp_path: Path) -> None:
    """A theme without a colour for ghosts uses ``muted``: users' older themes have none."""
    lines = (assets("themes") / "dark.toml").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("ghost"))
    (tmp_path / "mine.toml").write_text(text)
    look = read_look(tmp_path / "mine.toml")
    assert look.colours["ghost"] == look.colours["muted"]


def test_dialogs_are_legible(look: Look) -> None:
    """Text of every kind is legible on every background of Textual's widgets."""
    theme = look.textual_theme
    grounds = [theme.background, theme.surface, theme.panel]
    texts = [theme.foreground, theme.primary, theme.accent, theme.warning, theme.error]
    assert min(contrast(str(one), str(other)) for one in texts for other in grounds) >= 4.5


@pytest.mark.parametrize("vision", MACHADO)
def test_the_first_four_flows_are_distinguished(look: Look, vision: str) -> None:
    """The first four flows differ by 0.1 in OKLab to any vision.

    0.1 is a tenth of the distance from black to white, five times a just noticeable difference.
    """
    assert closest(look.flows[:4], vision) >= 0.1


@pytest.mark.parametrize("vision", MACHADO)
def test_the_colour_blind_theme_distinguishes_everything(vision: str) -> None:
    """Any two flows, and drops, marks and the queue, are clearly distinct to any vision."""
    look = read_look(assets("themes") / "colourblind.toml")
    signs = [look.colours[name] for name in ("drop", "mark", "queue")]
    queued = (*look.flows[:8], look.colours["queue"])
    for colours, least in ((queued, 12.0), (look.flows[:4], 15.0), (signs, 15.0)):
        distance, one, other = nearest_pair(colours, vision)
        assert distance >= least, f"{one} and {other}"


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, -1.3802, -84.2814), (50.0, 0.0, -82.7485), 1.0),
        ((50.0, 2.49, -0.001), (50.0, -2.49, 0.0011), 7.2195),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((6.7747, -0.2908, -2.4247), (5.8714, -0.0985, -2.2286), 0.6377),
    ],
)
def test_distances_are_those_of_ciede2000(
    one: tuple[float, float, float], other: tuple[float, float, float], distance: float
) -> None:
    """Distances equal the test data of Sharma, Wu and Dalal."""
    assert ciede2000(one, other) == pytest.approx(distance, abs=1e-4)


def test_every_flow_has_a_colour_of_its_own(look: Look) -> None:
    assert len(set(look.flows)) == len(look.flows) >= 8
    assert len(set(look.ca_states)) == len(look.ca_states) == 5


def test_the_queue_has_a_colour_of_its_own(look: Look) -> None:
    """The queue's colour is far from each flow's; the greys of the print theme are nearer."""
    least = 0.05 if look.name == "print" else 0.1
    assert min(closest((look.colours["queue"], flow), "normal") for flow in look.flows) >= least


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        ('"#8b98a5"', '"grey"', "[plot] axis: 'grey' is not a colour such as '#5fb3ff'"),
        ("grid =", "gird =", "[plot] unknown name 'gird'; did you mean \"grid\"?"),
        ("panel =", "# panel =", "[screen] lacks 'panel'"),
        ("[plot]", "[plots]", "unknown name 'plots'; did you mean \"plot\"?"),
        ("dark = true", "dark = 1", "dark is true or false, not 1"),
        ("flows = [", "flows = []\nca_states = [", "Cannot overwrite a value"),
        ('title = "Dark"', "title = Dark", "at line 1"),
        ('"#5c7f6a", ', "", "[plot] ca_states is a list of at least 5 colours"),
    ],
)
def test_a_broken_theme_is_named_and_left_out(
    tmp_path: Path, wrong: str, right: str, message: str
) -> None:
    """A broken theme is reported with file, place and suggestion, and the others still load."""
    text = (assets("themes") / "dark.toml").read_text()
    assert wrong in text
    (tmp_path / "mine.toml").write_text(text.replace(wrong, right, 1))
    (tmp_path / "other.toml").write_text(text)
    complaints: list[str] = []
    looks = load_looks(complaints.append, [tmp_path])
    assert list(looks) == ["other"]
    assert len(complaints) == 1
    assert str(tmp_path / "mine.toml") in complaints[0]
    assert message in complaints[0]


def test_a_users_theme_wins_over_ours(tmp_path: Path) -> None:
    text = (assets("themes") / "dark.toml").read_text()
    (tmp_path / "dark.toml").write_text(text.replace('title = "Dark"', 'title = "Mine"'))
    assert load_looks(folders=[assets("themes"), tmp_path])["dark"].title == "Mine"


def test_a_file_that_cannot_be_read_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.toml"):
        read_look(tmp_path / "none.toml")
