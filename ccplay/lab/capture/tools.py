"""Chooses the program that captures packets, one that works here, and its command line.

tcpdump is small; Debian's drops root by switching to its own user, which the root of a user
namespace can't do. dumpcap comes with all of Wireshark and keeps its user.
"""

from __future__ import annotations

import struct
import subprocess
from functools import cache

import msgspec

from ccplay.assets import find_tool

_EMPTY_PCAP = struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 1)


class CaptureTool(msgspec.Struct, frozen=True):
    """The command line of a program that writes pcap to stdout until SIGINT."""

    argv: list[str]
    grace_s: float
    """Seconds for which the program may buffer packets."""


def program(interface: str, snaplen: int) -> CaptureTool | str:
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
