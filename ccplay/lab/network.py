"""Nodes, cables, addresses and routes: built with Mininet, configured by netlink in batches.

Mininet creates the nodes and records their links; addresses, routes and interfaces are sent to the
kernel by netlink, because a shell command for each would take ten times as long. Neighbour tables
are filled in advance, so no ARP request is ever in a queue under study. Datagrams then prove that
every host reaches every other.

Every router has a route to every subnet over the next hops of all shortest paths; the kernel
chooses among them by a hash of addresses and ports, so all packets of a connection take one path.
When a cable goes down, every node receives the routes of the remaining network.
"""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import subprocess
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from itertools import groupby
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from ccplay.errors import CommandError, LabError
from ccplay.lab import rtnl
from ccplay.lab.import_stubs import distutils, in_place_of
from ccplay.lab.inet_diag import destroy_connections
from ccplay.lab.netns import Namespace, write_sysctls
from ccplay.lab.rtnl import NetlinkError, NetlinkSocket, is_up
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


def prove_reachability(
    network: Network, namespaces: Mapping[str, Namespace], routing: Routing
) -> None:
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
    "net.ipv4.tcp_child_ehash_entries": 1024
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
    "net.ipv4.route.min_pmtu": 296
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

    def end_connections(self) -> None:
        """Abort what hosts have not delivered yet: it would outlive the lab."""
        for host in self.network.hosts:
            with suppress(LabError, OSError):
                destroy_connections(self.namespaces[host])

    def close(self) -> None:
        """End the nodes and with them every interface; both end with the lab's process, too."""
        self.routing.close()
        for node in self._mininet.hosts:
            node.terminate()


def build_network(
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
        with NetlinkSocket() as routes:
            routes.request(_cables(network, namespaces), "can't make the links")
        on_step(steps[2], 2, len(steps))
        for name, namespace in namespaces.items():
            with NetlinkSocket(namespace) as routes:
                # A kernel without it can't redirect packets; what needs that reports it.
                with suppress(NetlinkError):
                    routes.request(routing.redirections(name), "clsact")
                routes.request(routing.configuration(name), f"can't configure node {name}")
        lacking = routing.seed(seed)
        on_step(steps[3], 3, len(steps))
        prove_reachability(network, namespaces, routing)
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


_CHOICE = {
    # Hash addresses, protocol and ports. Policy 1 does so too, but prefers the random hash of a
    # packet's own socket, which no lookup knows and a timeout changes (fib_multipath_hash,
    # sk_rethink_txhash); policy 3 never uses that.
    "net.ipv4.fib_multipath_hash_fields": 0x37,
    "net.ipv4.fib_multipath_hash_policy": 3,
}
_CHOICE_AT_RANDOM = {"net.ipv4.fib_multipath_hash_policy": 1}
_HASH_SEED = "net.ipv4.fib_multipath_hash_seed"

_OWN_TABLES = 1000
"""Base number of the links' own routing tables, to which the index of a link's interface is
added."""

Routes: TypeAlias = dict[str | None, list[str]]
"""Names of the links to each subnet; the key None stands for the default route."""


class Routing:
    """The routes of all nodes, read and changed through netlink sockets that ``close`` closes."""

    def __init__(self, network: Network, namespaces: dict[str, Namespace]) -> None:
        """Prepare the routes of ``network``, which lists all cables, whether up or down."""
        self.network = network
        self.knows_paths = True
        """Whether the kernel can report the path of a connection if there are several."""
        self.on_new_routes: Callable[[str], object] = lambda _: None
        """Function that receives the name of a node whose routes were made anew: other settings of
        its routes are lost."""
        self._namespaces = namespaces
        self.remaining = network
        """The network without the cables that are down."""
        self._down: set[str] = set()
        self._installed: dict[str, Routes] = {}
        self._indices: dict[str, dict[str, int]] = {}
        self._sockets: dict[str, NetlinkSocket] = {}

    def close(self) -> None:
        """Close the sockets."""
        for each in self._sockets.values():
            each.close()
        self._sockets.clear()

    def seed(self, seed: int) -> str:
        """Make routers choose a path for each connection by a hash that depends on ``seed``.

        Returns a message about what the kernel can't do; empty if it can do everything.
        """
        lacking = ""
        for router in self._choosing():
            namespace = self._namespaces[router]
            try:
                namespace.sysctl(_CHOICE)
            except LabError as error:
                namespace.sysctl(_CHOICE_AT_RANDOM)
                self.knows_paths = False
                return f"flows take one of several paths at random, unknown which: {error}"
            # With one seed for all, a second router would choose as the first did and leave paths
            # unused. 0 would mean a random seed.
            own = zlib.crc32(f"{seed}/{router}".encode()) or 1
            try:
                namespace.sysctl({_HASH_SEED: own})
            except LabError as error:
                lacking = f"which of several paths a flow takes differs from run to run: {error}"
        return lacking

    def _choosing(self) -> list[str]:
        """Return the routers that have several next hops to some host."""
        return [
            router
            for router in self.network.routers
            if any(len(self.network.next_hops(router, host)) > 1 for host in self.network.hosts)
        ]

    # --- requests ---------------------------------------------------------------------------

    def configuration(self, node: str) -> Iterable[bytes]:
        """Yield the requests that set a new node's interfaces, addresses, neighbours and routes."""
        yield rtnl.up(1)
        for link in self._own(node):
            yield rtnl.address(self._index(link), link.address)
            yield from self._connect(link)
        self._installed[node] = self._routes(node)
        for subnet, links in self._installed[node].items():
            yield self._route(subnet, links)

    def redirections(self, node: str) -> Iterable[bytes]:
        """Yield the requests that prepare a new node's interfaces for redirections."""
        return (rtnl.clsact(self._index(link)) for link in self._own(node))

    def _connect(self, link: Link) -> Iterable[bytes]:
        """Yield the requests that bring a link's sending end up and add the neighbour opposite."""
        yield rtnl.up(self._index(link))
        far = self.network.opposite(link)
        yield rtnl.neighbour(self._index(link), far.address, mac(far))

    def _route(self, subnet: str | None, links: list[str]) -> bytes:
        return rtnl.route(subnet, [self._hop(self.network.link(name)) for name in links])

    def _hop(self, link: Link) -> tuple[str, int]:
        """Return the gateway at the far end of a link, and the index of the link's interface."""
        return self.network.opposite(link).address, self._index(link)

    def _routes(self, node: str) -> Routes:
        """Return the links through which a node reaches each subnet in the remaining network."""
        network = self.remaining
        if len(self._own(node)) == 1:
            return {None: [link.name for link in network.links if link.src == node]}
        found: Routes = {}
        for there, back in network.cables:
            if node in (there.src, there.dst):
                continue
            near = min((there, back), key=lambda end: network.hops(node, end.src))
            if links := network.next_hops(node, near.src):
                subnet = f"{there.address.rpartition('.')[0]}.0"
                found[subnet] = [link.name for link in links]
        return found

    def _own(self, node: str) -> list[Link]:
        return [link for link in self.network.links if link.src == node]

    def _index(self, link: Link) -> int:
        """Return the index of the interface through which packets leave on a link."""
        if link.src not in self._indices:
            with self._namespaces[link.src].entered():
                found = {name: index for index, name in socket.if_nameindex()}
            self._indices[link.src] = found
        return self._indices[link.src][link.interface]

    # --- cables that go down ----------------------------------------------------------------

    def set_down(self, link: Link, *, down: bool) -> None:
        """Take both ends of a link's cable down or bring them up, and update all routes.

        Raises ``LabError`` if the kernel refuses, or if the ends do not change; then all is undone.
        """
        if down == (link.name in self._down):
            return
        try:
            self._set_down(link, down=down)
        except (NetlinkError, LabError) as error:
            with contextlib.suppress(NetlinkError, LabError):
                self._set_down(link, down=not down)
            raise LabError(
                f"link {link.name} can't go {'down' if down else 'up'}: {error}"
            ) from error

    def _set_down(self, link: Link, *, down: bool) -> None:
        ends = (link, self.network.opposite(link))
        names = {each.name for each in ends}
        self._down = self._down - names if not down else self._down | names
        remaining = [each for each in self.network.links if each.name not in self._down]
        self.remaining = replace(self.network, links=remaining)
        for end in ends:
            wanted = [rtnl.down(self._index(end))] if down else self._connect(end)
            self._socket(end.src).request(wanted, f"node {end.src}")
        for node in self._namespaces:
            if self._reroute(node, afresh=node in (link.src, link.dst)):
                self.on_new_routes(node)
        if any(self.is_down(end) != down for end in ends):
            raise LabError(f"it stays {'up' if down else 'down'}")

    def is_down(self, link: Link) -> bool:
        """Return whether the interface that sends on a link is down; netdevice(7)."""
        return not is_up(self._namespaces[link.src], link.interface)

    def _reroute(self, node: str, *, afresh: bool) -> bool:
        """Replace a node's routes with those of the remaining network; return whether any is new.

        ``afresh`` installs unchanged routes, too, because the kernel itself removes routes through
        an interface that goes down.
        """
        before, now = (
            self._installed[node],
            {to: via for to, via in self._routes(node).items() if via},
        )
        routes = self._socket(node)
        for subnet in before.keys() - now.keys():
            try:
                routes.request([rtnl.unroute(subnet)], f"node {node}")
            except NetlinkError as error:
                if error.errno != errno.ESRCH:
                    raise
        changed = now if afresh else {to: via for to, via in now.items() if before.get(to) != via}
        wanted = (rtnl.reroute(self._route(subnet, links)) for subnet, links in changed.items())
        routes.request(wanted, f"node {node}")
        self._installed[node] = now
        return bool(changed)

    # --- paths ------------------------------------------------------------------------------

    def path(
        self,
        ends: tuple[str, str],
        ports: tuple[int, int],
        protocol: int = socket.IPPROTO_TCP,
        addresses: tuple[str, str] | None = None,
    ) -> list[Link]:
        """Return the links that the packets of a connection take from one host to the other.

        The kernel reports the choice of each node with several next hops. The list is empty if
        there is no path. ``addresses`` are those of the connection if its hosts have several; an
        address whose cable is down can't be reached, whatever other links its host has.
        """
        src, dst = ends
        network, taken, node = self.remaining, list[Link](), src
        if addresses is None:
            addresses = self.network.address(src), self.network.address(dst)
        elif not {link.address for link in network.links}.issuperset(addresses):
            return []
        while node != dst:
            hops = network.next_hops(node, dst)
            if len(hops) > 1:
                arrival = self._index(network.opposite(taken[-1])) if taken else 0
                request = rtnl.lookup(addresses, arrival, protocol, *ports)
                index = rtnl.interface_of(self._socket(node).ask(request))
                hops = [link for link in hops if self._index(link) == index]
            if not hops:
                return []
            taken.append(hops[0])
            node = hops[0].dst
        return taken

    def steer(
        self,
        link: Link,
        ends: tuple[str, str],
        protocol: int,
        ports: tuple[range | None, int | None],
        *,
        on: bool,
    ) -> None:
        """Send some packets out on a link regardless of the hash, or stop doing so.

        ``ends`` are their source and destination hosts; ``ports`` are as in ``requests.rule``.
        Raises ``LabError`` if the kernel refuses.
        """
        src, dst = ends
        table = _OWN_TABLES + self._index(link)
        addresses = self.network.address(src), self.network.address(dst)
        wanted = [rtnl.rule(table, addresses, protocol, ports, remove=not on)]
        if on:
            wanted.insert(0, rtnl.only_route(table, self._hop(link)[0]))
        try:
            self._socket(link.src).request(wanted, f"node {link.src}")
        except NetlinkError as error:
            raise LabError(f"packets can't be sent over link {link.name}: {error}") from error

    def where_it_ends(self, src: str, dst: str) -> str:
        """Return a message about where packets from ``src`` to ``dst`` get lost, and why."""
        addresses = self.network.address(src), self.network.address(dst)
        node, arrival, seen = src, 0, list[str]()
        while node != dst:
            if node in seen:
                return f"its packets loop between {', '.join(seen[seen.index(node) :])}"
            seen.append(node)
            try:
                answer = self._socket(node).ask(rtnl.lookup(addresses, arrival))
            except OSError as error:
                return f"{node} does not forward: {error.strerror}"
            index = rtnl.interface_of(answer)
            link = next((each for each in self._own(node) if self._index(each) == index), None)
            if link is None:
                return f"{node} sends its packets to none of its links"
            if self.is_down(link) or self.is_down(self.network.opposite(link)):
                return f"link {link.name} is down"
            node, arrival = link.dst, self._index(self.network.opposite(link))
        return f"every node of {' → '.join([*seen, dst])} has a route, yet packets get lost"

    def _socket(self, node: str) -> NetlinkSocket:
        if node not in self._sockets:
            self._sockets[node] = NetlinkSocket(self._namespaces[node])
        return self._sockets[node]


def mac(link: Link) -> str:
    """Return the Ethernet address of the interface through which packets leave on a link."""
    return "02:00:" + ":".join(f"{int(part):02x}" for part in link.address.split("."))
