"""Queue disciplines in the kernel: installed, read back and listed."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from typing import Any

from ccplay.errors import CommandError, UnsupportedError
from ccplay.lab.network.netlink import (
    RTM_DELQDISC,
    RTM_GETQDISC,
    RTM_NEWQDISC,
    TC_H_ROOT,
    sched_cake,
    sched_choke,
    sched_tbf,
    tick_in_usec,
)
from ccplay.lab.network.rtnl import CREATE, REPLACE, NetlinkError, RouteSocket, traffic_control
from ccplay.lab.queues import aqm
from ccplay.model import disciplines
from ccplay.model.base import Option
from ccplay.model.values import Qdisc

LOOPBACK = 1
"""Index of ``lo`` in every namespace; the lab's own is idle, so disciplines are tried on it."""

_PROBE_OPTIONS: dict[str, dict[str, Option]] = {
    "tbf": {"rate": 1_000_000},
    "choke": {"bandwidth": 1_000_000},
}

_UNCHANGEABLE = ("sfq", "red")
"""Kinds without a ``change`` operation (net/sched/sch_sfq.c), or whose change drops packets
(``__red_change``, net/sched/sch_red.c)."""

_FIXED = {"fq_codel": "flows", "fq_pie": "flows"}
"""By kind, the option that a request to change must not name (``fq_codel_change``)."""


def validate(qdisc: Qdisc) -> Qdisc:
    """Return ``qdisc`` with values in the kernel's units and required options filled in.

    Raises ``CommandError`` with the mistake and a suggestion.
    """
    try:
        return disciplines.validate(qdisc)
    except ValueError as error:
        raise CommandError(str(error)) from None


def attach(routes: RouteSocket, index: int, parent: int, handle: int, qdisc: Qdisc) -> None:
    """Install a validated ``qdisc`` under ``parent``, in place of the one there.

    With the ``handle`` and kind of the one there, its parameters change and its packets stay.
    Raises ``UnsupportedError`` if the kernel has no such discipline and ``CommandError``
    if it refuses the parameters.
    """
    attributes = (("TCA_KIND", qdisc.kind), ("TCA_OPTIONS", encode(qdisc)))
    request = traffic_control(
        RTM_NEWQDISC, CREATE | REPLACE, index, attributes, parent=parent, handle=handle
    )
    try:
        routes.request([request], qdisc.kind)
    except NetlinkError as error:
        if error.errno == errno.ENOENT:
            raise UnsupportedError(
                f"queue discipline {qdisc.kind!r} is not in this kernel (module sch_{qdisc.kind})"
            ) from None
        raise CommandError(f"the kernel refuses this {error.strerror}") from None


def changed(before: Qdisc, wanted: Qdisc) -> Qdisc | None:
    """Return the request that turns a queue requested as ``before`` into ``wanted``.

    The kernel keeps parameters that a request does not name, so those that only ``before`` named
    are reset to their defaults. None if that is impossible: then the queue has to be replaced.
    """
    if before.kind != wanted.kind or wanted.kind in _UNCHANGEABLE:
        return None
    discipline = disciplines.DISCIPLINES[wanted.kind]
    options = dict(wanted.options)
    for name in before.options.keys() - options.keys():
        default = discipline.parameter(name).default
        if default is None:
            return None
        options[name] = default
    fixed = _FIXED.get(wanted.kind)
    if fixed in options:
        held = before.options.get(fixed, discipline.parameter(fixed).default)
        if options.pop(fixed) != held:
            return None
    return Qdisc(kind=wanted.kind, options=options)


def remove(routes: RouteSocket, index: int, parent: int) -> None:
    """Remove the discipline under ``parent``, if there is one."""
    try:
        routes.request([traffic_control(RTM_DELQDISC, 0, index, (), parent=parent)], "remove")
    except NetlinkError as error:
        if error.errno not in (errno.ENOENT, errno.EINVAL):
            raise


def read_back(routes: RouteSocket, index: int, parent: int, asked: Qdisc) -> Qdisc:
    """Return the discipline under ``parent`` as the kernel has it.

    Its options are those that ``asked`` names, and the limit. Raises ``CommandError`` if the
    kernel has another kind there.
    """
    kind, options = find(routes, index, parent)
    if kind != asked.kind:
        raise CommandError(f"requested {asked.kind} from the kernel, but it has {kind or 'none'}")
    held = decode(kind, options)
    shown: dict[str, Option] = {}
    for name, value in held.items():
        if name in asked.options:
            shown[name] = _as_asked(value, asked.options[name])
        elif name == "limit":
            shown[name] = value
    return Qdisc(kind=kind, options=shown)


def find(routes: RouteSocket, index: int, parent: int) -> tuple[str | None, Any]:
    """Return kind and raw options of the discipline under ``parent``; None where none is."""
    for answer in routes.dump(traffic_control(RTM_GETQDISC, 0, index, ())):
        if answer["index"] == index and answer["parent"] == parent:
            return answer.get_attr("TCA_KIND"), answer.get_attr("TCA_OPTIONS")
    return None, None


def backlog(routes: RouteSocket, index: int, parent: int) -> int:
    """Return the bytes that wait in the discipline under ``parent``; 0 where none is."""
    for answer in routes.dump(traffic_control(RTM_GETQDISC, 0, index, ())):
        if answer["index"] == index and answer["parent"] == parent:
            counted = answer.get_attr("TCA_STATS")
            return 0 if counted is None else int(counted["backlog"])
    return 0


def rehearse(qdisc: Qdisc) -> None:
    """Try a validated ``qdisc`` on the loopback of the caller's namespace.

    Raises the exceptions of ``attach``.
    """
    with RouteSocket() as routes:
        remove(routes, LOOPBACK, TC_H_ROOT)
        attach(routes, LOOPBACK, TC_H_ROOT, 0x10000, qdisc)
        try:
            read_back(routes, LOOPBACK, TC_H_ROOT, qdisc)
        finally:
            remove(routes, LOOPBACK, TC_H_ROOT)


def available(kinds: Iterable[str]) -> dict[str, str]:
    """Try every kind on the loopback device of the caller's own, private namespace.

    Returns by kind the reason why it is missing, or ``""`` if it is available.
    """
    return {kind: _refusal(kind) for kind in kinds}


def _refusal(kind: str) -> str:
    try:
        rehearse(validate(Qdisc(kind=kind, options=_PROBE_OPTIONS.get(kind, {}))))
    except UnsupportedError:
        return f"this kernel has no module sch_{kind}"
    except CommandError as error:
        return str(error)
    return ""


# --- between model.Qdisc and TCA_OPTIONS ----------------------------------------------------


def encode(qdisc: Qdisc) -> dict[str, Any]:
    """Return the ``TCA_OPTIONS`` of a validated ``qdisc`` in the shape that pyroute2 encodes."""
    options = dict(qdisc.options)
    match qdisc.kind:
        case "tbf":
            rate = int(options["rate"]) // 8
            return sched_tbf.get_parameters(options | {"rate": rate})  # type: ignore[no-any-return]
        case "choke":
            rate = int(options["bandwidth"]) // 8
            return sched_choke.get_parameters(  # type: ignore[no-any-return]
                options | {"bandwidth": rate}
            )
        case "red":
            return aqm.red_options(options)
        case "sfq":
            options["perturb_period"] = options.pop("perturb", 0)
            return options
        case "pfifo" | "bfifo":
            return options
    names = _ATTRIBUTES[qdisc.kind]
    values = {name: _TO_KERNEL.get(name, int)(value) for name, value in options.items()}
    return {"attrs": [[names[name], value] for name, value in values.items()]}


def decode(kind: str, options: Any) -> dict[str, Option]:
    """Return decoded ``TCA_OPTIONS`` in the units of ``model.Qdisc``."""
    match kind:
        case "tbf":
            held = options.get_attr("TCA_TBF_PARMS")
            burst = round(held["buffer"] / tick_in_usec * held["rate"] / 1e6)
            return {"rate": held["rate"] * 8, "burst": burst, "limit": held["limit"]}
        case "choke" | "red":
            held = options.get_attr(f"TCA_{kind.upper()}_PARMS")
            flags = held["flags"]
            told = {
                "limit": held["limit"],
                "min": held["qth_min"],
                "max": held["qth_max"],
                "ecn": bool(flags & aqm.RED_ECN),
            }
            return told if kind == "choke" else {**told, "adaptive": bool(flags & aqm.RED_ADAPTIVE)}
        case "sfq":
            return {
                "limit": options.get("limit_v0", options.get("limit")),
                "flows": options["flows"],
                "quantum": options["quantum"],
                "perturb": options["perturb_period"],
            }
        case "pfifo" | "bfifo":
            return {"limit": options["limit"]}
    held = {name: options.get_attr(attribute) for name, attribute in _ATTRIBUTES[kind].items()}
    return {
        name: _FROM_KERNEL[name](value) if name in _FROM_KERNEL else value
        for name, value in held.items()
        if value is not None
    }


def _as_asked(held: Option, asked: Option) -> Option:
    """Return the requested value where the kernel's differs only by rounding.

    CoDel counts time in units of 1024 ns (``CODEL_SHIFT``, include/net/codel.h), and tbf its burst
    in ticks of 64 ns.
    """
    if isinstance(held, (bool, str)) or isinstance(asked, str):
        return held
    return asked if abs(held - asked) <= max(2, held * 0.001) else held


_CODEL = ("limit", "target", "interval", "ecn", "ce_threshold")
_PIE = ("limit", "target", "alpha", "beta", "ecn")
_FAIR = ("flows", "quantum", "memory_limit")

_ATTRIBUTES: dict[str, dict[str, str]] = {
    "codel": {name: f"TCA_CODEL_{name.upper()}" for name in _CODEL},
    "fq_codel": {name: f"TCA_FQ_CODEL_{name.upper()}" for name in (*_CODEL, *_FAIR)},
    "pie": {name: f"TCA_PIE_{name.upper()}" for name in _PIE},
    "fq_pie": {name: f"TCA_FQ_PIE_{name.upper()}" for name in (*_PIE, *_FAIR)},
    "fq": {
        "limit": "TCA_FQ_PLIMIT",
        "flow_limit": "TCA_FQ_FLOW_PLIMIT",
        "quantum": "TCA_FQ_QUANTUM",
        "ce_threshold": "TCA_FQ_CE_THRESHOLD",
    },
    "cake": {
        "bandwidth": "TCA_CAKE_BASE_RATE64",
        "rtt": "TCA_CAKE_RTT",
        "flow_mode": "TCA_CAKE_FLOW_MODE",
        "diffserv_mode": "TCA_CAKE_DIFFSERV_MODE",
        "ack_filter": "TCA_CAKE_ACK_FILTER",
        "memlimit": "TCA_CAKE_MEMORY",
    },
}
"""Netlink attribute by option, as include/uapi/linux/pkt_sched.h names them."""

_FLOW_MODES = (
    "flowblind",
    "srchost",
    "dsthost",
    "hosts",
    "flows",
    "dual-srchost",
    "dual-dsthost",
    "triple-isolate",
)
_DIFFSERV_MODES = ("diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence")

_TO_KERNEL: dict[str, Callable[[Any], int]] = {
    "bandwidth": lambda bits: int(bits) // 8,
    "flow_mode": sched_cake.convert_flowmode,
    "diffserv_mode": sched_cake.convert_diffserv,
}
_FROM_KERNEL: dict[str, Callable[[int], Option]] = {
    "bandwidth": lambda octets: octets * 8,
    "flow_mode": _FLOW_MODES.__getitem__,
    "diffserv_mode": _DIFFSERV_MODES.__getitem__,
    "ecn": bool,
    "ack_filter": bool,
}
