"""What tests of the network do inside their namespaces; each case returns plain JSON."""

import asyncio
import os
import re
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from statistics import median
from typing import Any

import msgspec
from msgspec.structs import replace

from ccplay.errors import LabError
from ccplay.lab import delay, htb, netns, qdiscs, shaping
from ccplay.lab.child import Supervisor
from ccplay.lab.netlink import HEADER
from ccplay.lab.netns import LinkEnd, Namespace
from ccplay.lab.network import BuiltNetwork, build_network
from ccplay.lab.paths import STREAMS
from ccplay.lab.rtnl import (
    RTM_GETQDISC,
    TC_H_ROOT,
    NetlinkError,
    NetlinkSocket,
    is_up,
    traffic_control,
)
from ccplay.lab.shaping import HalfChangedError, Shaper, delay_engine
from ccplay.lab.software import Software
from ccplay.lab.traffic.iperf import Bypass
from ccplay.model.events import LinkChanged
from ccplay.model.network import Link, Topology
from ccplay.model.topologies import plan
from ccplay.model.values import LinkSetting, Qdisc, TrafficClass

RATE = 10_000_000
PFIFO_100 = Qdisc(kind="pfifo", options={"limit": 100})


_RTMGRP_TC = 8
"""Group of the kernel's messages about traffic control, rtnetlink(7)."""


class Bench:
    """A built, shaped network, with methods to load and measure it."""

    def __init__(self, built: BuiltNetwork, shaper: Shaper, said: list[list[str]]) -> None:
        self.built = built
        self.shaper = shaper
        self.messages = said
        self.links: dict[str, Link] = {each.name: each for each in built.network.links}
        names = {each.role: each.name for each in reversed(built.network.nodes)}
        self.sender, self.receiver = names["sender"], names.get("receiver", "h2")
        self.there, self.back = (self.links[each] for each in built.network.bottlenecks)

    def address(self, node: str) -> str:
        return next(each.address for each in self.built.network.nodes if each.name == node)

    async def both(self, **setting: Any) -> list[LinkChanged]:
        changes = []
        for link in (self.there, self.back):
            changes += await self.shaper.apply(link, LinkSetting(**setting))
        return changes

    async def run(self, node: str, *argv: str) -> str:
        process = await self.start(node, *argv)
        output, _ = await process.communicate()
        return output.decode()

    async def start(self, node: str, *argv: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            "nsenter",
            f"--net={self.built.namespace(node).path}",
            *argv,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )

    async def rtts_ms(self, count: int, *options: str) -> list[float]:
        text = await self.run(
            self.sender, "ping", "-c", str(count), *options, self.address(self.receiver)
        )
        return [float(each) for each in re.findall(r"time=([0-9.]+) ms", text)]

    def leaf(self) -> dict[str, int]:
        """Return handle, qlen and counters of the queue under study."""
        namespace = self.built.namespace(self.there.src)
        index = namespace.interface_index(self.there.interface)
        with NetlinkSocket(namespace) as routes:
            for answer in routes.dump(traffic_control(RTM_GETQDISC, 0, index, ())):
                kind = answer.get_attr("TCA_KIND")
                if answer["index"] == index and kind not in ("htb", "noqueue"):
                    stats = answer.get_attr("TCA_STATS2")
                    return {
                        "handle": answer["handle"],
                        "qlen": stats.get_attr("TCA_STATS_QUEUE")["qlen"],
                        "bytes": stats.get_attr("TCA_STATS_BASIC")["bytes"],
                    }
        raise AssertionError("the link under study has no queue")

    def sent(self) -> tuple[int, float]:
        """Return the bytes that have left the queue under study, and the moment of reading."""
        readings = []
        for _ in range(5):
            begun = time.monotonic()
            sent = self.leaf()["bytes"]
            read = time.monotonic()
            readings.append((read - begun, sent, (begun + read) / 2))
        _, sent, t = min(readings)
        return sent, t

    async def until(self, condition: Any, within_s: float = 60.0) -> None:
        deadline = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < deadline, self.messages
            await asyncio.sleep(0.01)

    @asynccontextmanager
    async def flood(self, bits_per_second: int) -> AsyncIterator[None]:
        """Send full frames by UDP regardless of loss."""
        async with self.traffic("-u", "-b", str(bits_per_second), "-l", "1472"):
            yield

    @asynccontextmanager
    async def traffic(self, *options: str) -> AsyncIterator[None]:
        """Run iperf3 towards the receiver within the context; options are the client's."""
        server = await self.start(self.receiver, "iperf3", "-s", "-1", "--forceflush")
        assert server.stdout is not None
        while b"listening" not in await server.stdout.readline():
            pass
        delay = await self.start(
            self.sender, "iperf3", "-c", self.address(self.receiver), "-t", "60", *options
        )
        try:
            yield
        finally:
            for process in (delay, server):
                if process.returncode is None:
                    process.kill()
                await process.communicate()


@asynccontextmanager
async def bench(
    kind: str = "dumbbell", *, engine: str = "delay line", software: bool = False, **setting: Any
) -> AsyncIterator[Bench]:
    network = plan(Topology(kind=kind, pairs=1))
    said: list[list[str]] = []
    built = build_network(network, lambda *_: None)
    delays = delay_engine(engine, lambda level, text, **_: said.append([level, text]), seed=1)
    own = Software(lambda level, text, **_: said.append([level, text]), 1) if software else None
    with Shaper(built, delays, time.monotonic, own) as shaper:
        made = Bench(built, shaper, said)
        await made.both(**({"rate": RATE, "qdisc": PFIFO_100} | setting))
        yield made
    await delays.close()
    if own is not None:
        await own.close()
    built.close()


async def reach(kind: str, pairs: int) -> list[str]:
    """Ping every node from every host; return the pairs without an answer."""
    network = plan(Topology(kind=kind, pairs=pairs))
    built = build_network(network, lambda *_: None)
    pings = {}
    for node in network.nodes:
        for other in network.nodes:
            if node.role != "router":
                pings[f"{node.name} {other.name}"] = await asyncio.create_subprocess_exec(
                    *("nsenter", f"--net={built.namespace(node.name).path}"),
                    *("ping", "-c1", "-W20", "-q", other.address),
                    stdout=asyncio.subprocess.DEVNULL,
                )
    failed = [name for name, ping in pings.items() if await ping.wait()]
    built.close()
    return failed


async def announced() -> list[int]:
    """Return the types of messages about a host's queues as control connections begin and end."""
    network = plan(Topology(kind="linear"))
    built = build_network(network, lambda *_: None)
    with built.namespace("h1").socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as messages:
        messages.bind((0, _RTMGRP_TC))
        cables = Bypass(network, built.namespace)
        for port in (5201, 5202):
            cables.open("h1", "h2", port)
            cables.close("h1", "h2", port)
        messages.setblocking(False)
        kinds = []
        with suppress(BlockingIOError):
            while True:
                kinds.append(HEADER.unpack_from(messages.recv(1 << 16))[1])
    return kinds


async def delays(engine: str, asked_us: list[int]) -> list[float]:
    """Return the median RTT in ms for every requested one-way delay, and at last for none."""
    rtts = []
    async with bench(engine=engine) as made:
        for delay_us in [*asked_us, 0]:
            await made.both(delay_us=delay_us)
            rtts.append(median(await made.rtts_ms(40, "-i", "0.02")))
    return rtts


async def wire_rates(asked: list[int]) -> list[list[float]]:
    """Return for every rate the rate of TCP on the wire, and whether offloads are on."""
    measured = []
    async with bench(delay_us=5_000) as made:
        for rate in asked:
            await made.until(lambda: made.leaf()["qlen"] == 0)
            changes = await made.both(rate=rate)
            async with made.traffic("-C", "cubic"):
                await made.until(lambda: made.leaf()["qlen"] > 10)
                before, began = made.sent()
                await asyncio.sleep(2.0)
                after, ended = made.sent()
                bits_per_second = (after - before) * 8 / (ended - began)
                measured.append([bits_per_second, changes[-1].offloads])
    return measured


async def full_queue(engine: str) -> dict[str, float]:
    """Fill 100 packets at 10 Mbit/s; return the RTT in ms, and what later changes keep."""
    async with bench(engine=engine, delay_us=10_000) as made, made.flood(12_000_000):
        await made.until(lambda: made.leaf()["qlen"] >= 99)
        full = median(await made.rtts_ms(40, "-i", "0.05"))
        began, before = time.monotonic(), made.leaf()
        await made.both(rate=2 * RATE)
        after = made.leaf()
        passed = (time.monotonic() - began) * 2 * RATE / (8 * 1514)
        (shrunk,) = await made.shaper.apply(
            made.there, LinkSetting(qdisc=Qdisc(kind="pfifo", options={"limit": 20}))
        )
        (replaced,) = await made.shaper.apply(
            made.there, LinkSetting(qdisc=Qdisc(kind="bfifo", options={"limit": 30_000}))
        )
        assert shrunk.setting.qdisc is not None
        assert replaced.setting.qdisc is not None
        return {
            "rtt_ms": full,
            "same_queue": before["handle"] == after["handle"],
            "lost": before["qlen"] - passed - after["qlen"],
            "rate_after": replaced.setting.rate or 0,
            "shrunk_to": int(shrunk.setting.qdisc.options["limit"]),
            "replaced_by_bfifo": replaced.setting.qdisc.kind == "bfifo",
            "new_queue": made.leaf()["handle"] != after["handle"],
        }


async def losses(engine: str, count: int, loss: float) -> int:
    """Return how many of ``count`` pings are lost if one direction loses that share."""
    async with bench(engine=engine, rate=100_000_000) as made:
        await made.shaper.apply(made.there, LinkSetting(loss=loss))
        text = await made.run(
            made.sender, "ping", "-f", "-q", "-c", str(count), made.address(made.receiver)
        )
        found = re.search(r"(\d+) received", text)
        assert found is not None, text
        return count - int(found[1])


async def killed_line() -> dict[str, Any]:
    """Kill the delay line; return what is reported and the RTT afterwards."""
    async with bench(delay_us=10_000) as made:
        (first,) = made.shaper.processes
        os.kill(first, signal.SIGKILL)
        await made.until(lambda: made.shaper.processes not in ([], [first]))
        await made.rtts_ms(5, "-i", "0.2")
        rtt = median(await made.rtts_ms(20, "-i", "0.02"))
        return {"said": made.messages, "rtt_ms": rtt}


async def killed_before_it_answers(before: dict[str, Any], after: dict[str, Any]) -> Any:
    """Kill the process that must answer when ``before`` becomes ``after``, before it does.

    Returns the setting reported then, the RTT in ms, and the levels of what was logged.
    """
    wanted = [msgspec.convert(each, LinkSetting) for each in (before, after)]
    async with bench(software=True) as made:
        await made.shaper.apply(made.there, wanted[0])
        software, delays = made.shaper._software, made.shaper._engine
        assert software is not None
        assert isinstance(delays, delay.LineDelay)
        child: Any = software._serving if wanted[1].qdisc else delays._child
        await child.start()
        (pid,) = child.pids
        os.kill(pid, signal.SIGSTOP)
        changing = asyncio.create_task(made.shaper.apply(made.there, wanted[1]))
        await made.until(lambda: child._answers)
        os.kill(pid, signal.SIGKILL)
        (changed,) = await changing
        await made.rtts_ms(5, "-i", "0.2")
        rtt_ms = median(await made.rtts_ms(20, "-i", "0.02"))
        setting = msgspec.to_builtins(changed.setting)
        return {"setting": setting, "rtt_ms": rtt_ms, "said": [level for level, _ in made.messages]}


async def ending_delay(engine: str) -> dict[str, Any]:
    """Ping fast while the delay drops from 20 ms to none; return losses and remains."""
    async with bench(engine=engine, delay_us=20_000) as made:
        address = made.address(made.receiver)
        ping = await made.start(made.sender, "ping", "-i", "0.002", "-c", "500", address)
        await asyncio.sleep(0.3)
        (changed, _) = await made.both(delay_us=0)
        output, _ = await ping.communicate()
        sequence = [int(each) for each in re.findall(r"icmp_seq=(\d+)", output.decode())]
        rules = await made.run(made.there.dst, "iptables-legacy", "-w", "-t", "raw", "-S")
        return {
            "received": len(sequence),
            "in_order": sequence == sorted(sequence),
            "engine": changed.delay_engine,
            "rules": rules.count("NFQUEUE"),
        }


async def jitter(engine: str) -> dict[str, float]:
    """Return order and RTTs under 10 ms ± 5 ms: the lowest, and the 90th percentile."""
    async with bench(engine=engine) as made:
        await made.shaper.apply(made.there, LinkSetting(delay_us=10_000, jitter_us=5_000))
        text = await made.run(
            made.sender, "ping", "-i", "0.002", "-c", "300", made.address(made.receiver)
        )
        sequence = [int(each) for each in re.findall(r"icmp_seq=(\d+)", text)]
        rtts = [float(each) for each in re.findall(r"time=([0-9.]+) ms", text)]
        return {
            "in_order": sequence == sorted(sequence),
            "lowest": min(rtts),
            "late": sorted(rtts)[len(rtts) * 9 // 10],
        }


def commands(made: Bench) -> dict[str, Callable[[], Coroutine[Any, Any, list[LinkChanged]]]]:
    """Return commands that change several things, by name, for a network with classes there."""
    both, shaper = [made.there, made.back], made.shaper
    bfifo = Qdisc(kind="bfifo", options={"limit": 30_000})

    def link(**setting: Any) -> Callable[[], Coroutine[Any, Any, list[LinkChanged]]]:
        return lambda: shaper.apply_to_all(both, LinkSetting(**setting))

    # Without a queue of its own a class would have to share one in software.
    htb = [TrafficClass(name=each, share=0.25, qdisc=bfifo) for each in "ab"]
    return {
        "a class's queue": lambda: shaper.queues_of_class(both, "one", bfifo),
        "no classes": link(classes=[]),
        "a queue": link(qdisc=bfifo),
        "a queue in software": link(qdisc=Qdisc(kind="codel.py")),
        "another": link(qdisc=Qdisc(kind="drr.py"), rate=20_000_000),
        "classes": link(classes=htb),
        "other classes": link(classes=[TrafficClass(name="b", share=0.5)]),
        "one queue again": link(classes=[], qdisc=PFIFO_100),
        "rate and delay": link(rate=2_000_000, delay_us=3_000, loss=0.5),
        "no delay": link(rate=400_000_000, delay_us=0, loss=0.0),
        "a slow rate": link(rate=RATE),
        "down": link(down=True),
        "up": link(down=False, rate=3_000_000),
        "a rate": lambda: shaper.apply_to_all([made.links["s1->r1"]], LinkSetting(rate=RATE)),
        "no rate": lambda: shaper.apply_to_all([made.links["s1->r1"]], LinkSetting(rate=0)),
    }


class Faults:
    """Makes one call of the kernel or of a process fail: instead of being made, or after it."""

    def __init__(self) -> None:
        self.at, self.after, self._calls = 0, False, 0

    def arm(self, at: int, *, after: bool) -> None:
        self.at, self.after, self._calls = at, after, 0

    def _due(self) -> bool:
        self._calls += 1
        return self._calls == self.at

    @property
    def met(self) -> bool:
        return self._calls >= self.at

    def among(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def made(*words: Any, **named: Any) -> Any:
            due = self._due()
            if due and not self.after:
                raise LabError("not this time")
            result = call(*words, **named)
            if due:
                raise LabError("not this time")
            return result

        return made

    def among_awaited(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a program, which does all or nothing, or a question."""

        async def made(*words: Any, **named: Any) -> Any:
            if self._due():
                raise LabError("not this time")
            return await call(*words, **named)

        return made


def offloaded(namespace: Namespace, interface: str) -> list[int]:
    with namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        commands = htb._GET_COMMANDS.values()
        return [htb._ioctl(sock, interface, each, 0) for each in commands]


async def kernels(made: Bench) -> str:
    """Return queues, classes, filters, routes, rules and offloads of all nodes, without handles."""
    asked = [
        (node.name, *argv)
        for node in made.built.network.nodes
        for argv in (
            ("tc", "qdisc", "show"),
            ("ip", "route"),
            ("iptables-legacy", "-w", "-t", "raw", "-S"),
            ("iptables-legacy", "-w", "-t", "mangle", "-S"),
        )
        if node.name != made.receiver
    ]
    found = await asyncio.gather(*(made.run(*each) for each in asked))
    for link in made.links.values():
        namespace = made.built.namespace(link.src)
        index = namespace.interface_index(link.interface)
        with NetlinkSocket(namespace) as routes:
            interface = offloaded(namespace, link.interface), is_up(namespace, link.interface)
            queues = (
                htb.filter_priorities(routes, index),
                sorted(htb.read_rates(routes, index).items()),
            )
            found.append(f"{link.name}: {interface} {queues}\n")
    # A queue that was put back has another handle.
    return "\n".join(sorted(re.sub(r"(?<=fifo )[0-9a-f]+:", "", "".join(found)).splitlines()))


async def failing_anywhere() -> dict[str, Any]:
    """Let each call of each command fail once; return how many did, and what then differed."""
    faults, differed, failed = Faults(), list[str](), dict[str, int]()
    NetlinkSocket.request = faults.among(NetlinkSocket.request)  # type: ignore[method-assign]
    for module, name in ((delay, "_iptables"), (netns, "change_iptables"), (Supervisor, "ask")):
        setattr(module, name, faults.among_awaited(getattr(module, name)))
    htb.set_offloads = faults.among(htb.set_offloads)
    shares = [TrafficClass(name="one", share=0.5), TrafficClass(name="two", share=0.5)]
    async with bench(classes=shares, delay_us=1_000, software=True) as made:
        made.shaper.admit(htb.Selection("flows", "1", htb.port_keys(STREAMS, "10.0.0.1", 5201)))
        software = made.shaper._software
        assert software is not None

        carry_out, steps = shaping._carry_out, list[Any]()

        async def armed(wanted: Sequence[Any], *others: Any) -> list[LinkChanged]:
            # From here on, because what is tried beforehand changes no link.
            steps[:] = wanted
            faults.arm(at, after=after)
            return await carry_out(wanted, *others)

        async def now() -> str:
            await asyncio.gather(*software._removing.values())
            told = [replace(made.shaper.describe(each), t=0.0) for each in made.links]
            # A link whose cable no command has taken down is up.
            said = (repr(each).replace("down=None", "down=False") for each in told)
            return "\n".join([await kernels(made), *said])

        shaping._carry_out = armed  # type: ignore[assignment]
        for name, command in commands(made).items():
            before, failed[name] = await now(), 0
            for at, after in ((at, after) for at in range(1, 100) for after in (False, True)):
                try:
                    await command()
                except LabError:
                    failed[name] += 1
                else:
                    if not faults.met:
                        break
                    # It did not matter, so there is something to undo.
                    faults.arm(0, after=False)
                    for step in reversed(steps):
                        await step.undo()
                faults.arm(0, after=False)
                if (held := await now()) != before:
                    lines = set(held.splitlines()) ^ set(before.splitlines())
                    differed += [f"{name}, {at} {after}: {each}" for each in sorted(lines)]
    return {"failed": failed, "differed": differed[:40]}


async def undoing_that_fails() -> Any:
    """Let a second link refuse its queue and the first to go back; return what is reported."""
    request = NetlinkSocket.request
    async with bench() as made:
        number = 0

        def refuse(routes: NetlinkSocket, messages: Iterable[Any], what: str) -> None:
            nonlocal number
            number += 1
            if number > 1:
                raise NetlinkError(1, f"{what}: refused")
            request(routes, messages, what)

        async def change(qdisc: Qdisc) -> list[Any]:
            try:
                await made.shaper.apply_to_all([made.there, made.back], LinkSetting(qdisc=qdisc))
            except HalfChangedError as error:
                NetlinkSocket.request = request  # type: ignore[method-assign]
                queues = {each.link: each.setting.qdisc for each in error.changes}
                return [str(error), msgspec.to_builtins(queues), await kernels(made)]
            raise AssertionError("it was not refused")

        bfifo = Qdisc(kind="bfifo", options={"limit": 30_000})
        qdiscs.rehearse(bfifo)
        qdiscs._taken.add(msgspec.json.encode(bfifo))
        NetlinkSocket.request = refuse  # type: ignore[method-assign, assignment]
        return await change(bfifo)


async def offload_crossing() -> list[list[list[Any]]]:
    """Change the rate to 1 Gbit/s and back to 10 Mbit/s; return the links' reports of offloads."""
    async with bench() as made:
        return [
            [[each.link, each.offloads] for each in await made.both(rate=rate)]
            for rate in (1_000_000_000, RATE)
        ]


async def ifb_detour() -> dict[str, float]:
    """Send arriving packets through an ifb, as for netem, here with a plain FIFO on it."""
    async with bench() as made:
        link = made.there
        arrival = LinkEnd(
            1, link.name, made.built.namespace(link.dst), made.built.receiving_interface(link)
        )
        with NetlinkSocket(arrival.namespace) as routes:
            index = delay.make_ifb(routes, arrival)
            qdiscs.attach(routes, index, TC_H_ROOT, 0x10000, PFIFO_100)
            source = arrival.namespace.interface_index(arrival.interface)
            routes.request(delay.divert_requests(source, index), "redirection")
            answered = len(await made.rtts_ms(10, "-i", "0.01"))
            for answer in routes.dump(traffic_control(RTM_GETQDISC, 0, index, ())):
                if answer["index"] == index:
                    basic = answer.get_attr("TCA_STATS2").get_attr("TCA_STATS_BASIC")
                    return {"answered": answered, "through_ifb": basic["packets"]}
    raise AssertionError("no ifb")
