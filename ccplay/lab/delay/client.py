"""The lab's side of the delay line: its process and firewall rules; and a trial of each engine."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import subprocess
from collections.abc import Iterable

import msgspec

from ccplay.assets import find_tool, module_file
from ccplay.errors import LabError
from ccplay.lab.delay import line
from ccplay.lab.delay.engines import Arrival, Impairment
from ccplay.lab.delay.line import DelayReply, DelayRequest
from ccplay.lab.delay.netem import CLSACT, divert_requests
from ccplay.lab.netns import Namespace
from ccplay.lab.packets import process
from ccplay.lab.packets.loop import PacketQueue
from ccplay.lab.packets.process import Supervisor, Logger, Child
from ccplay.lab.queues.qdiscs import LOOPBACK
from ccplay.lab.rtnl import (
    CREATE,
    EXCLUSIVE,
    RTM_DELLINK,
    RTM_DELQDISC,
    RTM_NEWLINK,
    RTM_NEWQDISC,
    TC_H_ROOT,
    RouteSocket,
    ifinfmsg,
    message,
    traffic_control,
)
from ccplay.model.values import Feature

# --- the lab's side of the delay line: its process, its orders and its firewall rules -------------

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
        self._orders: dict[int, DelayRequest] = {}
        self._rules: dict[int, list[str]] = {}
        self._lossy: set[int] = set()
        """Numbers of links that are, or were, set to lose packets."""
        self._lock = asyncio.Lock()
        self._keeper = Supervisor(
            "the delay line",
            DelayReply,
            log,
            launch=lambda: process.start(line.main),
            restore=self._restore,
            on_news=lambda _: None,
            loss="delay and loss are off",
            forked=forked,
        )

    @property
    def processes(self) -> Iterable[int]:
        """Process ID of the delay line; empty if it does not run."""
        return self._keeper.pids

    def lateness(self) -> tuple[float, float] | None:
        """Return median and 99th percentile of the last second's lateness, in us, or None.

        None means that no packets were released.
        """
        return self._keeper.lateness

    async def prepare(self) -> None:
        """Start the delay line; one that was not forked imports while the network is built."""
        await self._keeper.start()

    async def set(self, arrival: Arrival, path: Impairment) -> Impairment:
        """Apply ``path`` to the packets of a link from now on.

        Raises ``LabError`` if the delay line or iptables fails.
        """
        async with self._lock:
            number = arrival.number
            if not path:
                if number in self._orders:
                    await self._end(arrival)
                return path
            order = DelayRequest(
                queue=number,
                pid=arrival.namespace.pid,
                seed=self._seed,
                path=path,
            )
            try:
                await self._keeper.start()
                if number not in self._orders:
                    await self._open(order, arrival)
                else:
                    self._keeper.send(msgspec.structs.replace(order, do="change"))
            except LabError as error:
                raise LabError(f"link {arrival.name}: {error}") from None
            self._orders[number] = order
            if path.loses:
                self._lossy.add(number)
            return path

    async def lost(self, arrival: Arrival) -> int | None:
        """Return the packets of a link lost on purpose since its queue was opened.

        A process that dies loses its count, and its successor opens the queue again.
        """
        if arrival.number not in (self._lossy & self._orders.keys()):
            return 0
        return (await self._keeper.ask(DelayRequest(queue=arrival.number, do="count"))).lost

    async def close(self) -> None:
        """End the delay line."""
        await self._keeper.close()

    async def _open(self, order: DelayRequest, arrival: Arrival) -> None:
        """Open the queue of a link, and direct packets into it."""
        if failed := (await self._keeper.ask(order)).failed:
            raise LabError(f"the delay line can't open its queue: {failed}")
        # If the delay line dies from now on, its successor opens the queue again.
        self._orders[order.queue] = order
        try:
            self._rules[order.queue] = await _add_rule(arrival)
        except BaseException:
            self._close(order.queue)
            raise

    async def _end(self, arrival: Arrival) -> None:
        """Release held packets in order, then remove the rule."""
        number = arrival.number
        order = self._orders[number]
        longest_s = (order.path.delay_us + _FARTHEST * order.path.jitter_us) / 1e6
        # If the delay line dies meanwhile, it no longer holds packets.
        with contextlib.suppress(LabError):
            await self._keeper.ask(DelayRequest(queue=number, do="drain"), longest_s)
        try:
            await _iptables(arrival.namespace.path, "-D", self._rules[number])
        except BaseException:
            self._keeper.send(msgspec.structs.replace(order, do="change"))
            raise
        del self._rules[number]
        self._close(number)

    def _close(self, number: int) -> None:
        del self._orders[number]
        self._keeper.send(DelayRequest(queue=number, do="close"))

    def _restore(self) -> None:
        for order in self._orders.values():
            self._keeper.send(order)


async def _add_rule(arrival: Arrival) -> list[str]:
    """Direct packets that arrive on an interface into its queue; return the rule.

    Raises ``LabError``.
    """
    problem = LabError("no table")
    for table in TABLES:
        rule = [table, arrival.interface, str(arrival.number)]
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
        remedy = f"a kernel with CONFIG_{option} has it"
        if module_file(module):
            remedy = f"as root: modprobe {module}"
    return Feature(
        name="netem",
        available=not reason,
        summary="the kernel's own delay, jitter and loss",
        reason=reason,
        remedy=remedy,
    )


def _netem_refusal() -> tuple[str, str]:
    """Return why netem can't be used, and the missing module; empty if it can."""
    info = {"attrs": [["IFLA_INFO_KIND", "ifb"]]}
    device = (("IFLA_IFNAME", _TRIAL_DEVICE), ("IFLA_LINKINFO", info))
    with RouteSocket() as routes:
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
            routes.request([message(ifinfmsg, RTM_NEWLINK, CREATE | EXCLUSIVE, device)], "ifb")
        except OSError as error:
            return str(error), "ifb"
        index = Namespace("lab", os.getpid()).interface_index(_TRIAL_DEVICE)
        try:
            routes.request(divert_requests(LOOPBACK, index), "mirred")
        except OSError as error:
            return str(error), "act_mirred"
        finally:
            with contextlib.suppress(OSError):
                ingress = traffic_control(RTM_DELQDISC, 0, LOOPBACK, (), parent=CLSACT)
                routes.request([ingress], "tidy")
            routes.request([message(ifinfmsg, RTM_DELLINK, index=index)], "tidy")
    return "", ""


def try_delay_line() -> Feature:
    """Try to direct packets of the lab's own loopback device into a queue."""
    reason, remedy = "", ""
    try:
        PacketQueue(Namespace("lab", os.getpid()), 1).close()
    except OSError as error:
        reason = f"no nfnetlink_queue ({error.strerror})"
        remedy = "a kernel with CONFIG_NETFILTER_NETLINK_QUEUE has it"
        if module_file("nfnetlink_queue"):
            remedy = "as root: modprobe nfnetlink_queue"
    else:
        reason = _iptables_refusal()
        if reason:
            remedy = "as root: modprobe -a xt_NFQUEUE iptable_raw iptable_mangle"
            if find_tool("iptables-legacy") is None:
                remedy = "apt install iptables"
    return Feature(
        name="delay line",
        available=not reason,
        summary="ccplay's own: packets wait in a netfilter queue",
        reason=reason,
        remedy=remedy,
    )


def _iptables_refusal() -> str:
    """Return why no rule can direct packets into a queue; empty if one can."""
    if find_tool("iptables-legacy") is None:
        return "iptables-legacy is not installed"
    refusal = ""
    for table in TABLES:
        make, delete = (rule_argv(verb, table, "lo", "1") for verb in ("-A", "-D"))
        trial = subprocess.run(make, check=False, capture_output=True, text=True)
        if trial.returncode == 0:
            subprocess.run(delete, check=False, capture_output=True)
            return ""
        refusal = trial.stderr.strip().partition("\n")[0]
    return refusal
