"""A warm process: it has imported the lab, and forks a lab for each request.

``python -m ccplay.lab.warm`` reads requests from the socket at its descriptor 3. A request is JSON
with ``arguments``, ``environment`` and ``user`` (whether to create a user namespace, too), and
carries descriptors of the lab's stdin, stdout and stderr, of its current directory, and of a pipe
for reports. A fork makes the namespaces as ``launch.UNSHARE`` does, writes its process ID to that
pipe, and at the lab's end the exit code, each on a line. Without a process ID, the lab was not
started.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

# Imported first, because it replaces modules that a lab does not need.
import ccplay.lab.__main__  # noqa: F401
from ccplay.lab.network import import_mininet
from ccplay.lab.server import main as serve

DOOR = 3
"""Descriptor of the socket for requests; in a fork, of the pipe for reports."""

LONGEST_REQUEST = 1 << 18
"""Size of the largest request in bytes: the environment may be long."""

_LATER = ("psutil", "ccplay.bpf.build", "ccplay.bpf.libbpf")
"""Modules that a lab imports only when it needs them, and a warm process in advance."""

# From <linux/sched.h>, <linux/mount.h> and <linux/prctl.h>.
_NEW_NET, _NEW_MOUNTS, _NEW_PIDS, _NEW_USER = 0x40000000, 0x00020000, 0x20000000, 0x10000000
_NOSUID, _NODEV, _NOEXEC, _RECURSIVE, _PRIVATE = 2, 4, 8, 1 << 14, 1 << 18
_DEATH_SIGNAL = 1


def main(serve: Callable[[], None] = serve) -> None:
    """Fork labs until the socket is closed, then wait for those that are running.

    ``serve`` runs the lab in a fork.
    """
    import_mininet()
    for name in _LATER:
        importlib.import_module(name)
    door = socket.socket(fileno=DOOR)
    signal.signal(signal.SIGCHLD, _reap)
    while True:
        request, descriptors, _, _ = socket.recv_fds(door, LONGEST_REQUEST, 5)
        if not request:
            break
        if os.fork() == 0:
            _become(serve, json.loads(request), descriptors)
        for each in descriptors:
            os.close(each)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def _reap(_number: int, _frame: FrameType | None) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _become(serve: Callable[[], None], request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Set up this fork as unshare(1) and a new Python interpreter would, and run the lab."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setpgid(0, 0)
        *standard, directory, door = descriptors
        os.fchdir(directory)
        for number, each in enumerate(standard):
            os.dup2(each, number)
        os.dup2(door, DOOR)
        os.closerange(DOOR + 1, max(descriptors) + 1)
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.argv = [sys.argv[0], *request["arguments"]]
        _make_namespaces(user=request["user"])
        os.write(DOOR, b"%d\n" % os.getpid())
        ends = {signal.SIGINT, signal.SIGTERM}
        signal.pthread_sigmask(signal.SIG_BLOCK, ends)
        if (lab := os.fork()) != 0:
            _pass_on_the_end_of(lab)
        os.close(DOOR)
        _call("prctl", _DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ends)
        _call("mount", b"proc", b"/proc", b"proc", _NOSUID | _NODEV | _NOEXEC, None)
        serve()
    finally:
        os._exit(1)


def _pass_on_the_end_of(lab: int) -> NoReturn:
    """Wait for the lab, report its exit code, and end with the same code or signal."""
    code = os.waitstatus_to_exitcode(os.waitpid(lab, 0)[1])
    with contextlib.suppress(BrokenPipeError):
        os.write(DOOR, b"%d\n" % code)
    if code < 0:
        os.kill(os.getpid(), -code)
    os._exit(code)


def _make_namespaces(*, user: bool) -> None:
    """Enter new network and mount namespaces, and with ``user`` a user namespace; unshare(2).

    The next child is the first process of a new PID namespace.
    """
    owner, group = os.geteuid(), os.getegid()
    _call("unshare", _NEW_NET | _NEW_MOUNTS | _NEW_PIDS | (_NEW_USER if user else 0))
    if user:
        own = Path("/proc/self")
        (own / "setgroups").write_text("deny")
        (own / "uid_map").write_text(f"0 {owner} 1")
        (own / "gid_map").write_text(f"0 {group} 1")
    _call("mount", b"none", b"/", None, _RECURSIVE | _PRIVATE, None)


def _call(name: str, *arguments: bytes | int | None) -> None:
    """Call a function of libc. Raises ``OSError`` if it fails."""
    libc = ctypes.CDLL(None, use_errno=True)
    wide = [ctypes.c_ulong(each) if isinstance(each, int) else each for each in arguments]
    if libc[name](*wide) != 0:
        raise OSError(ctypes.get_errno(), name)


if __name__ == "__main__":
    main()
