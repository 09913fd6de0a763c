"""Preferences are read with every mistake named, and written safely, with the caller's rights."""

import os
import tomllib
from pathlib import Path

import pytest

from ccplay.errors import CcplayError
from ccplay.files import caller
from ccplay.ui import preferences
from ccplay.ui.keys import REMAPPABLE, Keymap, remapped
from ccplay.ui.preferences import Preferences, keep, load, parse, written
from ccplay.ui.themes import load_looks

LOOKS = ("dark", "light")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the caller's configuration folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("SUDO_UID", raising=False)
    return tmp_path


def write(home: Path, text: str) -> Path:
    path = home / "ccplay" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_without_a_file_there_are_defaults(home: Path) -> None:
    assert load(LOOKS) == Preferences()


def test_everything_can_be_set(home: Path) -> None:
    write(
        home,
        'theme = "light"\nglyphs = "ascii"\nstroke = "bold"\nplots = ["rtt", "cwnd"]\n'
        'large = "rtt"\n[keys]\nstop = "ctrl+x, F7"\n"zoom-in" = "."\n',
    )
    found = load(LOOKS)
    assert found == Preferences(
        theme="light",
        glyphs="ascii",
        stroke="bold",
        plots=("rtt", "cwnd"),
        large="rtt",
        keys={"stop": "ctrl+x,f7", "zoom-in": "full_stop"},
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('theme = "lihgt"', 'line 2: theme: "lihgt" is none of dark, light'),
        ("thme = 3", 'line 2: thme: unknown; did you mean "theme"?'),
        ("glyphs = 1", "line 2: glyphs: 1 is none of unicode, ascii"),
        ('stroke = "fat"', 'line 2: stroke: "fat" is none of normal, bold'),
        ('plots = "rtt"', 'line 2: plots: plots are a list such as ["cwnd", "rtt"]'),
        ('plots = ["rtt",\n"cwn"]', 'line 2: plots: "cwn" is none of cwnd, '),
        ('large = "x"', 'line 2: large: "x" is none of none, cwnd'),
        ('keys = "f"', "line 2: keys: keys are a table"),
        ('[keys]\nflow = "fg"', 'line 3: keys.flow: "fg" is no key: "f", "F"'),
        ("[keys]\nflow = 1", "line 3: keys.flow: keys are text such as"),
        ('[keys]\nflwo = "f"', 'line 3: keys.flwo: there is no such action; did you mean "flow"?'),
        ('[keys]\nflow = "p"', 'line 3: keys.flow: "p" is the key of ping: change one of them'),
        ('[keys]\nflow = "^p"', 'line 3: keys.flow: "^p" is no key'),
        ('[keys]\nflow = "ctrl+p"', 'line 3: keys.flow: "^p" opens the palette'),
    ],
)
def test_a_mistake_is_one_line_and_the_rest_works(text: str, message: str) -> None:
    found = parse(f"# mine\n{text}\n", "config.toml", LOOKS)
    assert len(found.mistakes) == 1
    assert found.mistakes[0].startswith(f"config.toml, {message}")
    assert (found.theme, found.plots, dict(found.keys)) == ("dark", (), {})


def test_what_stands_beside_a_mistake_holds() -> None:
    found = parse('theme = "light"\nglyphs = 1\n[keys]\nflow = 1\nstop = "X"\n', "c", LOOKS)
    assert (found.theme, dict(found.keys), len(found.mistakes)) == ("light", {"stop": "X"}, 2)


def test_what_is_no_toml_is_left_out() -> None:
    found = parse("theme = dark", "config.toml", LOOKS)
    assert len(found.mistakes) == 1
    assert "at line 1" in found.mistakes[0]


def test_keys_may_change_places() -> None:
    assert remapped({"flow": "p", "ping": "f"}) == ({"flow": "p", "ping": "f"}, {})


def test_a_mistake_frees_no_key_for_another() -> None:
    """A key stays taken if its action's new key is refused: here ping keeps p, so flow can't."""
    found = remapped({"flow": "p", "ping": "w"})
    assert found.keys == {}
    assert set(found.mistakes) == {"flow", "ping"}


def test_all_that_has_a_key_can_have_another() -> None:
    keymap = Keymap()
    assert keymap.shown("back") == "←"
    assert keymap.shown("quit") == "^q"
    assert remapped({name: ",".join(keymap.keys(name)) for name in REMAPPABLE}).mistakes == {}


def test_what_is_printed_is_a_file_of_preferences() -> None:
    mine = Preferences(theme="light", stroke="bold", plots=("rtt",), keys={"stop": "X"})
    assert parse(written(mine), "c", LOOKS).mistakes == ()
    again = parse(written(mine), "c", LOOKS)
    assert (again.theme, again.stroke, again.plots) == ("light", "bold", ("rtt",))
    assert Keymap(again.keys).keys("stop") == ("X",)
    assert Keymap(again.keys).keys("zoom-in") == Keymap().keys("zoom-in")


def test_choices_are_kept_beside_what_a_person_wrote(home: Path) -> None:
    path = write(home, '# mine\ntheme = "dark" # at night\n\n[keys]\nstop = "X" # my way\n')
    keep({"theme": "light", "plots": ("rtt", "cwnd")})
    text = path.read_text()
    assert "# mine" in text
    assert "# at night" in text
    assert "# my way" in text
    assert tomllib.loads(text) == {
        "theme": "light",
        "plots": ["rtt", "cwnd"],
        "keys": {"stop": "X"},
    }


def test_the_first_choice_makes_the_file(home: Path) -> None:
    keep({})
    assert not (home / "ccplay").exists()
    keep({"stroke": "bold"})
    assert load(LOOKS) == Preferences(stroke="bold")


def test_a_symlink_of_ones_own_stays_one(home: Path) -> None:
    """A symlink to a file elsewhere, such as under version control, is followed and kept."""
    kept = home / "dotfiles.toml"
    kept.write_text('theme = "light"\n')
    path = home / "ccplay" / "config.toml"
    path.parent.mkdir()
    path.symlink_to(kept)
    keep({"glyphs": "ascii"})
    assert path.is_symlink()
    assert tomllib.loads(kept.read_text()) == {"theme": "light", "glyphs": "ascii"}


def test_what_others_can_write_is_not_read(home: Path) -> None:
    path = write(home, 'theme = "light"\n')
    path.chmod(0o666)
    found = load(LOOKS)
    assert found.theme == "dark"
    assert "other users can write it" in found.mistakes[0]
    with pytest.raises(CcplayError, match="other users can write it"):
        keep({"theme": "light"})


def test_a_file_that_is_no_toml_is_not_overwritten(home: Path) -> None:
    path = write(home, "theme = dark\n")
    with pytest.raises(CcplayError, match="can't keep your choices in"):
        keep({"theme": "light"})
    assert path.read_text() == "theme = dark\n"


@pytest.mark.parametrize(
    "text", ["[keys]\nstop = 'X'\n", "keys.stop = 'X'\n", "[keys]\n[theme]\nname = 'x'\n"]
)
def test_a_choice_never_falls_into_a_table(home: Path, text: str) -> None:
    path = write(home, text)
    keep({"theme": "light"})
    assert tomllib.loads(path.read_text()) == {**tomllib.loads(text), "theme": "light"}


def test_a_pipe_is_no_file_of_preferences(home: Path) -> None:
    (home / "ccplay").mkdir()
    os.mkfifo(home / "ccplay" / "config.toml")
    assert "not a regular file" in load(LOOKS).mistakes[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root acts for others")
class TestUnderSudo:
    """Root reads and writes the caller's files only with the caller's rights."""

    CALLER = 54321

    @pytest.fixture(autouse=True)
    def sudo(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SUDO_UID", str(self.CALLER))
        monkeypatch.setenv("SUDO_GID", str(self.CALLER))
        for folder in (home, *home.parents[:-2]):
            folder.chmod(folder.stat().st_mode | 0o055)
        os.chown(home, self.CALLER, self.CALLER)

    def test_choices_belong_to_the_caller(self, home: Path) -> None:
        keep({"theme": "light"})
        for path in (home / "ccplay", home / "ccplay" / "config.toml"):
            assert (path.stat().st_uid, path.stat().st_gid) == (self.CALLER, self.CALLER)
        assert load(LOOKS).theme == "light"
        assert (os.geteuid(), os.getegid()) == (0, os.getgid())

    def test_where_the_caller_may_not_write_root_does_not(self, home: Path) -> None:
        elsewhere = home / "roots"
        elsewhere.mkdir(mode=0o755)
        (home / "ccplay").symlink_to(elsewhere)
        with pytest.raises(CcplayError, match="Permission denied"):
            keep({"theme": "light"})
        assert list(elsewhere.iterdir()) == []
        assert os.geteuid() == 0

    def test_what_the_caller_may_not_read_root_does_not(self, home: Path) -> None:
        secret = write(home, 'theme = "light"\n')
        secret.chmod(0o600)
        assert "Permission denied" in load(LOOKS).mistakes[0]

    def test_where_rights_cannot_be_given_up_nothing_is_read(
        self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Nothing is read if rights can't be given up: a user namespace may forbid setgroups(2)."""

        def refuse(_groups: list[int]) -> None:
            raise PermissionError(1, "Operation not permitted")

        write(home, 'theme = "light"\n')
        monkeypatch.setattr(os, "setgroups", refuse)
        assert "Operation not permitted" in load(LOOKS).mistakes[0]
        assert "dark" in load_looks()
        assert "are ignored: Operation not permitted" in capsys.readouterr().err

    def test_the_home_is_the_callers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("XDG_CONFIG_HOME")
        monkeypatch.setenv("SUDO_UID", "1")
        expected = Path("~daemon").expanduser() / ".config" / "ccplay"
        assert caller.config_folder() == expected
        assert preferences.path() == expected / "config.toml"
