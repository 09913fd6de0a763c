"""A long-lived transfer over Multipath TCP (RFC 8684), managed by the lab or by the kernel.

Its programs are ``transfer``. The sender's host leaves path management to the lab
(``net.mptcp.path_manager``, ``pm_type`` before Linux 6.15), which requests subflows by generic
netlink, from addresses and source ports that ``path_manager`` has chosen by route lookups. So ports
and names are known beforehand; under the kernel's own path manager, subflows are found as they
open. Subflows are tracked and traced like any connection, and ``lab.connection`` combines theirs
into one ``tcp_info`` for the flow, with the bytes that inet_diag reports of the MPTCP connection.
In the state a subflow is a ``Flow`` of kind ``subflow``, in ``flows`` but not in ``streams``, so no
sum counts it twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

from ccplay.errors import CcplayError, CommandError, UnsupportedError
from ccplay.lab.traffic import congestion, path_manager
from ccplay.lab.traffic.gate import GateEntry
from ccplay.lab.traffic.path_manager import CANDIDATES, Ends, PathManager, choose
from ccplay.lab.traffic.program import Hold, script_argv
from ccplay.lab.traffic.site import Site
from ccplay.model.base import Event
from ccplay.model.network import Network
from ccplay.traffic.flow import KERNEL_PATH_MANAGERS, StartFlow, conflict
from ccplay.traffic.flow.subflows import Subflows
from ccplay.traffic.flow.tcp import RunningFlow

_SCRIPT = Path(__file__).with_name("transfer.py")

_MOST = 8
"""Largest number of subflows of a connection besides the first (``MPTCP_PM_ADDR_MAX``)."""


class RunningMptcpFlow(RunningFlow):
    """A running flow over several paths: one connection with several subflows."""

    hold = Hold("connect")
    program = _SCRIPT.stem

    def __init__(self, command: StartFlow, site: Site, emit: Callable[[Event], None]) -> None:
        """Prepare a flow; ``emit`` receives its events."""
        super().__init__(command, site, emit)
        # None of them belongs to other traffic; the subflows send from some of them.
        self.sports = site.ports.senders(CANDIDATES)
        self._by_kernel = command.path_manager in KERNEL_PATH_MANAGERS
        self._ends = self._choose()
        self._cc = command.cc
        self._undo = ExitStack()

    async def start(self, entry: GateEntry) -> None:
        """Start both programs; ``FlowStarted`` follows when the first subflow is open.

        Raises ``LabError`` if a program does not start, ``UnsupportedError`` if the kernel has no
        MPTCP.
        """
        try:
            accepting = PathManager(self.receiver)
            self._undo.callback(accepting.close)
            accepting.accept(_MOST)
            if self._by_kernel:
                self._leave_to_kernel(accepting)
            self._subflows = Subflows(
                self.name,
                self.sender,
                self._probe,
                emit=self._emit,
                clock=self._clock,
                on_open=self._align,
                by_kernel=self._by_kernel,
            )
            self._undo.callback(self._subflows.close)
            self._undo.callback(self._subflows.untrack)
        except OSError as error:
            raise UnsupportedError(f"flow {self.name}: no MPTCP: {error.strerror}") from error
        await super().start(entry)

    def _leave_to_kernel(self, accepting: PathManager) -> None:
        """Set the limits of the kernel's path manager; make all but the first address endpoints."""
        opening = PathManager(self.sender)
        self._undo.callback(opening.close)
        opening.limit(self._command.subflows - 1)
        at_receiver = self._command.path_manager == "kernel-signal"
        manager, host = (accepting, self.dst) if at_receiver else (opening, self.src)
        others = _addresses(self._site.network, host)[1:]
        for address in others:
            manager.add_endpoint(address, self._command.path_manager)
        if not others and self._command.subflows > 1:
            text = (
                f"flow {self.name} gets no further subflow: {host} has one address, and the "
                "kernel's path manager opens one subflow per address; ndiffports needs only ports"
            )
            self._log("warning", text)

    def watch(self) -> None:
        """Process a sweep: subflows may have opened or ended."""
        super().watch()
        if self._reported and not self._over:
            self._subflows.look()

    def connections(self) -> Iterable[tuple[str, int, tuple[str, str] | None]]:
        """Return name, source port and addresses of each open subflow."""
        return [(name, ends.sport, (ends.src, ends.dst)) for name, ends in self._subflows.open]

    def switch(self, cc: str) -> None:
        """Change the congestion control of all subflows, including later ones."""
        super().switch(cc)
        self._cc = cc

    def _align(self) -> None:
        """Set the connection's algorithm on a new subflow, which begins with that of its route."""
        if self._cc is not None:
            with suppress(CcplayError):
                ports = [(self.sports[0], self.port)]
                congestion.switch(self._programs[-1].pid, ports, self._cc)

    def _track(self) -> None:
        self._subflows.track(self._ends)

    def _untrack(self) -> None:
        self._undo.close()

    def _choose(self) -> list[Ends]:
        command, network = self._command, self._site.network
        addresses = _addresses(network, self.src), _addresses(network, self.dst)
        return choose(
            command.path_manager,
            addresses,
            (self.sports, self.port),
            1 if self._by_kernel else command.subflows,
            lambda ends: self._site.path(self.src, self.dst, ends),
        )

    def _commands(self, address: str) -> tuple[list[str], list[str]]:
        command = self._command
        cc = congestion.require(command.cc) if command.cc else "-"
        ports = str(self.port), str(self.sports[0])
        manager = "kernel" if self._by_kernel else "userspace"
        sending = ["send", address, *ports, cc, command.scheduler or "-", manager]
        return script_argv(_SCRIPT, "receive", ports[0]), script_argv(_SCRIPT, *sending)


def _addresses(network: Network, host: str) -> list[str]:
    """Return the addresses of a host's links, beginning with the host's own address."""
    every = (link.address for link in network.links if link.src == host)
    return list(dict.fromkeys([network.address(host), *every]))


def require(command: StartFlow) -> None:
    """Raise ``UnsupportedError`` or ``CommandError`` if a flow can't use MPTCP as requested."""
    what = f"flow {command.flow}"
    if any(problem := conflict(command)):
        raise CommandError(f"{what}: {': '.join(problem)}")
    if not command.mptcp:
        return
    feature = path_manager.connections()
    if not feature.available:
        raise UnsupportedError(f"{what}: no mptcp: {feature.reason}; {feature.remedy}")
    names = [each.name for each in path_manager.schedulers()]
    if command.scheduler is not None and command.scheduler not in names:
        there = ", ".join(names)
        raise UnsupportedError(
            f"{what}: scheduler {command.scheduler!r} is not in this kernel (has: {there})"
        )
