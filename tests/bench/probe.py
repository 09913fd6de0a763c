"""The time of a sweep of the probe, against ss(8), tc(8) and pyroute2 in the same run."""

import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyroute2 import DiagSocket, IPRoute
from rich.console import Console
from rich.table import Table

from ccplay.lab import inet_diag
from ccplay.lab.netns import Namespace, write_sysctls
from ccplay.lab.probe import Probe
from ccplay.session.launch import ROOTLESS, UNSHARE

SIZES = (2, 20, 200, 2000)
NAMESPACES = 16
INTERFACES = 20
INFO_AND_CONG = 1 << 1 | 1 << 3


def run(console: Console) -> None:
    """Measure in private namespaces and print the tables."""
    user = () if os.geteuid() == 0 else ROOTLESS
    argv = [*UNSHARE, *user, sys.executable, "-m", "tests.bench.probe"]
    result = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True)
    for table in json.loads(result.stdout):
        console.print(_table(**table))


def _table(title: str, aim: str, rows: list[list[str]]) -> Table:
    table = Table(title=f"{title}\naim: {aim}", title_justify="left")
    for head in ("", "ccplay ms", "spread", "peer", "ms", "ratio"):
        table.add_column(head, justify="left" if head in ("", "peer") else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


# --- inside the namespaces ------------------------------------------------------------------


def measure() -> list[dict[str, Any]]:
    """Return the tables; the process must be in its own network namespace."""
    # As in a lab, each node gets its own small TCP hash table.
    write_sysctls({"net.ipv4.tcp_child_ehash_entries": 1024})
    return [sockets(), namespaces(), interfaces()]


def sockets() -> dict[str, Any]:
    """Return the table for 2 to 2,000 sockets in one namespace."""
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    )
    node = make_node("n")
    probe = Probe({"n": node}, [])
    receiver = compiled()
    rows = []
    connections: list[socket.socket] = []
    for size in SIZES:
        connect(node, probe, size - len(connections), connections)
        own = timed(lambda: probe.sweep(0.0))
        samples = probe.sweep(0.0).tcp
        assert samples is not None
        assert len(samples.flow) == size
        for name, peer, times in (
            ("ss -tinHO", lambda: inside(node, "ss", "-tinHO"), 7),
            ("pyroute2", lambda: pyroute2_sockets(node), 5),
        ):
            label = f"{size}: {own[0] / size:.2f} µs each" if times == 7 else ""
            rows.append(compare(label, own, name, timed(peer, times)))
        if receiver is not None:
            rows.append(
                compare("", own, "the kernel's own share", received(node, receiver, "sockets"))
            )

    def send() -> None:
        for connection in connections:
            connection.send(b"x")

    busy = timed(lambda: probe.sweep(0.0), before=send)
    theirs = timed(lambda: inside(node, "ss", "-tinHO"), 7, before=send)
    rows.append(compare(f"{len(connections)} that all sent since", busy, "ss -tinHO", theirs))
    telling = timed_as(connections, probe, b"bbr")
    label = f"{len(connections)} of BBR, with its own: {telling[0] / len(connections):.2f} µs each"
    silent = timed_as(connections, probe, b"reno")
    rows.append(compare(label, telling, "the same of Reno", silent))
    for connection in connections:
        connection.close()
    return {
        "title": "tcp_info of the sockets of a namespace",
        "aim": "under 1.5 µs a socket at 2,000, 7 times cheaper than ss or 0.8x",
        "rows": rows,
    }


def compiled() -> Path | None:
    """Build the program that only receives a dump; return None without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("clang")
    if compiler is None:
        return None
    program = Path(tempfile.mkdtemp()) / "receive"
    source = Path(__file__).with_name("_receive.c")
    argv = [compiler, "-O2", f"-DSTATES={inet_diag._STATES}", "-o", str(program), str(source)]
    subprocess.run(argv, check=True)
    return program


def received(
    node: Namespace, program: Path, what: str, times: int = 30
) -> tuple[float, float, float]:
    """Return the median, least and greatest µs to receive a dump of ``what`` without parsing it."""
    with node.entered():
        done = subprocess.run(
            [program, str(times + 1), what], check=True, stdout=subprocess.PIPE, text=True
        )
    # The first run is left out, as in ``timed``.
    _, *taken = map(float, done.stdout.split())
    return statistics.median(taken), min(taken), max(taken)


def timed_as(
    connections: list[socket.socket], probe: Probe, cc: bytes
) -> tuple[float, float, float]:
    """Return the median, least and greatest µs of a sweep while all connections use ``cc``."""
    for connection in connections:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc)
    # The algorithm's own values are requested from the second sweep on.
    told = [probe.sweep(0.0).own for _ in range(2)][-1]
    assert ("bbr_bw_bps" in told) == (cc == b"bbr")
    return timed(lambda: probe.sweep(0.0))


def namespaces() -> dict[str, Any]:
    """Return the table for two sockets in each of 16 namespaces."""
    nodes = {f"n{number}": make_node(f"n{number}") for number in range(NAMESPACES)}
    probe = Probe(nodes, [])
    connections: list[socket.socket] = []
    for node in nodes.values():
        connect(node, probe, 2, connections)

    def ss() -> None:
        for node in nodes.values():
            inside(node, "ss", "-tinHO")

    rows = [
        compare(f"{NAMESPACES} namespaces", timed(lambda: probe.sweep(0.0)), "ss", timed(ss, 5))
    ]
    return {"title": "two sockets in each namespace", "aim": "under 0.5 ms", "rows": rows}


def interfaces() -> dict[str, Any]:
    """Return the table for the queues under HTB of 20 interfaces in one namespace."""
    node = make_node("r")
    for number in range(INTERFACES):
        for command in (
            f"ip link add v{number} type veth peer name w{number}",
            f"ip link set v{number} up",
            f"tc qdisc add dev v{number} root handle 1: htb default 1",
            f"tc class add dev v{number} parent 1: classid 1:1 htb rate 10mbit",
            f"tc qdisc add dev v{number} parent 1:1 handle 10: pfifo limit 100",
        ):
            inside(node, *command.split())
    probe = Probe({"r": node}, [(f"l{n}", node, f"v{n}") for n in range(INTERFACES)])
    own = timed(lambda: probe.sweep(0.0))
    samples = probe.sweep(0.0).qdisc
    assert samples is not None
    assert samples.kind == ["pfifo"] * INTERFACES
    rows = [
        compare(
            f"{INTERFACES} interfaces",
            own,
            "tc -s -j",
            timed(lambda: inside(node, "tc", "-s", "-j", "qdisc"), 7),
        ),
        compare("", own, "pyroute2", timed(lambda: pyroute2_qdiscs(node), 5)),
    ]
    if (receiver := compiled()) is not None:
        rows.append(compare("", own, "the kernel's own share", received(node, receiver, "queues")))
    return {
        "title": "statistics of the queues of a router",
        "aim": "under 0.15 ms, 8 times cheaper than one tc",
        "rows": rows,
    }


def make_node(name: str) -> Namespace:
    """Start a process with its own network namespace; it ends with this process."""
    process = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE)
    own = Path("/proc/self/ns/net").readlink()
    while Path(f"/proc/{process.pid}/ns/net").readlink() == own:
        time.sleep(0.001)
    KEPT.append(process)
    node = Namespace(name, process.pid)
    inside(node, "ip", "link", "set", "lo", "up")
    return node


KEPT: list[object] = []


def connect(node: Namespace, probe: Probe, count: int, connections: list[socket.socket]) -> None:
    """Open connections with ``count`` ends in total, each tracked by the probe."""
    with node.entered(), socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        for _ in range(count // 2):
            near = socket.create_connection(address)
            far, (_, port) = server.accept()
            for each in (near, far):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
            near.send(bytes(100))
            for sport, dport in ((port, address[1]), (address[1], port)):
                probe.track(f"{len(connections)}", node.name, sport=sport, dport=dport)
                connections.append(near if sport == port else far)


def inside(node: Namespace, *argv: str) -> None:
    """Run a program in the node's namespace."""
    with node.entered():
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


def pyroute2_sockets(node: Namespace) -> None:
    """Read all sockets of a node with pyroute2."""
    with node.entered(), DiagSocket() as diag:
        diag.get_sock_stats(family=socket.AF_INET, extensions=INFO_AND_CONG)


def pyroute2_qdiscs(node: Namespace) -> None:
    """Read all queue disciplines of a node with pyroute2."""
    with node.entered(), IPRoute() as routes:
        list(routes.get_qdiscs())


def timed(
    work: Callable[[], object], times: int = 30, before: Callable[[], object] = lambda: None
) -> tuple[float, float, float]:
    """Return the median, least and greatest µs of ``work``, without its first run.

    ``before`` is called before each run and not timed.
    """
    work()
    taken = []
    for _ in range(times):
        before()
        begun = time.perf_counter()
        work()
        taken.append((time.perf_counter() - begun) * 1e6)
    return statistics.median(taken), min(taken), max(taken)


def compare(
    label: str, own: tuple[float, float, float], name: str, peer: tuple[float, float, float]
) -> list[str]:
    """Return a table's row that compares the probe's times with a peer's."""
    spread = f"{own[1] / 1000:.2g}-{own[2] / 1000:.2g}"
    return [label, show(own[0]), spread, name, show(peer[0]), f"{peer[0] / own[0]:.3g}x"]


def show(microseconds: float) -> str:
    """Return microseconds as text in milliseconds."""
    return f"{microseconds / 1000:.3g}"


if __name__ == "__main__":
    print(json.dumps(measure()))
