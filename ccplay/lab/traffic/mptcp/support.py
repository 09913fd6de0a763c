"""Multipath TCP in this kernel, found by trying, and its schedulers."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from pathlib import Path

from ccplay.errors import CommandError, UnsupportedError
from ccplay.model.traffic_commands import StartFlow, conflict
from ccplay.model.values import Feature

IPPROTO_MPTCP = 262
"""Protocol number of MPTCP, which Python's ``socket`` does not define on every system."""

_SYSCTLS = Path("/proc/sys/net/mptcp")
_SUMMARY = "flows over several paths: one connection of several subflows (RFC 8684)"
_SCHEDULERS = {
    "default": "the subflow that is expected to deliver first",
}
"""Effect of each of Linux's own schedulers in one line."""


def connections() -> Feature:
    """Return whether flows can use MPTCP, by a trial in the namespace of the caller."""
    reason, remedy = _lack()
    return Feature(
        name="mptcp", available=not reason, summary=_SUMMARY, reason=reason, remedy=remedy
    )


def _lack() -> tuple[str, str]:
    """Return why there is no MPTCP, and the remedy; both empty if there is."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP).close()
    except OSError as error:
        if error.errno in (errno.EPROTONOSUPPORT, errno.EINVAL):
            return "this kernel has no MPTCP", "a kernel with CONFIG_MPTCP has it (Linux 5.19)"
        if error.errno == errno.ENOPROTOOPT:
            return "MPTCP is disabled", "sysctl net.mptcp.enabled=1"
        return error.strerror or str(error), "allow MPTCP sockets"
    if not any((_SYSCTLS / name).exists() for name in ("path_manager", "pm_type")):
        reason = "this kernel does not let programs manage the paths of MPTCP"
        return reason, "Linux 5.19 or newer does"
    return "", ""


def schedulers() -> Iterator[Feature]:
    """Yield the schedulers of this kernel; none without MPTCP."""
    if not connections().available:
        return
    try:
        found = (_SYSCTLS / "available_schedulers").read_text(encoding="ascii").split()
    except OSError:
        # The list came with Linux 6.10; before, only the one in use could be read.
        found = ["default"]
    for name in found:
        yield Feature(name=name, available=True, summary=_SCHEDULERS.get(name, "not part of Linux"))


def require(command: StartFlow) -> None:
    """Raise ``UnsupportedError`` or ``CommandError`` if a flow can't use MPTCP as requested."""
    what = f"flow {command.flow}"
    if any(problem := conflict(command)):
        raise CommandError(f"{what}: {': '.join(problem)}")
    if not command.mptcp:
        return
    feature = connections()
    if not feature.available:
        raise UnsupportedError(f"{what}: no mptcp: {feature.reason}; {feature.remedy}")
    names = [each.name for each in schedulers()]
    if command.scheduler is not None and command.scheduler not in names:
        there = ", ".join(names)
        raise UnsupportedError(
            f"{what}: scheduler {command.scheduler!r} is not in this kernel (has: {there})"
        )
