"""Queue disciplines in the kernel: chosen, installed, changed in place, read back."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from ccplay.errors import CommandError, UnsupportedError
from ccplay.lab.netlink import ACK, CREATE, HEADER, NESTED, REPLACE, REQUEST, attribute
from ccplay.lab.qdisc_options import decode, encode
from ccplay.lab.rtnl import (
    RTM_DELQDISC,
    RTM_NEWQDISC,
    TC_H_ROOT,
    TCMSG,
    HeldQueue,
    NetlinkError,
    NetlinkSocket,
    held_queues,
    traffic_control,
)
from ccplay.model import disciplines
from ccplay.model.base import Option
from ccplay.model.disciplines import DISCIPLINES, MOST_RATE, SUFFIX, beyond, described, is_software
from ccplay.model.qdiscs import KERNEL, SOFTWARE
from ccplay.model.quantities import quote
from ccplay.model.values import Qdisc
from ccplay.units import format_rate

# --- queue disciplines in the kernel: installed, read back and listed -----------------------------

LOOPBACK = 1
"""Index of ``lo`` in every namespace; disciplines are tried on the lab's own, which is idle."""

_PROBE_OPTIONS: dict[str, dict[str, Option]] = {
    "tbf": {"rate": 1_000_000},
    "choke": {"bandwidth": 1_000_000},
}

_UNCHANGEABLE = ("sfq", "red", "sfb", "pfifo_fast")
"""Kinds without a ``change`` operation (net/sched/sch_sfq.c), or whose change drops packets
(``__red_change``, net/sched/sch_red.c; ``sfb_change``, net/sched/sch_sfb.c)."""

_UNREPORTED = {
    "red": ("bandwidth", "burst", "avpkt", "probability"),
    "choke": ("bandwidth", "burst", "probability"),
    "sfq": ("redflowlimit", "burst", "avpkt"),
    "dualpi2": ("max_rtt",),
}
"""Parameters by kind that the kernel does not report; most of them only yield tables and
constants, and adaptive RED changes its probability."""

_TICK_US = 10_000
"""Microseconds of the longest jiffy (CONFIG_HZ=100), to which some times are rounded."""
_IN_TICKS = ("tupdate", "refill_delay", "reset_timeout", "evict_timeout", "rehash", "db")

_ASKED_TWICE = ("hhf",)
"""Kinds that ignore a parameter on creation but accept it in a change: hhf's hh_limit in Linux
6.17."""

_FIXED = {"fq_codel": "flows", "fq_pie": "flows"}
"""Option by kind that a request to change must not name (``fq_codel_change``)."""


class KernelRefusalError(CommandError):
    """The kernel refused a request without naming the parameter."""


def validate(qdisc: Qdisc) -> Qdisc:
    """Return ``qdisc`` with values in the kernel's units and required options filled in.

    Raises ``CommandError`` with the mistake and a suggestion.
    """
    try:
        return disciplines.validate(qdisc)
    except ValueError as error:
        raise CommandError(str(error)) from None


def attach(routes: NetlinkSocket, index: int, parent: int, handle: int, qdisc: Qdisc) -> None:
    """Install a validated ``qdisc`` under ``parent``, in place of the one there.

    If ``handle`` and kind are those of the one there, its parameters change and its packets stay.
    Raises ``UnsupportedError`` if the kernel has no such discipline and ``CommandError``
    if it refuses the parameters.
    """
    image, nested = encode(qdisc)
    request = installation(index, parent, handle, (qdisc.kind, image), nested=nested)
    try:
        for _ in range(2 if qdisc.kind in _ASKED_TWICE else 1):
            routes.request([request], qdisc.kind)
    except NetlinkError as error:
        if error.errno == errno.ENOENT:
            raise UnsupportedError(
                f"queue discipline {qdisc.kind!r} is not in this kernel (module sch_{qdisc.kind})"
            ) from None
        raise KernelRefusalError(f"the kernel refuses this {error.strerror}") from None


def changed_options(before: Qdisc, wanted: Qdisc) -> Qdisc | None:
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


def remove_qdisc(routes: NetlinkSocket, index: int, parent: int) -> None:
    """Remove the discipline under ``parent``, if there is one."""
    try:
        routes.request([traffic_control(RTM_DELQDISC, 0, index, (), parent=parent)], "remove")
    except NetlinkError as error:
        if error.errno not in (errno.ENOENT, errno.EINVAL):
            raise


def read_back(routes: NetlinkSocket, index: int, parent: int, asked: Qdisc) -> Qdisc:
    """Return the discipline under ``parent`` as the kernel has it.

    Its options are those that ``asked`` names, and the limit. Raises ``CommandError`` if the
    kernel has another kind there, or has ignored or altered a parameter.
    """
    kind, image = find_qdisc(routes, index, parent)
    if kind != asked.kind:
        raise CommandError(f"requested {asked.kind} from the kernel, but it has {kind or 'none'}")
    held = decode(kind, image)
    shown: dict[str, Option] = {}
    for name, wanted in asked.options.items():
        if name == "bandwidth" and asked.options.get("autorate_ingress"):
            # The kernel adapts the bandwidth from then on.
            shown[name] = wanted
        elif name in held:
            shown[name] = _as_asked(asked.kind, name, held[name], wanted)
        elif name not in _UNREPORTED.get(kind, ()):
            raise CommandError(f"{kind}: {name}: this kernel's {kind} ignores it")
    if "limit" in held:
        shown.setdefault("limit", held["limit"])
    return Qdisc(kind=kind, options=shown)


def find_qdisc(routes: NetlinkSocket, index: int, parent: int) -> tuple[str | None, bytes]:
    """Return kind and ``TCA_OPTIONS`` of the discipline under ``parent``; None if there is none."""
    held = _find(routes, index, parent)
    if held is None:
        return None, b""
    return held.attributes[_KIND].rstrip(b"\0").decode(), held.attributes.get(_OPTIONS, b"")


def handle_of(routes: NetlinkSocket, index: int, parent: int) -> int:
    """Return the handle of the discipline under ``parent``; 0 if there is none."""
    held = _find(routes, index, parent)
    return 0 if held is None else held.handle


def backlog(routes: NetlinkSocket, index: int, parent: int) -> int:
    """Return the bytes in the discipline under ``parent``; 0 if there is none."""
    held = _find(routes, index, parent)
    return 0 if held is None else held.backlog


def _find(routes: NetlinkSocket, index: int, parent: int) -> HeldQueue | None:
    every = held_queues(routes)
    return next((each for each in every if (each.interface, each.parent) == (index, parent)), None)


def rehearse(qdisc: Qdisc) -> None:
    """Try a validated ``qdisc`` on the loopback of the caller's namespace.

    Raises the exceptions of ``attach`` and ``read_back``; a refusal names the parameter without
    which the kernel accepts the others.
    """
    try:
        _rehearse(qdisc)
    except KernelRefusalError as error:
        if (name := _refused(qdisc)) is None:
            raise
        value = disciplines.DISCIPLINES[qdisc.kind].parameter(name).show(qdisc.options[name])
        raise CommandError(f"{qdisc.kind}: {name}: the kernel refuses {value} ({error})") from None


def _refused(qdisc: Qdisc) -> str | None:
    """Return the first parameter without which the kernel accepts a queue; None without any."""
    for name in qdisc.options:
        options = {each: value for each, value in qdisc.options.items() if each != name}
        try:
            _rehearse(validate(Qdisc(kind=qdisc.kind, options=options)))
        except KernelRefusalError:
            continue
        except CommandError:
            # The kernel accepted the others; a parameter that it then ignores is not refused.
            pass
        return name
    return None


def _rehearse(qdisc: Qdisc) -> None:
    with NetlinkSocket() as routes:
        remove_qdisc(routes, LOOPBACK, TC_H_ROOT)
        attach(routes, LOOPBACK, TC_H_ROOT, 0x10000, qdisc)
        try:
            read_back(routes, LOOPBACK, TC_H_ROOT, qdisc)
        finally:
            remove_qdisc(routes, LOOPBACK, TC_H_ROOT)


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


def installation(
    index: int, parent: int, handle: int, kind: tuple[str, bytes], *, nested: bool
) -> bytes:
    """Return the request that installs or changes a discipline, given its name and TCA_OPTIONS."""
    name, image = kind
    attributes = attribute(_KIND, name.encode() + b"\0")
    # A few kinds refuse TCA_OPTIONS, even if it is empty.
    if image or nested:
        attributes += attribute(_OPTIONS | (NESTED if nested else 0), image)
    length, flags = HEADER.size + TCMSG.size + len(attributes), REQUEST | ACK | CREATE | REPLACE
    head = HEADER.pack(length, RTM_NEWQDISC, flags, 0, 0)
    return head + TCMSG.pack(index, handle, parent, 0) + attributes


_KIND, _OPTIONS = 1, 2
"""Attributes ``TCA_KIND`` and ``TCA_OPTIONS``."""


def _as_asked(kind: str, name: str, held: Option, asked: Option) -> Option:
    """Return the requested value if the kernel's differs only by rounding.

    CoDel counts time in units of 1024 ns (``CODEL_SHIFT``, include/net/codel.h), tbf its burst in
    ticks of 64 ns, SFB its probabilities in 1/65536. Raises ``CommandError`` if the kernel has
    another value.
    """
    if not isinstance(held, (bool, str)) and not isinstance(asked, (bool, str)):
        near = 2e-5 if isinstance(held, float) else max(2, held * 0.001)
        near = _TICK_US if name in _IN_TICKS else near
        if abs(held - asked) <= near:
            return asked
    elif held == asked:
        return asked
    show = disciplines.DISCIPLINES[kind].parameter(name).show
    raise CommandError(
        f"{kind}: {name}: the kernel changed {quote(show(asked))} to {quote(show(held))}"
    )


# --- chooses the discipline for a request: the kernel's, or ccplay's own if the kernel has none ---

_taken: set[bytes] = set()
"""Queues, as JSON, that the kernel has accepted: a network has the same one on many links."""
_lacking: set[str] = set()
"""Kinds that this kernel was found to lack."""


def choose_qdisc(qdisc: Qdisc, *, software: bool) -> Qdisc:
    """Return a queue validated and tried; its kind ends with ``SUFFIX`` if it is ccplay's own.

    ``software`` is whether disciplines in software are possible. Raises ``CommandError`` or
    ``UnsupportedError``.
    """
    qdisc = validate(qdisc)
    if is_software(qdisc.kind):
        if not software:
            raise UnsupportedError(
                f"queue discipline {qdisc.kind!r} needs netfilter queues: see ccplay doctor"
            )
        return qdisc
    known = described(qdisc.kind) or DISCIPLINES["pfifo"]
    able = software and known.software
    if able and (not known.in_kernel or qdisc.kind in _lacking):
        return _in_software(qdisc)
    try:
        _try(qdisc)
    except UnsupportedError:
        if not able:
            raise
        _lacking.add(qdisc.kind)
        return _in_software(qdisc)
    return qdisc


def in_software(qdisc: Qdisc) -> Qdisc:
    """Return the queue with ccplay's discipline in place of the kernel's, on a link that moves.

    Raises ``CommandError`` if ccplay's own lacks the kind or a parameter.
    """
    if is_software(qdisc.kind):
        return qdisc
    known = described(qdisc.kind)
    if known is None or not known.software:
        able = ", ".join(each.kind for each in DISCIPLINES.values() if each.software)
        raise CommandError(
            f"the queue of a link that moves is ccplay's own, which has no {qdisc.kind}; "
            f"there are {able}"
        )
    if (name := beyond(qdisc, SOFTWARE)) is not None:
        raise CommandError(
            f"the queue of a link that moves is ccplay's own {qdisc.kind}, which has no {name}"
        )
    return validate(replace(qdisc, kind=qdisc.kind + SUFFIX))


def _in_software(qdisc: Qdisc) -> Qdisc:
    """Return the queue with ccplay's discipline in place of the kernel's.

    Raises ``UnsupportedError`` for a parameter that ccplay's lacks.
    """
    kind = qdisc.kind
    if (name := beyond(qdisc, SOFTWARE)) is not None:
        raise UnsupportedError(
            f"queue discipline {kind!r} is not in this kernel, and ccplay's own has no {name}"
        )
    return replace(qdisc, kind=kind + SUFFIX)


def _try(qdisc: Qdisc) -> None:
    """Try a queue on the lab's own loopback device, unless the same was accepted before."""
    known = DISCIPLINES.get(qdisc.kind)
    if known is None or not known.in_kernel:
        raise UnsupportedError(
            f"queue discipline {qdisc.kind!r} works in software only, and needs netfilter queues: "
            "see ccplay doctor"
        )
    image = msgspec.json.encode(qdisc)
    if image not in _taken:
        # First try the bare kind: if the kernel lacks it, ccplay's own may have the parameter.
        if (name := beyond(qdisc, KERNEL)) is not None:
            rehearse(Qdisc(kind=qdisc.kind))
            raise CommandError(
                f"{qdisc.kind}: {name}: the kernel's {qdisc.kind} has no such parameter, "
                f"{qdisc.kind}{SUFFIX} has"
            )
        rehearse(qdisc)
        _taken.add(image)


def check_software(link: str, qdisc: Qdisc, rate: int, mark: int) -> None:
    """Raise ``CommandError`` with the reason if a link can't have a discipline in software."""
    if not rate:
        raise CommandError(f"link {link} has no rate, which {qdisc.kind} needs")
    if rate > MOST_RATE:
        raise CommandError(
            f"link {link}: {qdisc.kind} is a discipline in software, which carries up to "
            f"{format_rate(MOST_RATE)}, not {format_rate(rate)}: choose a lower rate, "
            "or one of the kernel's disciplines"
        )
    if mark:
        raise CommandError(
            f"link {link}: its ECN mark threshold applies to the kernel's queue, but packets wait "
            f"in {qdisc.kind}: set mark to 0 first"
        )


# --- A leaf queue, changed in place where possible and replaced otherwise -------------------------


class Leaf:
    """The queue under ``parent``: an interface's root or one of its classes."""

    def __init__(
        self, routes: NetlinkSocket, index: int, parent: int, handles: Iterator[int]
    ) -> None:
        """Begin without a discipline; ``handles`` yields the major number of a new handle."""
        self.parent = parent
        self.asked: Qdisc | None = None
        """The discipline as last requested."""
        self.qdisc: Qdisc | None = None
        """The discipline as the kernel has it."""
        self._routes, self._index = routes, index
        self._handles = handles
        self.handle = 0
        """Major number of its handle; 0 before the first discipline."""

    def put(self, qdisc: Qdisc) -> None:
        """Install a queue; one changed in place keeps its packets, a replaced one begins empty.

        Raises ``CommandError`` or ``UnsupportedError``.
        """
        change = changed_options(self.asked, qdisc) if self.asked is not None else None
        before = self.handle
        if change is None:
            # The kernel refuses another kind under the same handle.
            self.handle = next(self._handles)
        wanted = change or qdisc
        try:
            attach(self._routes, self._index, self.parent, self.handle << 16, wanted)
            self.qdisc = read_back(self._routes, self._index, self.parent, qdisc)
        except Exception:
            if handle_of(self._routes, self._index, self.parent) >> 16 == self.handle:
                self.asked = qdisc
            else:
                self.handle = before
            raise
        self.asked = qdisc
