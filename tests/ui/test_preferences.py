"""Preferences set keys, one large plot and bold lines, and the choices made are kept."""

from pathlib import Path

import pytest

from ccplay.session.session import Session
from ccplay.ui import preferences
from ccplay.ui.app import CcplayApp
from ccplay.ui.dialogs_traffic import StartDialog
from ccplay.ui.help import HelpScreen
from ccplay.ui.plot_canvas import Canvas
from ccplay.ui.preferences import Preferences
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import live, playing, until
from tests.ui.view import text_of

BLOCKS = set("▘▝▀▖▌▞▛▗▚▐▜▄▙▟█")
DOTS = {chr(0x2800 + each) for each in range(1, 256)}


def drawn(app: CcplayApp, plot: str) -> set[str]:
    """Return the characters of a plot."""
    return {char for row in app.main.query_one(f"#{plot}", Canvas)._cells for char, _ in row}


def shown(app: CcplayApp) -> list[str]:
    """Return the plots of the band."""
    return [*app.main.plots.displayed]


async def test_keys_of_ones_own_do_what_the_others_did() -> None:
    mine = Preferences(keys={"flow": "ctrl+f", "help": "f1"})
    async with playing(live(), preferences=mine) as (app, pilot):
        await pilot.press("f")
        assert app.screen is app.main
        await pilot.press("ctrl+f")
        assert isinstance(app.screen, StartDialog)


async def test_help_and_footer_show_keys_of_ones_own() -> None:
    mine = Preferences(keys={"flow": "ctrl+f", "help": "f1", "stop": "ctrl+r"})
    async with playing(live(), (160, 40), preferences=mine) as (app, pilot):
        footer = text_of(app, "footer")
        for item in (" f1 help ", " ^r stop "):
            assert item in footer
        await pilot.press("f1")
        assert isinstance(app.screen, HelpScreen)
        keys = [key for key, active in app.screen._keys_below() if active.binding.id == "flow"]
        assert keys == ["^f"]
        await pilot.press("f1")
        assert not app.screen.is_modal


async def test_hints_show_keys_of_ones_own() -> None:
    quiet = live(stream(busy=False))
    async with playing(
        quiet, preferences=Preferences(keys={"start-traffic": "F", "flow": "f2"})
    ) as (app, _):
        assert "F starts traffic" in text_of(app, "flows")
        assert "press f2 to start one" in text_of(app, "cwnd")


async def test_a_mistake_is_a_toast_and_nothing_fails() -> None:
    mine = Preferences(mistakes=("config.toml, line 1: theme: no",))
    async with playing(live(), preferences=mine) as (app, _):
        assert [each.message for each in app._notifications] == list(mine.mistakes)


async def test_plots_and_theme_are_as_preferred_and_options_win() -> None:
    mine = Preferences(theme="light", glyphs="ascii", plots=("rtt", "throughput"))
    async with playing(live(), preferences=mine, look="amber") as (app, _):
        assert shown(app) == ["rtt", "throughput"]
        assert app.appearance.look.name == "amber"
        assert app.appearance.glyphs.name == "ascii"


@pytest.mark.parametrize("plots", [(), ("rtt",)])
async def test_a_wide_screen_shows_goodput_too_unless_others_were_chosen(
    plots: tuple[str, ...],
) -> None:
    mine = Preferences(plots=plots)
    async with playing(live(), (160, 40), preferences=mine) as (app, pilot):
        if plots:
            assert shown(app) == ["rtt"]
            return
        assert shown(app) == ["cwnd", "queue", "rtt", "throughput"]
        await pilot.resize_terminal(159, 40)
        await until(pilot, lambda: shown(app) == ["cwnd", "queue", "rtt"])
        assert app.changed_choices() == {}
        await pilot.resize_terminal(160, 40)
        await until(pilot, lambda: len(shown(app)) == 4)
        app.main.plots.toggle("throughput")
        assert app.changed_choices() == {"plots": ("cwnd", "queue", "rtt")}
        app.main.plots.toggle("throughput")
        assert app.changed_choices() == {}


async def test_a_number_enlarges_a_plot_and_shares_the_band_again() -> None:
    async with playing(live()) as (app, pilot):
        await pilot.press("2")
        assert shown(app) == ["queue"]
        await pilot.pause()
        assert app.main.query_one("#queue").size.width == 120
        await pilot.press("3")
        assert shown(app) == ["rtt"]
        await pilot.press("3")
        assert shown(app) == ["cwnd", "queue", "rtt"]
        await pilot.press("9")
        assert shown(app) == ["cwnd", "queue", "rtt"]


async def test_a_large_plot_may_be_one_that_is_not_among_the_others() -> None:
    async with playing(live(), preferences=Preferences(large="throughput")) as (app, pilot):
        assert shown(app) == ["throughput"]
        await pilot.press("1")
        assert shown(app) == ["cwnd"]
        await pilot.press("1")
        assert shown(app) == ["cwnd", "queue", "rtt"]


async def test_bold_lines_are_solid_and_a_key_makes_them_thin() -> None:
    async with playing(live(), preferences=Preferences(stroke="bold")) as (app, pilot):
        assert drawn(app, "cwnd") & BLOCKS
        await pilot.press("B")
        assert not drawn(app, "cwnd") & BLOCKS
        assert drawn(app, "cwnd") & DOTS


@pytest.mark.parametrize(("look", "stroke"), [("projector", "bold"), ("dark", "normal")])
async def test_a_theme_has_its_stroke(look: str, stroke: str) -> None:
    async with playing(live(), look=look) as (app, _):
        assert app.appearance.stroke == stroke


async def test_only_what_was_changed_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    async with playing(live(), look="amber") as (app, pilot):
        assert app.changed_choices() == {}
        await pilot.press("ctrl+g", "B")
        app.main.plots.toggle("queue")
        assert app.changed_choices() == {
            "glyphs": "ascii",
            "stroke": "bold",
            "plots": ("cwnd", "rtt"),
        }
        preferences.keep(app.changed_choices())
        await pilot.press("ctrl+g")
        assert "glyphs" not in app.changed_choices()
    kept = preferences.load(app.appearance.looks)
    assert kept == Preferences(glyphs="ascii", stroke="bold", plots=("cwnd", "rtt"))


async def test_the_log_says_once_that_choices_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    async with playing(live()) as (app, pilot):
        await pilot.press("2", "2", "ctrl+g", "B")
        app.main.plots.toggle("queue")
        said = [each.text for each in app.session.state.log if "later sessions" in each.text]
        text = "your theme, characters, lines and plots are kept for later sessions in "
        assert said == [text + f"{tmp_path}/ccplay/config.toml"]


@pytest.mark.parametrize("way", ["ascii", "NO_COLOR"])
async def test_without_colours_lines_differ(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without colours four flows have four kinds of line: solid, dashed, dotted and dash-dot."""
    if way == "NO_COLOR":
        monkeypatch.setenv("NO_COLOR", "1")
    source = SyntheticSource(stream(seconds=20, flows=4, pairs=4), live=True)
    async with playing(source, ascii=way == "ascii") as (app, _):
        view = app.main.view
        assert len({view.flow_kind(name) for name in view.state.flows}) == 4
        if way == "NO_COLOR":
            assert app.appearance.stroke == "bold"


async def test_with_colours_all_lines_are_solid() -> None:
    async with playing(live()) as (app, _):
        view = app.main.view
        assert {view.flow_kind(name) for name in view.state.flows} == {"solid"}


def test_a_session_needs_no_preferences() -> None:
    app = CcplayApp(Session(live(), title="test"))
    assert app.appearance.keymap.own == {}
