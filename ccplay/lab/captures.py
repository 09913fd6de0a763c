"""Packet captures: started and stopped by name, each a process that writes one pcapng file."""

from __future__ import annotations

import asyncio
import re
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ccplay.assets import find_tool
from ccplay.errors import CommandError, LabError, UnsupportedError
from ccplay.lab.netns import Namespace
from ccplay.lab.network import mac
from ccplay.lab.traffic.program import Program
from ccplay.model.base import Event
from ccplay.model.commands import StartCapture
from ccplay.model.events import CaptureEnded, CaptureStarted
from ccplay.model.network import Link, Network
from ccplay.model.quantities import check

if TYPE_CHECKING:
    from ccplay.lab.capture_writer import CaptureRequest


# --- chooses the program that captures packets, one that works here, and its command line ---------
# tcpdump is small; Debian's drops root by switching to its own user, which the root of a user
# namespace can't do. dumpcap comes with all of Wireshark and keeps its user.

_EMPTY_PCAP = struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 1)


class CaptureTool(msgspec.Struct, frozen=True):
    """The command line of a program that writes pcap to stdout until SIGINT."""

    argv: list[str]
    grace_s: float
    """Seconds for which the program may buffer packets."""


def capture_program(interface: str, snaplen: int) -> CaptureTool | str:
    """Return how to capture on an interface, or why it is impossible, with the remedy."""
    common = ["-p", "-s", str(snaplen), "-i", interface, "-w", "-"]
    tcpdump, dumpcap = find_tool("tcpdump"), find_tool("dumpcap")
    if tcpdump is not None and not (refusal := tcpdump_refusal(tcpdump)):
        options = ["-U", "--immediate-mode", "--time-stamp-precision=nano", "-B", "4096"]
        return CaptureTool([tcpdump, *options, *common], 0)
    if dumpcap is not None:
        # dumpcap reads packets from the kernel every 250 ms (CAP_READ_TIMEOUT in dumpcap.c).
        return CaptureTool([dumpcap, "-q", "-P", *common], 0.3)
    if tcpdump is None:
        return "neither tcpdump nor dumpcap is installed (apt install tcpdump)"
    return f"{refusal} ({ROOTLESS_REMEDY})"


ROOTLESS_REMEDY = "run ccplay as root, or: apt install wireshark-common"


def begin_trial() -> None:
    """Start the trial that ``tcpdump_refusal`` waits for."""
    if (path := find_tool("tcpdump")) is not None:
        _trial(path)


@cache
def _trial(path: str) -> subprocess.Popen[bytes]:
    """Start tcpdump to read from a pipe, for which it drops root as it does for a capture."""
    pipe = subprocess.PIPE
    return subprocess.Popen([path, "-r", "-"], stdin=pipe, stdout=pipe, stderr=pipe)


@cache
def tcpdump_refusal(path: str) -> str:
    """Return the reason why tcpdump can't capture as this user; empty if it can."""
    trial = _trial(path)
    messages = trial.communicate(_EMPTY_PCAP)[1].decode(errors="replace").strip().splitlines()
    if trial.returncode == 0:
        return ""
    return messages[-1] if messages else f"tcpdump ended with exit status {trial.returncode}"


# --- packet captures: started and stopped by name, each a process that writes one pcapng file -----

MOST_CAPTURES = 64
"""Largest number of captures in a lab; each may occupy its largest size on the disk."""

_END_S = 5.0
"""Seconds that a capture may take to end; even a busy machine needs less than one second."""

_UNFIT = re.compile(r"[^A-Za-z0-9_.]+")


class CaptureFolder(msgspec.Struct, frozen=True):
    """The directory for the user's files, and the machine on which it is."""

    directory: Path
    machine: str
    """Name of this machine as the user knows it; empty if it is the user's own."""

    def spell(self, path: str) -> str:
        """Return a file's path as the user needs it: ``HOST:/path``, as in scp(1), if remote."""
        return f"{self.machine}:{path}" if self.machine else path


class Captures:
    """All captures of a lab; ``close`` ends the running ones."""

    def __init__(
        self,
        namespace: Callable[[str], Namespace],
        network: Network,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
        *,
        place: CaptureFolder,
        label: str,
    ) -> None:
        """Start empty; files are named after ``label``, or after the time if it is empty."""
        self._namespace = namespace
        self._network = network
        self._place = place
        self._label = label
        self._emit, self._clock = emit, clock
        self._captures: dict[str, _Capture] = {}

    async def start(self, link: Link, command: StartCapture) -> StartCapture:
        """Start a capture at the sending end of ``link``; return ``command`` with all names.

        Raises ``CommandError`` for an impossible request, ``UnsupportedError`` if no program can
        capture here, and ``LabError`` if it does not start.
        """
        from ccplay.lab.capture_writer import CaptureRequest  # noqa: PLC0415 - labs start without it

        command = replace(command, link=link.name, capture=self._new_name(command.capture))
        check(command, "capture")
        program = capture_program(link.interface, command.snaplen)
        if isinstance(program, str):
            raise UnsupportedError(f"capture {command.capture}: {program}")
        request = CaptureRequest(
            command=command,
            program=program.argv,
            grace_s=program.grace_s,
            interface=link.interface,
            mac=mac(link),
            directory=str(self._place.directory.absolute()),
            stem=self._stem(link),
        )
        name = command.capture or ""
        capture = _Capture(name, self._place, self._emit, self._clock)
        await capture.start(self._namespace(link.src), request)
        self._captures[name] = capture
        return command

    def stop(self, name: str) -> None:
        """End a capture; ``CaptureEnded`` follows.

        Raises ``CommandError`` if none with this name runs.
        """
        capture = self._captures.get(name)
        if capture is None or capture.ended:
            there = [each for each, other in self._captures.items() if not other.ended]
            raise CommandError(
                f"no capture {name!r} is running; running: {', '.join(there) or 'none'}"
            )
        capture.begin_stop()

    async def close(self) -> None:
        """End every capture."""
        await asyncio.gather(*(each.stop() for each in self._captures.values() if not each.ended))

    def _new_name(self, name: str | None) -> str:
        if len(self._captures) >= MOST_CAPTURES:
            raise CommandError(f"a lab makes at most {MOST_CAPTURES} captures")
        if name is None:
            numbers = range(1, MOST_CAPTURES + 1)
            return next(free for n in numbers if (free := f"c{n}") not in self._captures)
        if name in self._captures:
            raise CommandError(f"the name {name!r} is taken: another capture uses or used it")
        return name

    def _stem(self, link: Link) -> str:
        label = _UNFIT.sub("-", self._label).strip("-.")[:100]
        label = label or time.strftime("ccplay-%Y%m%d-%H%M%S")
        return f"{label}-{link.src}-{link.dst}"


class _Capture:
    """One capture, running or ended."""

    def __init__(
        self,
        name: str,
        place: CaptureFolder,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
    ) -> None:
        self.ended = False
        self._name, self._place, self._emit, self._clock = name, place, emit, clock
        self._stopping: asyncio.Task[int] | None = None
        self._started: asyncio.Future[CaptureStarted] = asyncio.get_running_loop().create_future()

    async def start(self, namespace: Namespace, request: CaptureRequest) -> None:
        """Start the capture and wait until it captures packets. Raises ``LabError``."""
        text = msgspec.json.encode(request).decode()
        argv = [sys.executable, "-P", "-m", "ccplay.lab.capture_writer", text]
        self._program = await Program.start(namespace, argv)
        self._attending = asyncio.create_task(self._attend())
        self._report(await self._started)

    def begin_stop(self) -> None:
        """End the capture without waiting for its file to be complete."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._program.stop(_END_S))

    async def stop(self) -> None:
        """End the capture and wait until it has ended."""
        self.begin_stop()
        await self._attending

    async def _attend(self) -> None:
        last: CaptureStarted | CaptureEnded | None = None
        async for line in self._program.lines():
            last = _REPORTS.decode(line)
            if isinstance(last, CaptureStarted):
                self._started.set_result(last)
        await self._program.wait()
        self.ended = True
        words = self._program.last_words()
        if last is None:
            self._started.set_exception(LabError(f"capture {self._name}: {words}"))
        elif isinstance(last, CaptureEnded):
            self._report(last)
        else:
            ended = CaptureEnded(
                t=0, capture=self._name, path=last.path, packets=0, bytes=0, dropped=0, error=words
            )
            self._report(ended)

    def _report(self, event: CaptureStarted | CaptureEnded) -> None:
        """Emit an event of the capture's process, now, with the path as the user needs it."""
        self._emit(replace(event, t=self._clock(), path=self._place.spell(event.path)))


_REPORTS = msgspec.json.Decoder(CaptureStarted | CaptureEnded)
"""Decoder of what the process of a capture prints."""
