"""Rate and delay of every link of every topology, measured in both directions at once.

Datagrams go from one end of each cable to the other, by the address of that very interface, so
each crosses one link and no other. The rate is what the kernel's stamps say of a train of them: it
stamps each as it arrives, before the delay. The delay is what the receiving program sees.
"""

import asyncio
import selectors
import socket
import struct
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from statistics import median

import psutil
import pytest

from ccplay.lab.netns import Namespace
from ccplay.model.commands import Build, SetLink
from ccplay.model.network import Link, Network, Topology
from ccplay.model.topologies import TOPOLOGIES, generated, plan
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.traffic.ping import Ping, StartPing
from tests.lab.conftest import RunningLab, running
from tests.lab.trust import physical

PORT = 5999
PACKETS = 40
"""Number of packets sent: a queue of 60 holds them, and at 2 Mbit/s they take a quarter of a
second."""
PAYLOAD = 1000
FRAME = PAYLOAD + 8 + 20 + 14
"""Length of a frame in bytes: HTB counts the Ethernet header; veth adds nothing else."""
BURST = 4
"""Number of packets that HTB passes at once after silence: one or two frames, and those of a
tick."""

TRIES = 30
"""Number of datagrams that measure a delay: beside other tests few are read at once."""

SO_TIMESTAMPNS = 35
SMALL = {
    "linear": {"routers": 3},
    "multihomed": {},
    "parking-lot": {"hops": 2},
    "star": {"hosts": 4},
    "leaf-spine": {"leaves": 2, "spines": 2, "hosts": 2},
    "super-spine": {"hosts": 1},
    "fat-tree": {"k": 4},
    "loopless": {"hosts": 1},
}


def settings(network: Network) -> dict[str, LinkSetting]:
    """Return a rate and a delay for every direction that its neighbours do not have."""
    return {
        link.name: LinkSetting(
            rate=2_000_000 + 250_000 * (number % 5),
            delay_us=3_000 + 6_000 * (number % 7),
            qdisc=Qdisc(kind="pfifo", options={"limit": 60}),
        )
        for number, link in enumerate(network.links)
    }


class Ends:
    """A sending socket at one end of a link, and a receiving socket at the other."""

    def __init__(
        self, namespaces: dict[str, Namespace], network: Network, link: Link, stack: ExitStack
    ) -> None:
        far = network.opposite(link)
        self.to = (far.address, PORT)
        kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK
        self.sender = stack.enter_context(namespaces[link.src].socket(socket.AF_INET, kind))
        self.sender.bind((link.address, 0))
        self.receiver = stack.enter_context(namespaces[link.dst].socket(socket.AF_INET, kind))
        self.receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.receiver.bind(self.to)
        self.stamps: list[float] = []
        self.late_s: list[float] = []
        """Seconds from sending to receiving each datagram."""
        self._sent = 0.0

    def send(self, count: int, size: int) -> None:
        self.stamps.clear()
        self._sent = time.monotonic()
        for _ in range(count):
            self.sender.sendto(b"x" * size, self.to)

    def receive(self) -> None:
        _, ancillary, _, _ = self.receiver.recvmsg(2048, 64)
        self.late_s.append(time.monotonic() - self._sent)
        seconds, nanoseconds = struct.unpack("@ll", ancillary[0][2][:16])
        self.stamps.append(seconds + nanoseconds / 1e9)


def namespaces_of(lab: RunningLab) -> dict[str, Namespace]:
    """Return the namespaces of all nodes, each held open by a ``cat``."""
    assert lab.source.pid is not None
    found = {}
    for process in psutil.Process(lab.source.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess, OSError):
            if process.cmdline() == ["cat"]:
                lines = Path(f"/proc/{process.pid}/net/dev").read_text().splitlines()
                names = [line.partition("-eth")[0].strip() for line in lines if "-eth" in line]
                found[names[0]] = Namespace(names[0], process.pid)
    return found


def arrive(poll: selectors.DefaultSelector, count: int) -> None:
    """Receive a number of datagrams at every receiver."""
    left = count * len(poll.get_map())
    while left:
        ready = poll.select(20)
        assert ready, f"{left} datagrams have not arrived"
        for key, _ in ready:
            key.data.receive()
            left -= 1


def measure(lab: RunningLab, network: Network) -> dict[str, tuple[float, float]]:
    """Return delay in us and rate in bit/s of every link."""
    with ExitStack() as stack:
        nodes = namespaces_of(lab)
        ends = {link.name: Ends(nodes, network, link, stack) for link in network.links}
        poll = stack.enter_context(selectors.DefaultSelector())
        for each in ends.values():
            poll.register(each.receiver, selectors.EVENT_READ, each)
        for _ in range(TRIES):
            for each in ends.values():
                each.send(1, 10)
            arrive(poll, 1)
        delays = {name: min(each.late_s) * 1e6 for name, each in ends.items()}
        for each in ends.values():
            each.send(PACKETS, PAYLOAD)
        arrive(poll, PACKETS)
    rates = {}
    half = (PACKETS - BURST) // 2
    for name, each in ends.items():
        train = each.stamps[BURST:]
        # A busy machine receives some packets late, but not half of them.
        took = median(after - before for before, after in zip(train, train[half:], strict=False))
        rates[name] = half * FRAME * 8 / took
    return {name: (delays[name], rates[name]) for name in ends}


def test_every_topology_is_measured() -> None:
    assert set(SMALL) | {"dumbbell"} == {kind.name for kind in generated()}


@physical
@pytest.mark.parametrize("kind", [name for name in TOPOLOGIES if name != "written"])
async def test_every_link_has_its_rate_and_its_delay(kind: str) -> None:
    topology = Topology(kind=kind, parameters=SMALL.get(kind, {}))
    network = plan(topology)
    wanted = settings(network)
    # The screen's samples are not needed, and leave the cores to the packets.
    async with running(Build(topology=topology, links=wanted, sample_hz=10.0)) as lab:
        measured = await asyncio.to_thread(measure, lab, network)
    assert len(measured) == len(network.links)
    for name, (delay_us, rate) in measured.items():
        setting = wanted[name]
        assert setting.delay_us is not None
        # The least of some: a busy machine is late, but no packet is ever early. Half the step
        # between two settings, 3 ms, tells each from its neighbours'.
        assert -100 < delay_us - setting.delay_us < 3_000, (name, setting, delay_us)
        # HTB keeps the rate by a clock of its own. Settings are 8 to 12 % apart.
        assert rate == pytest.approx(setting.rate, rel=0.04), (name, setting)


async def test_a_link_that_was_down_delays_as_before() -> None:
    """The kernel drops what waits at that moment: verdicts on it must not release others."""
    build = Build(
        topology=Topology(kind="linear"), links={"bottleneck": LinkSetting(delay_us=30_000)}
    )
    async with running(build) as lab:
        lab.send(StartPing(ping="p", interval_s=0.01))
        await lab.until(lambda state: "p" in state.traffic)
        rtts = lab.state.of(Ping)["p"].series["rtt_us"]
        await lab.until(lambda _: len(rtts.all()) > 10)
        for down in (True, False):
            lab.send(SetLink(link="r-h2", down=down))
            await lab.run_for(0.5)
        before = len(rtts.all())
        await lab.until(lambda _: len(rtts.all()) > before + 50)
        # A lost one is not a number.
        assert min(each for each in rtts.all() if each == each) >= 60_000
