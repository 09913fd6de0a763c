"""Builds a network with Mininet, and proves that every host reaches every other.

Mininet creates the nodes and records their links; addresses, routes and interfaces are sent to the
kernel by netlink in batches, because a shell command for each would take ten times as long.
Neighbour tables are filled in advance, so no ARP request is ever in a queue under study.
"""

from __future__ import annotations

import select
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from itertools import groupby
from typing import Any, TypeAlias

import msgspec

from ccplay.errors import CommandError, LabError
from ccplay.lab.network import rtnl
from ccplay.lab.network.import_stubs import distutils, in_place_of
from ccplay.lab.network.netns import Namespace, write_sysctls
from ccplay.lab.network.routing import Routing, mac
from ccplay.lab.network.rtnl import RouteSocket
from ccplay.model.network import Link, Network

# --- proves with datagrams that every host reaches every other, before links are shaped -----------
# Without delays and queues a datagram arrives before the call that sends it returns, or shortly
# after, so that all pairs of 16 hosts take some milliseconds.

_PORT = 9
"""UDP port on which hosts receive the datagrams: that of the discard protocol (RFC 863)."""

_PATIENCE_S = 2.0
"""Longest time in seconds that the proof may take, which a busy machine may need."""

_AGAIN_S = 0.02
"""Seconds before missing datagrams are sent again. The kernel discards packets for some
milliseconds after both ends of a cable are up."""

_Pairs: TypeAlias = set[tuple[str, str]]


def prove(network: Network, namespaces: Mapping[str, Namespace], routing: Routing) -> None:
    """Send a datagram from every host to every other to which it has a path.

    Raises ``LabError`` that names a pair without connectivity and where its packets get lost.
    """
    missing = {
        (src, dst)
        for src in network.hosts
        for dst in network.hosts
        if src != dst and network.hops(src, dst) <= len(network.links)
    }
    with ExitStack() as stack:
        sockets = {}
        for host in network.hosts:
            each = namespaces[host].socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            sockets[host] = stack.enter_context(each)
            each.bind((network.address(host), _PORT))
        deadline = time.monotonic() + _PATIENCE_S
        while missing and time.monotonic() < deadline:
            missing -= _try(network, sorted(missing), sockets)
    if missing:
        src, dst = min(missing)
        count = len(missing) - 1
        more = f" (and {count} other pair{'s' if count > 1 else ''} of hosts)" if count else ""
        raise LabError(f"{src} does not reach {dst}{more}: {routing.where_it_ends(src, dst)}")


def _try(
    network: Network, pairs: Iterable[tuple[str, str]], sockets: Mapping[str, socket.socket]
) -> _Pairs:
    """Send a datagram for each pair, and return the pairs whose datagrams arrived.

    ``pairs`` are sorted by their source.
    """
    hosts = {network.address(host): host for host in network.hosts}
    arrived: _Pairs = set()
    # Receivers are read after each sender, so that no buffer holds more than one round.
    for src, destinations in groupby(pairs, lambda pair: pair[0]):
        for _, dst in destinations:
            # Fails if the host has no route, or a router rejected an earlier datagram.
            with suppress(OSError):
                sockets[src].sendto(b"?", (network.address(dst), _PORT))
        arrived |= _received(hosts, sockets)
    if not arrived.issuperset(pairs):
        select.select([*sockets.values()], [], [], _AGAIN_S)
        arrived |= _received(hosts, sockets)
    return arrived


def _received(hosts: Mapping[str, str], sockets: Mapping[str, socket.socket]) -> _Pairs:
    """Return the pairs whose datagrams have arrived."""
    found: _Pairs = set()
    for dst, each in sockets.items():
        while True:
            try:
                _, (address, _) = each.recvfrom(16)
            except BlockingIOError:
                break
            except OSError:
                # An ICMP error about a datagram that this host sent.
                continue
            found.add((hosts.get(address, ""), dst))
    return found


# --- builds a network with Mininet; no other module of the lab's process imports it ---------------

_LAB_SYSCTLS = {
    # Gives each node its own TCP hash table: a dump then walks 1024 buckets, not all the machine's.
    "net.ipv4.tcp_child_ehash_entries": 1024,
}

_NODE_SYSCTLS = {
    "net.ipv6.conf.all.disable_ipv6": 1,
    "net.ipv6.conf.default.disable_ipv6": 1,
    "net.ipv4.conf.all.rp_filter": 0,
    "net.ipv4.conf.default.rp_filter": 0,
    "net.ipv4.conf.all.accept_redirects": 0,
    "net.ipv4.conf.all.send_redirects": 0,
    "net.ipv4.conf.default.send_redirects": 0,
    # What one connection learns (ssthresh, RTT) must not affect the next: runs must be repeatable.
    "net.ipv4.tcp_no_metrics_save": 1,
    # When a lab is killed, unacknowledged data keeps its sockets, their namespace and their
    # algorithm alive: by default for 100 s (8 retransmissions), with this for a few seconds.
    "net.ipv4.tcp_orphan_retries": 3,
    # 1 Gbit/s for 200 ms is 25 MB; the kernel counts its overhead too, so allow more than twice.
    "net.ipv4.tcp_rmem": "4096 131072 67108864",
    "net.ipv4.tcp_wmem": "4096 16384 67108864",
}

_PATH_MTU = {
    # Linux ignores routers that report an MTU smaller than this; a link may have 296.
    "net.ipv4.route.min_pmtu": 296,
}


class BuiltNetwork(msgspec.Struct, frozen=True):
    """A built network: its plan, the namespace of every node, and its routes."""

    network: Network
    namespaces: dict[str, Namespace]
    routing: Routing
    lacking: str
    """Message about what the kernel lacks to choose among several paths; empty if nothing."""
    _mininet: Any

    def namespace(self, node: str) -> Namespace:
        """Return the namespace of a node. Raises ``CommandError`` if there is none."""
        if node not in self.namespaces:
            raise CommandError(f"no node {node!r}; there are: {', '.join(self.namespaces)}")
        return self.namespaces[node]

    def receiving_interface(self, link: Link) -> str:
        """Return the interface of ``link.dst`` on which the packets of a link arrive."""
        return self.network.opposite(link).interface

    def close(self) -> None:
        """End the nodes and with them every interface; both end with the lab's process, too."""
        self.routing.close()
        for node in self._mininet.hosts:
            node.terminate()


def build(
    network: Network, on_step: Callable[[str, int, int], None], seed: int = 1
) -> BuiltNetwork:
    """Build ``network`` inside the namespaces of the calling process.

    ``on_step`` receives the current step, the number of steps done, and their total. ``seed``
    decides which of several paths connections take. Raises ``LabError`` if the kernel refuses, a
    program is missing, or a host can't reach another.
    """
    steps = ("nodes", "links", "addresses", "paths")
    try:
        on_step(steps[0], 0, len(steps))
        write_sysctls(_LAB_SYSCTLS)
        mininet = _start_mininet(network)
        namespaces = {host.name: Namespace(host.name, host.pid) for host in mininet.hosts}
        on_step(steps[1], 1, len(steps))
        for namespace in namespaces.values():
            namespace.sysctl(_NODE_SYSCTLS)
            # In older kernels it is not per namespace; segments too long for such a link are then
            # fragmented.
            with suppress(LabError):
                namespace.sysctl(_PATH_MTU)
        for router in network.routers:
            namespaces[router].sysctl({"net.ipv4.ip_forward": 1})
        routing = Routing(network, namespaces)
        with RouteSocket() as routes:
            routes.request(_cables(network, namespaces), "can't make the links")
        on_step(steps[2], 2, len(steps))
        for name, namespace in namespaces.items():
            with RouteSocket(namespace) as routes:
                routes.request(routing.configuration(name), f"can't configure node {name}")
        lacking = routing.seed(seed)
        on_step(steps[3], 3, len(steps))
        prove(network, namespaces, routing)
    except OSError as error:
        raise LabError(f"the network can't be built: {error}") from error
    on_step("done", len(steps), len(steps))
    return BuiltNetwork(network, namespaces, routing, lacking, mininet)


def import_mininet() -> None:
    """Import Mininet without modules that a lab does not use."""
    with in_place_of(distutils()):
        from mininet import net  # noqa: F401, PLC0415 - only labs pay for it


def _start_mininet(network: Network) -> Any:
    """Create the nodes and record the links with Mininet, and return its ``Mininet``."""
    import_mininet()
    from mininet import link, net, node  # noqa: PLC0415 - the stubs come first

    class LabNode(node.Node):  # type: ignore[misc]
        """A namespace held open by ``cat`` rather than by an interactive shell."""

        @classmethod
        def checkSetup(cls) -> None:  # noqa: N802 - Mininet's name
            """Check nothing: the lab's capabilities list the required programs."""

        def startShell(self, mnopts: str | None = None) -> None:  # noqa: ARG002, N802
            """Start the process; ``await_namespace`` waits for its namespace."""
            # Without mnexec's -c, which closes every possible descriptor; Popen has done so.
            self.shell = self._popen(
                ["mnexec", "-dn", "cat"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            self.pid = self.shell.pid

        def await_namespace(self) -> None:
            """Wait until mnexec has created the namespace and become ``cat``."""
            try:
                self.shell.stdin.write(b"\n")
                self.shell.stdin.flush()
            except BrokenPipeError:
                pass
            if not self.shell.stdout.readline():
                reason = self.shell.stderr.read().decode(errors="replace").strip()
                raise LabError(f"node {self.name}: mnexec failed: {reason}")

        def terminate(self) -> None:
            """End the process that holds the namespace."""
            self.shell.kill()
            self.shell.communicate()

    class NotedLink(link.Link):  # type: ignore[misc]
        """A link that Mininet only records; the kernel receives all links in one batch."""

        @classmethod
        def makeIntfPair(cls, *_: Any, **__: Any) -> None:  # noqa: N802
            """Create nothing: the batch creates all interfaces."""

    class NotedInterface(link.Intf):  # type: ignore[misc]
        """An interface that Mininet only records."""

        def config(self, **_: Any) -> dict[str, Any]:
            """Configure nothing: batches configure all interfaces."""
            return {}

    # Skip Mininet.init(), which raises limits of the whole machine (fs.file-max, kernel.pty.max).
    net.Mininet.inited = True
    mininet = net.Mininet(
        topo=None, controller=None, host=LabNode, link=NotedLink, intf=NotedInterface, build=False
    )
    for each in network.nodes:
        mininet.addHost(each.name, ip=each.address)
    for host in mininet.hosts:
        host.await_namespace()
    for there, back in network.cables:
        mininet.addLink(there.src, there.dst, intfName1=there.interface, intfName2=back.interface)
    return mininet


def _cables(network: Network, namespaces: dict[str, Namespace]) -> Iterable[bytes]:
    """Yield the request for the veth pair of every cable, with each end in its node."""
    for ends in network.cables:
        here, far = ((end.interface, mac(end), namespaces[end.src].pid) for end in ends)
        yield rtnl.cable(here, far)
