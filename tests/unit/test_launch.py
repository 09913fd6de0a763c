"""How a lab is started: the command line says where captures go and what its machine is called."""

import shlex
from pathlib import Path

import pytest

from ccplay.errors import LabError
from ccplay.guest import boot
from ccplay.session import launch


def test_a_lab_here_receives_an_absolute_path() -> None:
    assert launch.inner_argv()[-1] == "ccplay.lab"
    assert launch.inner_argv(Path("some where"))[-3:] == [
        "ccplay.lab",
        str(Path.cwd() / "some where"),
        "",
    ]
    assert launch.inner_argv(machine="box")[-2:] == [str(Path.cwd()), "box"]


@pytest.mark.parametrize("captures", [None, Path("a b/$(reboot); x")])
def test_what_goes_to_another_machine_survives_its_shell(captures: Path | None) -> None:
    """ssh(1) hands one line to a shell there; a path of that machine stays as it is."""
    *ssh, host, line = launch.lab_argv("box", captures)
    assert ssh[0] == "ssh"
    assert ssh[-1] == "--"
    assert host == "box"
    place = ["--captures", str(captures)] if captures else []
    assert shlex.split(line) == ["ccplay", "lab", *place, "--machine", "box"]


def test_a_guest_is_lent_folders_but_never_all_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Mounted over its own root, the machine's would be written to."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(boot, "argv", lambda _, shared, **__: [str(each) for each in shared])
    shared = launch.guest_argv(tmp_path / "run", [Path("/there/mine.bpf.c")])
    assert shared == [str(tmp_path / "run"), "/there", str(tmp_path / "ccplay")]
    # The directory of a run is none before its store has made it.
    assert not (tmp_path / "run").exists()
    with pytest.raises(LabError, match="may not write to /"):
        launch.guest_argv(tmp_path, [Path("/mine.bpf.c")])
