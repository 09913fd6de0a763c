"""Congestion controls: how to switch them while traffic runs, ECN, and those that misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import msgspec

from ccplay.assets import SUFFIX, kernel_modules, module_remedy
from ccplay.bpf.loaded import is_ours, library
from ccplay.errors import CcplayError, CommandError, LabError, UnsupportedError
from ccplay.lab import netns
from ccplay.lab.connection import OPTION_ECN, OPTIONS
from ccplay.lab.inet_diag import has_connections
from ccplay.lab.netlink import CREATE, EXCLUSIVE, REPLACE
from ccplay.lab.netns import Namespace
from ccplay.lab.rtnl import (
    RTM_DELRULE,
    RTM_GETROUTE,
    RTM_NEWROUTE,
    RTM_NEWRULE,
    NetlinkError,
    NetlinkSocket,
    fibmsg,
    message,
    rtmsg,
)
from ccplay.lab.traffic.program import ports_of, sockets_of
from ccplay.model.algorithms import CATALOGUE
from ccplay.model.events import Log, Misbehaved
from ccplay.model.samples import TcpSamples
from ccplay.model.values import MOST_SEGMENTS

# --- congestion controls: which ones the kernel has, and how to switch them while traffic runs ----

_SYSCTL = Path("/proc/sys/net/ipv4")

_TABLE_MAIN, _TYPE_UNICAST = 254, 1

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
    return "not loaded" if f"tcp_{cc}" in kernel_modules() else "not in this kernel"


def remedy(cc: str) -> str:
    """Return the remedy for an algorithm that the kernel lacks."""
    if cc not in CATALOGUE:
        return "no Linux kernel has an algorithm with this name"
    return module_remedy(f"tcp_{cc}", f"TCP_CONG_{CATALOGUE[cc].config}")


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
    return bool(info[OPTIONS] & OPTION_ECN)


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
    with NetlinkSocket(namespace) as kernel:
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
    with NetlinkSocket(namespace) as kernel:
        for route in _routes(kernel):
            if (cc := _cc_of(route)) is not None:
                return library.display_name(cc)
    with namespace.entered():
        return (_SYSCTL / "tcp_congestion_control").read_text().strip()


def _routes(kernel: NetlinkSocket) -> list[Any]:
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


# --- misbehaving congestion controls: cwnd stuck at 1, or far above what is in flight -------------
# Also impossible windows: some kernels now and then skip a call of a BPF program.

PATIENCE_S = 3.0
"""Seconds for which misbehaviour must last: many round trips of any path in ccplay."""
FAR_ABOVE = 8
"""Multiple of the segments in flight above which a cwnd limits nothing, if it also exceeds
``LEAST_RUNAWAY``."""
LEAST_RUNAWAY = 1000
"""Segments that a cwnd must exceed to count as far above what is in flight."""
_DISORDER, _LOSS = 1, 4
"""Numbers of the states ``TCP_CA_Disorder`` and ``TCP_CA_Loss``."""


class _Suspicion(msgspec.Struct):
    """The possible misbehaviour of a connection, and its beginning."""

    cc: str
    wrong: str
    since: float
    good_s: float = 0.0
    """Seconds for which cwnd has been good again while the algorithm was in control of it."""
    reported: bool = False


class Watchdog:
    """Checks every sweep; reports lasting misbehaviour once, and its end."""

    def __init__(self) -> None:
        self._suspicions: dict[str, _Suspicion] = {}
        self._incredible: set[tuple[str, str]] = set()
        """Connections and algorithms that had a window larger than any path can hold."""
        self._looked = 0.0

    def look(self, t: float, samples: TcpSamples) -> list[Misbehaved | Log]:
        """Return misbehaviour that has lasted ``PATIENCE_S``, and misbehaviour that has ended.

        A window larger than any path can hold is reported immediately, as text.
        """
        passed, self._looked = t - self._looked, t
        news: list[Misbehaved | Log] = []
        rows = zip(
            samples.flow,
            samples.cc,
            samples.cwnd,
            samples.ssthresh,
            samples.unacked,
            samples.ca_state,
            strict=True,
        )
        for name, cc, cwnd, ssthresh, unacked, ca_state in rows:
            if cwnd > MOST_SEGMENTS or (ssthresh is not None and ssthresh > MOST_SEGMENTS):
                news += self._report_impossible(name, cc, max(cwnd, ssthresh or 0), t)
            before = self._suspicions.get(name)
            if before is not None and before.cc != cc:
                news += self._drop(name, t)
                before = None
            # Until a loss is repaired TCP itself limits cwnd, finally to ssthresh.
            wanted = cwnd if ca_state <= _DISORDER else ssthresh
            if ca_state == _LOSS or wanted is None or not unacked:
                continue
            if wrong := _wrong(wanted, unacked):
                news += self._suspect(name, cc, wrong, t)
            elif before is not None:
                before.good_s += passed
                if before.good_s >= PATIENCE_S:
                    news += self._drop(name, t)
        return news

    def forget(self, flow: str, t: float) -> list[Misbehaved]:
        """Forget all suspicions of a flow and its streams; return the ends of those reported."""
        self._incredible = {k for k in self._incredible if k[0].partition("/")[0] != flow}
        names = [name for name in self._suspicions if name.partition("/")[0] == flow]
        return [over for name in names for over in self._drop(name, t)]

    def _report_impossible(self, name: str, cc: str, window: int, t: float) -> list[Log]:
        if (name, cc) in self._incredible:
            return []
        self._incredible.add((name, cc))
        why = f"the kernel skipped a call of {cc}, or {cc} is wrong"
        text = f"flow {name}: no path can hold a window of {window:,}: {why}"
        return [Log(t=t, level="warning", text=text)]

    def _suspect(self, name: str, cc: str, wrong: str, t: float) -> list[Misbehaved]:
        before = self._suspicions.get(name)
        if before is None or before.wrong != wrong:
            over = self._drop(name, t)
            self._suspicions[name] = _Suspicion(cc, wrong, t)
            return over
        before.good_s = 0.0
        if before.reported or t - before.since < PATIENCE_S:
            return []
        before.reported = True
        return [Misbehaved(t=t, flow=name, cc=cc, wrong=wrong)]

    def _drop(self, name: str, t: float) -> list[Misbehaved]:
        before = self._suspicions.pop(name, None)
        return [Misbehaved(t=t, flow=name, cc=before.cc)] if before and before.reported else []


def _wrong(cwnd: int, unacked: int) -> str:
    """Return what is wrong with an algorithm's cwnd; empty if nothing is."""
    if cwnd <= 1:
        return "keeps cwnd at 1"
    if cwnd > max(LEAST_RUNAWAY, FAR_ABOVE * unacked):
        return f"keeps cwnd above {FAR_ABOVE} times what is in flight"
    return ""


# --- ECN for one flow: a route with the feature ``ecn``, used only by connections to its port -----
# The kernel has no socket option for ECN. It requests ECN (RFC 3168) if the sysctl ``tcp_ecn`` asks
# for it on the whole host, or if the route does: ip-route(8), ``features``; ip-rule(8), ``dport``.

_TABLE = 100
_FEATURE_ECN = 1
"""``RTAX_FEATURE_ECN`` of include/uapi/linux/rtnetlink.h."""

_TO_TABLE = 1
"""``FR_ACT_TO_TBL`` of include/uapi/linux/fib_rules.h."""


def ask_for_ecn(namespace: Namespace, port: int) -> None:
    """Make a host's new TCP connections to ``port`` request ECN.

    Raises ``UnsupportedError`` if the kernel can't route by port.
    """
    try:
        with NetlinkSocket(namespace) as kernel:
            route = _default_route(kernel, namespace)
            kernel.request([_with_ecn(route)], f"host {namespace.name}: route with ECN")
            kernel.request([_rule(RTM_NEWRULE, CREATE | EXCLUSIVE, port)], f"rule for port {port}")
    except NetlinkError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EAFNOSUPPORT, errno.EINVAL):
            raise UnsupportedError(
                "ECN for a flow needs routing by port, which this kernel lacks "
                "(CONFIG_IP_MULTIPLE_TABLES, Linux 4.17)"
            ) from error
        raise LabError(f"host {namespace.name}: {error}") from error


def stop_asking(namespace: Namespace, port: int) -> None:
    """Undo ``ask_for_ecn``; open connections keep what they negotiated."""
    with NetlinkSocket(namespace) as kernel:
        kernel.request([_rule(RTM_DELRULE, 0, port)], f"rule for port {port}")


_DRAIN_S = 0.1
"""Seconds between two looks whether a flow's sockets are empty."""


async def send_ect_1(namespace: Namespace, port: int) -> None:
    """Send a host's data to ``port`` as ECT(1), which the kernel sends as ECT(0).

    Packets that are not ECT, such as SYN and retransmissions, stay so. Raises ``UnsupportedError``.
    """
    try:
        await netns.change_iptables(namespace, _ect_1("-A", port))
    except (LabError, OSError) as error:
        raise UnsupportedError(
            f"l4s needs iptables-legacy and its modules xt_DSCP and xt_dscp ({error})"
        ) from error


async def stop_ect_1(namespace: Namespace, port: int, sending: asyncio.Task[None]) -> None:
    """Undo ``send_ect_1`` when ``sending``, the task that runs it, has ended. Raises ``LabError``.

    The task may still run when a flow is stopped before it begins. What an ended flow's sockets
    still hold is sent as ECT(1), too.
    """
    await asyncio.wait([sending])
    if sending.exception() is None:
        while has_connections(namespace, port):  # noqa: ASYNC110 - the kernel reports no event
            await asyncio.sleep(_DRAIN_S)
        await netns.change_iptables(namespace, _ect_1("-D", port))


def _ect_1(verb: str, port: int) -> str:
    # CE is set by queues further on, never in front of this.
    rule = f"POSTROUTING -p tcp --dport {port} -m tos --tos 0x02/0x03 -j TOS --set-tos 0x01/0x03"
    return f"*mangle\n{verb} {rule}\nCOMMIT\n"


def _default_route(kernel: NetlinkSocket, namespace: Namespace) -> Any:
    routes = _routes(kernel)
    if not routes or routes[0]["dst_len"]:
        raise LabError(f"host {namespace.name} has no default route")
    return routes[0]


def _with_ecn(route: Any) -> Any:
    """Return the request that adds a route with ECN beside the host's own."""
    attributes = [
        ("RTA_GATEWAY", route.get_attr("RTA_GATEWAY")),
        ("RTA_OIF", route.get_attr("RTA_OIF")),
        ("RTA_METRICS", {"attrs": [["RTAX_FEATURES", _FEATURE_ECN]]}),
    ]
    header = {name: route[name] for name in ("family", "dst_len", "proto", "scope", "type")}
    return message(rtmsg, RTM_NEWROUTE, CREATE | REPLACE, attributes, table=_TABLE, **header)


def _rule(kind: int, flags: int, port: int) -> Any:
    attributes = (
        # Before the main table, whose rule has 32766.
        ("FRA_PRIORITY", 1000),
        ("FRA_TABLE", _TABLE),
        ("FRA_IP_PROTO", socket.IPPROTO_TCP),
        ("FRA_DPORT_RANGE", f"{port}:{port}"),
    )
    header = {"family": socket.AF_INET, "table": _TABLE, "action": _TO_TABLE}
    return message(fibmsg, kind, flags, attributes, **header)
