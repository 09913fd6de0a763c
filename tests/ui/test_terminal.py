"""The terminal is given back as it was, whoever ends the screen."""

import os
import pty
import signal
import subprocess
import sys
import termios
from pathlib import Path
from select import select

RECORDING = next(iter(sorted((Path(__file__).parent / "recordings").glob("*.ccplay"))))
ENTERS, LEAVES = b"\x1b[?1049h", b"\x1b[?1049l"
PATIENCE_S = 30
"""A busy machine takes some seconds to import what draws."""


def read_until(terminal: int, wanted: bytes) -> bytes:
    """Return what is written to the terminal until ``wanted`` was, or nothing more comes."""
    seen = b""
    while wanted not in seen and select([terminal], [], [], PATIENCE_S)[0]:
        try:
            seen += os.read(terminal, 65_536)
        except OSError:
            break
    return seen


def test_sigterm_gives_the_terminal_back() -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    command = [sys.executable, "-m", "ccplay", "replay", str(RECORDING)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as shown:
        os.close(theirs)
        assert ENTERS in read_until(ours, b"events")
        shown.send_signal(signal.SIGTERM)
        assert LEAVES in read_until(ours, LEAVES)
        while read_until(ours, b"\0"):
            pass
    os.close(ours)
    assert shown.returncode == 128 + signal.SIGTERM
