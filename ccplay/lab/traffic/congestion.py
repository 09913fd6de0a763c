"""Congestion controls: which ones the kernel has, and how to switch them while traffic runs."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from ccplay.assets import SUFFIX, module_file
from ccplay.bpf.loaded import is_ours, library
from ccplay.errors import CcplayError, CommandError, UnsupportedError
from ccplay.lab.network.netlink import RTM_GETROUTE, RTM_NEWROUTE, rtmsg
from ccplay.lab.network.netns import Namespace
from ccplay.lab.network.rtnl import CREATE, REPLACE, NetlinkError, RouteSocket, message
from ccplay.lab.traffic.program import ports_of, sockets_of
from ccplay.model.algorithms import CATALOGUE

_SYSCTL = Path("/proc/sys/net/ipv4")

_TABLE_MAIN, _TYPE_UNICAST = 254, 1
_TCPI_OPTIONS, _TCPI_OPT_ECN = 5, 8

NEED_ECN = {
    name: "the connection has no ECN, which is negotiated as it opens: "
    f"make {name} the default of sender and receiver, then start a flow"
    for name in ("dctcp", "prague")
}
"""Messages about algorithms that become Reno on a connection without ECN, by algorithm."""


def available() -> list[str]:
    """Return the kernel's own algorithms that are loaded now."""
    names = (_SYSCTL / "tcp_available_congestion_control").read_text().split()
    return [name for name in names if not is_ours(name)]


async def prepare(cc: str, log: Callable[[str, str], None]) -> None:
    """Load ``cc`` into the kernel if it is a BPF program of ccplay or of the user.

    ``log`` receives the level and text of a message before a slow step. Raises
    ``UnsupportedError``, or another ``CcplayError`` about a mistake in the program.
    """
    if _is_program(cc):
        loop = asyncio.get_running_loop()

        def progress(text: str) -> None:
            loop.call_soon_threadsafe(log, "info", text)

        await asyncio.to_thread(library.load, cc, progress)


async def prepare_all(names: Iterable[str], log: Callable[[str, str], None]) -> None:
    """Load all algorithms that can be loaded; a command that needs another reports why it can't."""
    for name in names:
        with contextlib.suppress(CcplayError):
            await prepare(name, log)


def require(cc: str) -> str:
    """Return the kernel's name of ``cc``; load its module if that is needed and permitted.

    Raises ``UnsupportedError``, which lists the available algorithms and the remedy.
    """
    if not _is_program(cc):
        return cc
    if (name := library.kernel_name(cc)) is not None:
        return name
    has = ", ".join(available())
    raise UnsupportedError(f"congestion control {cc!r} is {absence(cc)} (has: {has}); {remedy(cc)}")


def called(cc: str) -> str:
    """Return the user's name for the algorithm that ``cc`` selects."""
    return library.name(cc) if _is_program(cc) and library.source(cc) else cc


def _is_program(cc: str) -> bool:
    """Return whether ``cc`` is not one of the kernel's own, which take precedence."""
    if cc in library.custom or cc.endswith(SUFFIX):
        return True
    if cc in available():
        return False
    with socket.socket() as trial:
        try:
            # Loads the module, if there is one and this process runs as root.
            _set(trial, cc)
        except OSError:
            return True
    return False


def absence(cc: str) -> str:
    """Return why the kernel lacks an algorithm."""
    return "not loaded" if module_file(f"tcp_{cc}") else "not in this kernel"


def remedy(cc: str) -> str:
    """Return the remedy for an algorithm that the kernel lacks."""
    if cc not in CATALOGUE:
        return "no Linux kernel has an algorithm with this name"
    if module_file(f"tcp_{cc}"):
        return f"as root: modprobe tcp_{cc}"
    return f"a kernel with CONFIG_TCP_CONG_{CATALOGUE[cc].config} has it"


# --- a running connection -------------------------------------------------------------------


def switch(pid: int, ports: Collection[tuple[int, int]], cc: str) -> None:
    """Change the algorithm of all open connections with these ports of process ``pid``, or of none.

    ``ports`` are their (local, remote) ports. The process's sockets are duplicated for this, see
    pidfd_getfd(2). Raises ``UnsupportedError`` if the kernel lacks ``cc``, ``CommandError`` if the
    process has no such connection.
    """
    name = require(cc)
    wanted, before = set(ports), list[tuple[socket.socket, str]]()
    with contextlib.ExitStack() as stack:
        # Closed by ``sockets_of`` itself, so a copy of each is needed until all are found.
        found = [
            stack.enter_context(each.dup()) for each in sockets_of(pid) if ports_of(each) in wanted
        ]
        if missing := wanted - {ports_of(each) for each in found}:
            raise CommandError(f"process {pid} has no open connection with ports {sorted(missing)}")
        try:
            for each in found:
                before.append((each, _get(each)))
                _switch(each, cc, name)
        except BaseException:
            for each, earlier in before:
                with contextlib.suppress(OSError):
                    _set(each, earlier)
            raise


def _switch(connection: socket.socket, cc: str, name: str) -> None:
    """Change an open connection to ``cc``, which the kernel calls ``name``.

    Raises ``UnsupportedError`` if that fails, and leaves the connection as it was.
    """
    before, ecn = _get(connection), NEED_ECN.get(cc.removesuffix(SUFFIX))
    if ecn is None or _has_ecn(connection):
        _set(connection, name)
        if (now := _get(connection)) == name:
            return
        with contextlib.suppress(OSError):
            _set(connection, before)
    why = ecn or f"the kernel changes it to {now!r}"
    display_name = library.display_name(before)
    raise UnsupportedError(f"this connection can't change from {display_name!r} to {cc!r}: {why}")


def _has_ecn(connection: socket.socket) -> bool:
    """Return whether both ends have agreed on ECN: ``tcpi_options`` of struct tcp_info."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)
    return bool(info[_TCPI_OPTIONS] & _TCPI_OPT_ECN)


def _set(connection: socket.socket, cc: str) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())


def _get(connection: socket.socket) -> str:
    name = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return name.partition(b"\0")[0].decode()


# --- a host's new connections ---------------------------------------------------------------


def set_host_default(namespace: Namespace, cc: str) -> None:
    """Make new connections of a host use ``cc``: sets ``congctl`` on its routes, ip-route(8).

    The sysctl would refuse restricted algorithms even to root in a namespace. Raises
    ``CommandError`` if the host has no routes, ``UnsupportedError`` if the kernel lacks ``cc`` or
    keeps another algorithm; then all routes keep the algorithms that they had.
    """
    name = require(cc)
    with RouteSocket(namespace) as kernel:
        if not (before := _routes(kernel)):
            raise CommandError(f"host {namespace.name} has no routes: its cables are down")
        refusal = ""
        try:
            changed = [_with_cc(route, name) for route in before]
            kernel.request(changed, f"host {namespace.name}: congctl {cc}")
        except NetlinkError as error:
            refusal = str(error)
        if (kept := {_cc_of(route) for route in _routes(kernel)}) == {name}:
            return
        kernel.request([_with_cc(route, _cc_of(route)) for route in before], "congctl")
    raise UnsupportedError(refusal or f"host {namespace.name}: routes have {kept}, not {cc!r}")


def host_default(namespace: Namespace) -> str:
    """Return the algorithm of a host's new connections."""
    with RouteSocket(namespace) as kernel:
        for route in _routes(kernel):
            if (cc := _cc_of(route)) is not None:
                return library.display_name(cc)
    with namespace.entered():
        return (_SYSCTL / "tcp_congestion_control").read_text().strip()


def _routes(kernel: RouteSocket) -> list[Any]:
    """Return the host's own unicast routes, the shortest prefix first."""
    routes = kernel.dump(message(rtmsg, RTM_GETROUTE, family=socket.AF_INET))
    chosen = [
        route for route in routes if (route["table"], route["type"]) == (_TABLE_MAIN, _TYPE_UNICAST)
    ]
    return sorted(chosen, key=lambda route: int(route["dst_len"]))


def _cc_of(route: Any) -> str | None:
    metrics = route.get_attr("RTA_METRICS")
    name = metrics.get_attr("RTAX_CC_ALGO") if metrics is not None else None
    return None if name is None else str(name)


def _with_cc(route: Any, cc: str | None) -> Any:
    """Return the request that changes only the ``congctl`` of a route; None removes it."""
    metrics = route.get_attr("RTA_METRICS")
    kept = [
        list(each) for each in (metrics["attrs"] if metrics else []) if each[0] != "RTAX_CC_ALGO"
    ]
    attributes = [
        (name, value)
        for name, value in route["attrs"]
        if name in ("RTA_TABLE", "RTA_DST", "RTA_GATEWAY", "RTA_OIF", "RTA_PREFSRC", "RTA_PRIORITY")
    ]
    if cc is not None:
        kept.append(["RTAX_CC_ALGO", cc])
    attributes.append(("RTA_METRICS", {"attrs": kept}))
    header = {
        name: route[name]
        for name in ("family", "dst_len", "table", "proto", "scope", "type", "tos")
    }
    return message(rtmsg, RTM_NEWROUTE, CREATE | REPLACE, attributes, **header)
