"""Delay, jitter and loss where a link ends: by the kernel's netem, or by ccplay's delay line.

netem (tc-netem(8)) is on an ifb device, through which all arriving packets pass (tc-mirred(8)). The
delay line is a process that holds packets in netfilter queues: ``delay_line``. Nothing here touches
the interface of a queue under study.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import random
import struct
import subprocess
import sys
import time
from array import array
from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from ccplay.assets import find_tool, module_remedy
from ccplay.bpf.support import feature
from ccplay.errors import LabError
from ccplay.lab import child, delay_line, qdiscs, rtnl
from ccplay.lab.child import Child, Logger, Supervisor
from ccplay.lab.delay_line import DelayReply, DelayRequest, Impairment
from ccplay.lab.netfilter_queue import PacketQueue
from ccplay.lab.netlink import CREATE, NESTED, U64, attribute, join, split
from ccplay.lab.netns import LinkEnd, Namespace
from ccplay.lab.qdiscs import LOOPBACK
from ccplay.lab.rtnl import (
    RTM_DELQDISC,
    RTM_DELTFILTER,
    RTM_NEWQDISC,
    TC_H_ROOT,
    NetlinkError,
    NetlinkSocket,
    dropped,
    tick_in_usec,
    traffic_control,
    u32_filter,
)
from ccplay.lab.traces import Moving
from ccplay.model.algorithms import SCALE, SIZE, table
from ccplay.model.tc import NETEM_LIMIT, NETEM_RATE
from ccplay.model.values import Feature

# --- redirects packets from one interface to another, at ingress or egress; tc-mirred(8) ----------
# Both hooks belong to the qdisc clsact, which an interface has in addition to its queue.

ALL: tuple[str, ...] = ("0x0/0x0+0",)
"""Filter keys that match every packet; see ``filters.Keys``."""

INCOMING, LEAVING = 0xFFFFFFF2, 0xFFFFFFF3
"""``TC_H_MIN_INGRESS`` and ``TC_H_MIN_EGRESS`` of clsact."""

_ALL_PROTOCOLS = 0x0300
"""``ETH_P_ALL`` in network byte order, for the protocol in a filter's ``info``."""


def redirection_request(
    index: int, place: int, target: int, keys: tuple[str, ...] = ALL, priority: int = 1
) -> Any:
    """Return the request that sends packets of interface ``index`` out through ``target``.

    ``place`` is ``INCOMING`` or ``LEAVING``; a packet must match all ``keys``.
    """
    action = {"kind": "mirred", "direction": "egress", "action": "redirect", "ifindex": target}
    options = {
        "keys": list(keys),
        # pyroute2 requires a target; it has no effect: redirected packets are in no class.
        "target": 0x10000,
        "action": action,
        "parent": place,
        "protocol": 3,
        "prio": priority,
    }
    return u32_filter(index, options, parent=place, info=priority << 16 | _ALL_PROTOCOLS)


def redirection_removal(index: int, place: int, priority: int) -> Any:
    """Return the request that removes all redirections of a priority."""
    info = priority << 16 | _ALL_PROTOCOLS
    return traffic_control(RTM_DELTFILTER, 0, index, (), parent=place, info=info)


# --- delay by the kernel's netem, on an ifb device that all arriving packets pass through ---------

_FOLLOW_S = 0.01
"""Seconds between two changes of netem on a link that moves."""


class NetemDelay:
    """The delay engine ``netem``."""

    name = "netem"

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._devices: dict[str, int] = {}
        self._followers: dict[str, asyncio.Task[None]] = {}
        """Tasks that follow what moves a link, by the link's name."""

    @property
    def processes(self) -> Iterable[int]:
        """Empty: the kernel delays packets."""
        return ()

    def lateness(self) -> None:
        """Return None: the kernel does not measure lateness."""

    async def prepare(self) -> None:
        """Do nothing: the kernel is ready."""

    async def set(
        self, arrival: LinkEnd, path: Impairment, moving: Moving | None = None
    ) -> Impairment:
        """Apply ``path`` to arriving packets and return the kernel's version of it.

        Delay and loss of what moves the link are set anew every 10 ms at most; netem has a rate,
        with which it keeps packets in order. Raises ``LabError`` if the kernel lacks netem, ifb or
        mirred.
        """
        if (follower := self._followers.pop(arrival.link, None)) is not None:
            follower.cancel()
        moves = moving is not None and moving.content.impairs
        try:
            with NetlinkSocket(arrival.namespace) as routes:
                index = self._devices.get(arrival.link)
                if index is None:
                    if not path and not moves:
                        return path
                    index = self._devices[arrival.link] = _divert(routes, arrival)
                _set_netem(routes, index, path, self._drawn_with(arrival))
                set_up = _read_netem(routes, index, path)
            if moving is not None and moves:
                self._followers[arrival.link] = asyncio.create_task(
                    self._follow(arrival, index, path, moving)
                )
        except NetlinkError as error:
            raise LabError(f"link {arrival.link}: netem: {error}") from error
        return set_up

    async def _follow(self, arrival: LinkEnd, index: int, path: Impairment, moving: Moving) -> None:
        """Set delay and loss of netem as they change, until cancelled."""
        content = moving.content
        parts = {
            name: values
            for name, part in (("delay_us", content.delays), ("loss", content.losses))
            if (values := moving.course.values(part, getattr(path, name))) is not None
        }
        now: dict[str, float] = {}
        with NetlinkSocket(arrival.namespace) as routes:
            while True:
                moment = time.monotonic()
                wanted = {name: part.at(moment) for name, part in parts.items()}
                if wanted != now:
                    now = wanted
                    changed = replace(path, **wanted)
                    _set_netem(routes, index, changed, self._drawn_with(arrival))
                await asyncio.sleep(_FOLLOW_S)

    def _drawn_with(self, arrival: LinkEnd) -> int:
        """Return the seed of a link's netem: the same in every run."""
        return random.Random(f"{self._seed}/{arrival.number}").getrandbits(64)  # noqa: S311

    async def lost(self, arrival: LinkEnd) -> int | None:
        """Return the packets dropped by netem: by its loss, or because too many were in flight."""
        if (index := self._devices.get(arrival.link)) is None:
            return 0
        try:
            with NetlinkSocket(arrival.namespace) as routes:
                return dropped(routes).get(index)
        except NetlinkError as error:
            raise LabError(f"link {arrival.link}: netem: {error}") from error

    async def close(self) -> None:
        """Stop following what moves; ifb devices end with their namespace."""
        for follower in self._followers.values():
            follower.cancel()


def divert_requests(source: int, target: int) -> list[Any]:
    """Return the requests that send all packets arriving on ``source`` out through ``target``."""
    return [rtnl.clsact(source), redirection_request(source, INCOMING, target)]


def make_ifb(routes: NetlinkSocket, arrival: LinkEnd) -> int:
    """Create an ifb device in the receiver's namespace and return its index."""
    name = f"ifb{arrival.number}"
    routes.request([rtnl.ifb(name)], f"device {name}")
    index = arrival.namespace.interface_index(name)
    routes.request([rtnl.up(index)], name)
    return index


def _divert(routes: NetlinkSocket, arrival: LinkEnd) -> int:
    index = make_ifb(routes, arrival)
    # netem comes first, or the first packets would not be delayed.
    _set_netem(routes, index, Impairment())
    source = arrival.namespace.interface_index(arrival.interface)
    routes.request(divert_requests(source, index), "redirection to ifb")
    return index


def _set_netem(routes: NetlinkSocket, index: int, path: Impairment, seed: int = 0) -> None:
    try:
        routes.request([netem_request(index, path, seed)], "netem")
    except NetlinkError as error:
        if error.errno == errno.ENOENT:
            raise LabError("this kernel has no netem (module sch_netem)") from None
        raise


def netem_request(index: int, path: Impairment, seed: int = 0) -> bytes:
    """Return the request that makes netem the root of interface ``index``, or changes it.

    ``seed`` decides which packets are lost; before Linux 6.7 the kernel ignores it.
    """
    kind = "netem", netem_options(path, seed)
    return qdiscs.installation(index, TC_H_ROOT, 0x10000, kind, nested=False)


def netem_options(path: Impairment, seed: int = 0) -> bytes:
    """Return netem's TCA_OPTIONS with all settings, because the kernel keeps omitted ones."""
    head = _QOPT.pack(
        *(round(path.delay_us * tick_in_usec), NETEM_LIMIT, _part(path.loss), bool(path.reorder)),
        *(_part(path.duplicate), round(path.jitter_us * tick_in_usec)),
    )
    attributes = {
        _REORDER: _U32S.pack(_part(path.reorder), 0),
        _CORRUPT: _U32S.pack(_part(path.corrupt), 0),
        _RATE: _RATE_STRUCT.pack(NETEM_RATE // 8, 0, 0, 0),
        _SEED: U64.pack(seed),
    }
    if path.jitter_us:
        # The uniform distribution has a table, too, to replace an earlier one.
        entries = table(path.distribution) or array("h", range(-SCALE, SCALE, 2 * SCALE // SIZE))
        attributes[_TABLE] = entries.tobytes()
    if path.gemodel:
        p, r, lost_in_bad, lost_in_good = map(_part, path.gemodel)
        model = _GEMODEL.pack(p, r, _ALL - lost_in_bad, lost_in_good)
        attributes[_LOSS | NESTED] = attribute(_GILBERT_ELLIOTT, model)
    return head + join(attributes)


def _read_netem(routes: NetlinkSocket, index: int, asked: Impairment) -> Impairment:
    kind, image = qdiscs.find_qdisc(routes, index, TC_H_ROOT)
    if kind != "netem":
        raise LabError(f"requested netem from the kernel, but it has {kind or 'none'}")
    # The kernel does not report the table.
    return replace(path_of(image), distribution=asked.distribution)


def path_of(image: bytes) -> Impairment:
    """Return the impairment in netem's TCA_OPTIONS, except the distribution of jitter."""
    delay, _, loss, gap, duplicate, jitter = _QOPT.unpack_from(image)
    found = split(image[_QOPT.size :])
    reorder, corrupt = (
        int.from_bytes(found.get(each, b"")[:4], sys.byteorder) for each in (_REORDER, _CORRUPT)
    )
    gemodel: tuple[float, ...] = ()
    if (model := split(found.get(_LOSS, b"")).get(_GILBERT_ELLIOTT)) is not None:
        p, r, kept_in_bad, lost_in_good = _GEMODEL.unpack_from(model)
        gemodel = tuple(map(_share, (p, r, _ALL - kept_in_bad, lost_in_good)))
    return Impairment(
        delay_us=round(delay / tick_in_usec),
        jitter_us=round(jitter / tick_in_usec),
        # The kernel keeps the probability of an earlier random loss.
        loss=0.0 if gemodel else _share(loss),
        gemodel=gemodel,
        reorder=_share(reorder) if gap else 0.0,
        duplicate=_share(duplicate),
        corrupt=_share(corrupt),
    )


def _part(share: float) -> int:
    return round(share * _ALL)


def _share(part: int) -> float:
    return round(part / _ALL, 6)


_ALL = 2**32 - 1
"""Number that stands for a probability of one in netem's options."""

_QOPT = struct.Struct("=6I")
"""``struct tc_netem_qopt``: latency, limit, loss, gap, duplicate, jitter; attributes follow."""
_U32S = struct.Struct("=II")
_RATE_STRUCT, _GEMODEL = struct.Struct("=IiIi"), struct.Struct("=4I")
# TCA_NETEM_DELAY_DIST and so on.
_TABLE, _REORDER, _CORRUPT, _LOSS, _RATE, _SEED = 2, 3, 4, 5, 6, 14
_GILBERT_ELLIOTT = 2
"""Attribute ``NETEM_LOSS_GE`` within ``TCA_NETEM_LOSS``."""


# --- the lab's side of the delay line: its process and its firewall rules -------------------------

TABLES = ("raw", "mangle")
"""Tables of iptables for a rule in PREROUTING, in order of preference; both precede routing."""

_FARTHEST = 4
"""Largest delay variation of a distribution's table, as a multiple of the jitter."""


class LineDelay:
    """The delay engine ``delay line``; its process is restarted if it dies.

    Until then packets pass without delay (``--queue-bypass``); packets that it held are lost.
    """

    name = "delay line"

    def __init__(self, log: Logger, seed: int, forked: Child | None = None) -> None:
        """``log`` logs faults and deaths of the process; ``forked`` is the first, if it runs."""
        self._seed = seed
        self._requests: dict[int, DelayRequest] = {}
        self._rules: dict[int, list[str]] = {}
        self._lossy: set[int] = set()
        """Numbers of links that are, or were, set to lose packets."""
        self._lock = asyncio.Lock()
        self._child = Supervisor(
            "the delay line",
            DelayReply,
            log,
            launch=lambda: child.start(delay_line.main),
            restore=self._restore,
            loss="delay and loss are off",
            forked=forked,
        )

    @property
    def processes(self) -> Iterable[int]:
        """Process ID of the delay line; empty if it does not run."""
        return self._child.pids

    def lateness(self) -> tuple[float, float] | None:
        """Return median and 99th percentile of the last second's lateness, in us, or None.

        None means that no packets were released.
        """
        return self._child.lateness

    async def prepare(self) -> None:
        """Start the delay line; one that was not forked imports while the network is built."""
        await self._child.start()

    async def set(
        self, arrival: LinkEnd, path: Impairment, moving: Moving | None = None
    ) -> Impairment:
        """Apply ``path`` to the packets of a link from now on, and what moves the link.

        Raises ``LabError`` if the delay line or iptables fails.
        """
        async with self._lock:
            number = arrival.number
            course = moving.course if moving is not None and moving.content.impairs else None
            if not path and course is None:
                if number in self._requests:
                    await self._end(arrival)
                return path
            request = DelayRequest(
                queue=number, pid=arrival.namespace.pid, seed=self._seed, path=path, course=course
            )
            try:
                await self._child.start()
                if number not in self._requests:
                    await self._open(request, arrival)
                else:
                    self._child.send(replace(request, do="change"))
            except LabError as error:
                raise LabError(f"link {arrival.link}: {error}") from None
            self._requests[number] = request
            if path.loses or (moving is not None and len(moving.content.losses)):
                self._lossy.add(number)
            return path

    async def lost(self, arrival: LinkEnd) -> int | None:
        """Return the packets of a link lost on purpose since its queue was opened.

        A process that dies loses its count, and its successor opens the queue again.
        """
        if arrival.number not in (self._lossy & self._requests.keys()):
            return 0
        return (await self._child.ask(DelayRequest(queue=arrival.number, do="count"))).lost

    async def close(self) -> None:
        """End the delay line."""
        await self._child.close()

    async def _open(self, request: DelayRequest, arrival: LinkEnd) -> None:
        """Open the queue of a link, and direct packets into it."""
        if failed := (await self._child.ask(request)).failed:
            raise LabError(f"the delay line can't open its queue: {failed}")
        # If the delay line dies from now on, its successor opens the queue again.
        self._requests[request.queue] = request
        try:
            self._rules[request.queue] = await _add_rule(arrival)
        except BaseException:
            self._close(request.queue)
            raise

    async def _end(self, arrival: LinkEnd) -> None:
        """Release held packets in order, then remove the rule."""
        number = arrival.number
        request = self._requests[number]
        longest_s = (request.path.delay_us + _FARTHEST * request.path.jitter_us) / 1e6
        if request.course is not None:
            longest_s += max(request.course.read().delays.values, default=0.0) / 1e6
        # If the delay line dies meanwhile, it no longer holds packets.
        with contextlib.suppress(LabError):
            await self._child.ask(DelayRequest(queue=number, do="drain"), longest_s)
        try:
            await _iptables(arrival.namespace.path, "-D", self._rules[number])
        except BaseException:
            self._child.send(replace(request, do="change"))
            raise
        del self._rules[number]
        self._close(number)

    def _close(self, number: int) -> None:
        del self._requests[number]
        self._child.send(DelayRequest(queue=number, do="close"))

    def _restore(self) -> None:
        for request in self._requests.values():
            self._child.send(request)


async def _add_rule(arrival: LinkEnd) -> list[str]:
    """Direct packets that arrive on an interface into its queue; return the rule.

    Raises ``LabError``.
    """
    problem = LabError("no table")
    for name in TABLES:
        rule = [name, arrival.interface, str(arrival.number)]
        try:
            await _iptables(arrival.namespace.path, "-A", rule)
        except LabError as error:
            problem = error
        else:
            return rule
    raise problem


async def _iptables(namespace: str, verb: str, rule: list[str]) -> None:
    rules = await asyncio.create_subprocess_exec(
        "nsenter",
        f"--net={namespace}",
        *rule_argv(verb, *rule),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, output = await rules.communicate()
    if rules.returncode:
        raise LabError(f"iptables-legacy on {rule[1]}: {output.decode(errors='replace').strip()}")


def rule_argv(verb: str, table: str, interface: str, queue: str) -> list[str]:
    """Return the command line that adds (``-A``) or deletes (``-D``) a rule, iptables(8).

    The rule sends packets arriving on an interface to the netfilter queue with this number.
    """
    return [
        *(find_tool("iptables-legacy") or "iptables-legacy", "-w", "-t", table),
        *(verb, "PREROUTING", "-i", interface),
        *("-j", "NFQUEUE", "--queue-num", queue, "--queue-bypass"),
    ]


# --- tries each delay engine on the lab's own loopback device -------------------------------------

_TRIAL_DEVICE = "trial"


def try_netem() -> Feature:
    """Try netem and redirection to an ifb device, which the engine combines."""
    reason, module = _netem_refusal()
    remedy = ""
    if reason:
        option = {"sch_netem": "NET_SCH_NETEM", "ifb": "IFB"}.get(module, "NET_ACT_MIRRED")
        remedy = module_remedy(module, option)
    return feature("netem", "the kernel's own delay, jitter and loss", (reason, remedy))


def _netem_refusal() -> tuple[str, str]:
    """Return why netem can't be used, and the missing module; empty if it can."""
    with NetlinkSocket() as routes:
        trial = traffic_control(
            RTM_NEWQDISC, CREATE, LOOPBACK, (("TCA_KIND", "netem"),), parent=TC_H_ROOT
        )
        try:
            routes.request([trial], "netem")
        except OSError as error:
            # A kernel with netem refuses it without options, too, but as invalid.
            if error.errno == errno.ENOENT:
                return "not in this kernel", "sch_netem"
        try:
            routes.request([rtnl.ifb(_TRIAL_DEVICE)], "ifb")
        except OSError as error:
            return str(error), "ifb"
        index = Namespace("lab", os.getpid()).interface_index(_TRIAL_DEVICE)
        try:
            routes.request(divert_requests(LOOPBACK, index), "mirred")
        except OSError as error:
            return str(error), "act_mirred"
        finally:
            with contextlib.suppress(OSError):
                ingress = traffic_control(RTM_DELQDISC, 0, LOOPBACK, (), parent=rtnl.CLSACT)
                routes.request([ingress], "tidy")
            routes.request([rtnl.remove(index)], "tidy")
    return "", ""


def try_delay_line() -> Feature:
    """Try to direct packets of the lab's own loopback device into a queue."""
    reason, remedy = "", ""
    try:
        PacketQueue(Namespace("lab", os.getpid()), 1).close()
    except OSError as error:
        reason = f"no nfnetlink_queue ({error.strerror})"
        remedy = module_remedy("nfnetlink_queue", "NETFILTER_NETLINK_QUEUE")
    else:
        reason = _iptables_refusal()
        if reason:
            remedy = "as root: modprobe -a xt_NFQUEUE iptable_raw iptable_mangle"
            if find_tool("iptables-legacy") is None:
                remedy = "apt install iptables"
    summary = "ccplay's own: packets wait in a netfilter queue"
    return feature("delay line", summary, (reason, remedy))


def _iptables_refusal() -> str:
    """Return why no rule can direct packets into a queue; empty if one can."""
    if find_tool("iptables-legacy") is None:
        return "iptables-legacy is not installed"
    refusal = ""
    for name in TABLES:
        make, delete = (rule_argv(verb, name, "lo", "1") for verb in ("-A", "-D"))
        trial = subprocess.run(make, check=False, capture_output=True, text=True)
        if trial.returncode == 0:
            subprocess.run(delete, check=False, capture_output=True)
            return ""
        refusal = trial.stderr.strip().partition("\n")[0]
    return refusal
