"""What tests of fabrics do inside their namespaces; each case returns plain JSON."""

import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ccplay.errors import LabError
from ccplay.lab.network import BuiltNetwork, build_network, prove_reachability
from ccplay.lab.rtnl import carried
from ccplay.model.network import Topology
from ccplay.model.topologies import plan

PORT = 5000
SOURCES = range(10_000, 10_064)


@contextmanager
def built(kind: str, parameters: dict[str, int], seed: int = 1) -> Iterator[BuiltNetwork]:
    network = plan(Topology(kind=kind, parameters=parameters))
    made = build_network(network, lambda *_: None, seed)
    try:
        yield made
    finally:
        made.close()


async def stands(kind: str, parameters: dict[str, int]) -> int:
    """Build a network, which proves that all pairs reach each other; return the number of pairs."""
    with built(kind, parameters) as made:
        count = len(made.network.hosts)
        return count * (count - 1)


async def broken(what: str) -> str:
    """Break something in a running leaf-spine; return what is reported."""
    with built("leaf-spine", {"leaves": 2, "spines": 1, "hosts": 1}) as made:
        routing = made.routing
        if what == "cable":
            routing.set_down(made.network.link("leaf1->spine1"), down=True)
        elif what == "forwarding":
            made.namespace("spine1").sysctl({"net.ipv4.ip_forward": 0})
        try:
            prove_reachability(made.network, made.namespaces, routing)
        except LabError as error:
            return str(error)
        return ""


async def spread(seed: int) -> dict[str, Any]:
    """Open 64 connections over two spines; return the counts, and those on an unpredicted path."""
    with built("leaf-spine", {"leaves": 2, "spines": 2, "hosts": 1}, seed) as made:
        network, (src, dst) = made.network, made.network.hosts
        listening = made.namespace(dst).socket(socket.AF_INET, socket.SOCK_STREAM)
        with listening:
            listening.bind((network.address(dst), PORT))
            listening.listen(len(SOURCES))
            taken, surprises = Counter[str](), []
            for sport in SOURCES:
                foretold = made.routing.path((src, dst), (sport, PORT))[2].src
                before = _forwarded(made)
                with made.namespace(src).socket(socket.AF_INET, socket.SOCK_STREAM) as sender:
                    sender.bind((network.address(src), sport))
                    sender.settimeout(10)
                    sender.connect((network.address(dst), PORT))
                    grown = _forwarded(made) - before
                # Its answers may come back by the other spine: those arrive at another interface.
                (spine,) = grown
                taken[spine] += 1
                if spine != foretold:
                    surprises.append(sport)
        return {"taken": dict(sorted(taken.items())), "surprises": surprises}


async def paths(kind: str, parameters: dict[str, int], seed: int) -> list[str]:
    """Return the kernel's prediction of the path of each of 64 connections."""
    with built(kind, parameters, seed) as made:
        hosts = made.network.hosts
        ends = hosts[0], made.network.peer(hosts[0])
        every = [made.routing.path(ends, (sport, PORT)) for sport in SOURCES]
        return [" ".join(link.dst for link in path) for path in every]


def _forwarded(made: BuiltNetwork) -> Counter[str]:
    """Return the number of packets that each spine received from the sender's leaf."""
    return Counter(
        {
            spine: carried(made.namespace(spine))[link.interface][2]
            for spine in ("spine1", "spine2")
            for link in [made.network.link(f"{spine}->leaf1")]
        }
    )


async def detour() -> dict[str, Any]:
    """Take cables of a leaf-spine down and up again; return the paths after each change."""
    with built("leaf-spine", {"leaves": 2, "spines": 2, "hosts": 1}) as made:
        network, routing = made.network, made.routing
        ends = ("h1", "h2")

        def spines() -> list[str]:
            paths = [routing.path(ends, (sport, PORT)) for sport in SOURCES]
            return sorted({path[2].src if path else "" for path in paths})

        def reached() -> str:
            try:
                prove_reachability(network, made.namespaces, routing)
            except LabError as error:
                return str(error)
            return "all"

        seen = []
        for cable, down in (
            # A cable that the sender's leaf has nothing to do with: it must learn of it.
            ("spine1->leaf2", True),
            ("spine1->leaf2", False),
            ("leaf1->spine2", True),
            ("leaf1->spine1", True),
            ("leaf1->spine2", False),
            ("leaf1->spine1", False),
            ("h1->leaf1", True),
            ("h1->leaf1", False),
        ):
            routing.set_down(network.link(cable), down=down)
            seen.append([f"{cable} {'down' if down else 'up'}", spines(), reached()])
        return {"seen": seen}
