"""How a lab is started: the command line says where captures go and what its machine is called."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from ccplay import launch


def test_a_lab_here_is_told_an_absolute_path() -> None:
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
