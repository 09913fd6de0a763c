"""The command line where its streams are not what it is used to."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ccplay.cli import main
from ccplay.commands.screen import can_draw


def test_a_full_disk_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["schema"]) == 1
    assert capsys.readouterr().err == "ccplay: can't write the output: No space left on device\n"


@pytest.mark.parametrize("stream", [0, 1, 2])
def test_a_closed_stream_is_none_to_die_of(stream: int) -> None:
    """What is closed is filled, so that no other file gets its number."""
    done = subprocess.run(
        [sys.executable, "-m", "ccplay", "schema"],
        preexec_fn=lambda: os.close(stream),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == b""
    assert stream == 1 or json.loads(done.stdout)


@pytest.mark.parametrize(("encoding", "able"), [("utf-8", True), ("latin-1", False)])
def test_a_locale_without_unicode_gets_plain_ascii(encoding: str, able: bool) -> None:
    assert can_draw(io.TextIOWrapper(io.BytesIO(), encoding=encoding)) is able
