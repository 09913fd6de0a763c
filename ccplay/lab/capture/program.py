"""A running capture program, tcpdump or dumpcap, which writes pcap to a pipe until SIGINT."""

from __future__ import annotations

import contextlib
import ctypes
import re
import signal
import subprocess
import threading
from typing import Self

_DEATH_SIGNAL = 1
"""Option ``PR_SET_PDEATHSIG`` of prctl(2)."""

_LISTENING = re.compile(r"listening on|^File: ")
"""Pattern of the message that tcpdump or dumpcap prints once it captures packets."""

_DROPPED = re.compile(r"(\d+) packets? dropped by kernel|received/dropped .*: \d+/(\d+) ")
"""Pattern of the number of dropped packets in the last message of tcpdump or of dumpcap."""

_libc = ctypes.CDLL(None)


class CaptureProgram:
    """A running tcpdump or dumpcap, which ends on SIGINT to this process, or with this process."""

    def __init__(self, argv: list[str], grace_s: float) -> None:
        self._argv, self._grace_s = argv, grace_s
        self._printed: list[str] = []
        self._listening = threading.Event()
        self._asked = False

    def __enter__(self) -> Self:
        """Start the program."""
        self._process = subprocess.Popen(
            self._argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - there are no threads yet
        )
        self._reader = threading.Thread(target=self._read_output, daemon=True)
        self._reader.start()
        signal.signal(signal.SIGINT, self._end)
        return self

    def __exit__(self, *_: object) -> None:
        """End the program."""
        self._process.kill()
        self._process.wait()

    @property
    def output(self) -> int:
        """Descriptor of the pipe to which the program writes pcap."""
        assert self._process.stdout is not None  # noqa: S101 - a pipe was asked for
        return self._process.stdout.fileno()

    def listens(self) -> bool:
        """Wait until the program captures packets; return False if it has ended or takes 20 s."""
        self._listening.wait(20.0)
        return any(_LISTENING.search(each) for each in self._printed)

    def stop(self, *, gone: bool) -> None:
        """End the program now, and wait for its last messages.

        ``gone`` is whether its output has ended already; the program may still be exiting.
        """
        if not gone:
            self._asked = True
            self._process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._process.kill()
        self._process.wait()
        self._reader.join(1.0)

    def dropped(self) -> int:
        """Return the number of packets that the kernel dropped."""
        found = [match for each in self._printed if (match := _DROPPED.search(each))]
        return int(found[-1][1] or found[-1][2]) if found else 0

    def refusal(self) -> str | None:
        """Return why the program ended by itself; None if it was asked to end."""
        return None if self._asked else self.last_words()

    def last_words(self) -> str:
        """Return the program's last message, or how it was ended."""
        name = self._argv[0].rpartition("/")[2]
        status = self._process.poll()
        if status is not None and status < 0:
            return f"{name} was killed by {signal.Signals(-status).name}"
        return self._printed[-1] if self._printed else f"{name} ended without a message"

    def _end(self, *_: object) -> None:
        self._asked = True
        end = threading.Timer(self._grace_s, self._process.send_signal, (signal.SIGINT,))
        end.daemon = True
        end.start()

    def _read_output(self) -> None:
        assert self._process.stderr is not None  # noqa: S101 - a pipe was asked for
        for line in self._process.stderr:
            if text := line.decode(errors="replace").strip():
                self._printed.append(text)
                if _LISTENING.search(text):
                    self._listening.set()
        self._listening.set()


def _die_with_parent() -> None:
    _libc.prctl(_DEATH_SIGNAL, signal.SIGKILL)
