"""A gate: programs of one moment wait in front of it, ready to send, and pass it together.

Each needs a core for some 0.4 ms until it has sent all that its window allows, so with two cores
the last of 64 would begin 13 ms after the first. Therefore the lab writes the first segment to
each connection itself, through a duplicate of the program's socket, before it lets any of them go.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
from collections.abc import Callable, Collection, Generator, Sequence

from ccplay.errors import CcplayError
from ccplay.lab.network.netns import Namespace
from ccplay.lab.traffic.holding import Held, Hold
from ccplay.lab.traffic.program import Program, ports_of, sockets_of

_PAUSE_EACH_S, _LONGEST_PAUSE_S = 0.0003, 0.005
"""How long the lab does nothing about programs that it has let go: for each, and at most."""


class Gate:
    """Closed until ``open``; what comes later passes at once."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.opened: float | None = None
        """Moment at which it was opened; None while it is closed."""
        self._entries: list[Entry] = []
        self._open, self._change = asyncio.Event(), asyncio.Event()

    def entry(self) -> Entry:
        """Return the way through it for one command."""
        self._entries.append(Entry(self))
        return self._entries[-1]

    async def wait(self, within_s: float, grace_s: float) -> None:
        """Wait until every entry is ready or given up, but no longer than ``within_s``.

        For programs that do not even open their connections yet it waits ``grace_s`` longer.
        """
        await self._wait(within_s, lambda each: each.ready)
        await self._wait(grace_s, lambda each: each.ready or each.connects)

    async def _wait(self, within_s: float, enough: Callable[[Entry], bool]) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not all(enough(each) for each in self._entries):
                    self._change.clear()
                    await self._change.wait()

    def open(self) -> None:
        """Let all pass, those that are still to come as well."""
        if self.opened is None:
            self.opened = self.clock()
            with _undisturbed():
                for each in self._entries:
                    each.begin()
                for each in self._entries:
                    each.let_go()
            # Programs just released need the processor more than the lab does.
            pause_s = min(_PAUSE_EACH_S * len(self._entries), _LONGEST_PAUSE_S)
            asyncio.get_running_loop().call_later(pause_s, self._open.set)

    def look(self) -> None:
        """Take note that an entry is ready."""
        self._change.set()

    async def until_open(self) -> None:
        """Wait until it is opened."""
        await self._open.wait()


def passed(clock: Callable[[], float]) -> Entry:
    """Return the way through a gate that is open: programs start, and send at once."""
    gate = Gate(clock)
    gate.open()
    return gate.entry()


class Entry:
    """The way of one command through a gate."""

    def __init__(self, gate: Gate) -> None:
        self.ready = False
        """Whether nothing is to be waited for any more."""
        self.connects = False
        """Whether only the network is waited for: its program opens the connections for data."""
        self._gate = gate
        self._held: Held | None = None
        self._connections: list[tuple[socket.socket, bytes]] = []
        """What the lab writes to before its program does, and a segment for each."""

    @property
    def holds(self) -> bool:
        """Whether its program was held."""
        return self._held is not None

    async def start(
        self,
        namespace: Namespace,
        argv: Sequence[str],
        hold: Hold,
        name: str = "",
        connections: Collection[tuple[int, int]] = (),
    ) -> tuple[Program, float]:
        """Start a program that passes the gate at ``hold``; return it, and when it was let go.

        ``connections`` are local and remote port of those on which it is about to send data that
        means nothing. Where the kernel can't hold it, it is started when the gate opens. Raises
        ``LabError`` where it is not installed.
        """
        gate = self._gate
        if gate.opened is None:
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                return await self._start_held(namespace, argv, hold, name, connections)
            self.give_up()
            await gate.until_open()
        began = gate.clock()
        return await Program.start(namespace, argv, name), began

    def give_up(self) -> None:
        """Let nobody wait for it any more."""
        self.ready = True
        self._gate.look()

    def begin(self) -> None:
        """Send a first segment on each connection of its program."""
        for connection, segment in self._connections:
            # The program sends what can't be sent now.
            with contextlib.suppress(OSError):
                connection.send(segment, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    def let_go(self) -> None:
        """Let its program go on."""
        if self._held is not None:
            self._held.let_go()

    async def _start_held(
        self,
        namespace: Namespace,
        argv: Sequence[str],
        hold: Hold,
        name: str,
        connections: Collection[tuple[int, int]],
    ) -> tuple[Program, float]:
        with contextlib.closing(Held(hold)) as held:
            program = await Program.start(namespace, argv, name, held=held)
            held.attach()
        self._held = held
        try:
            if self._gate.opened is not None:
                held.let_go()
            began = await self._pass(held, program, connections)
        except BaseException:
            program.kill()
            raise
        finally:
            for connection, _ in self._connections:
                connection.close()
            self._connections.clear()
        return program, began

    async def _pass(
        self, held: Held, program: Program, connections: Collection[tuple[int, int]]
    ) -> float:
        """Return when a program was let go, or ended before."""
        approach = asyncio.create_task(self._approach(held))
        arrival = asyncio.create_task(held.arrived.wait())
        end = asyncio.create_task(program.wait())
        try:
            await asyncio.wait({arrival, end}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (approach, arrival, end):
                each.cancel()
        late = self._gate.opened is not None
        if connections and not late and not program.ended:
            # Where the kernel forbids it, the program sends them.
            with contextlib.suppress(CcplayError, OSError):
                self._connections = [
                    (each.dup(), bytes(each.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)))
                    for each in sockets_of(program.pid)
                    if ports_of(each) in connections
                ]
        self.give_up()
        await self._gate.until_open()
        return self._gate.clock() if late else self._gate.opened or 0.0

    async def _approach(self, held: Held) -> None:
        await held.approaching.wait()
        self.connects = True
        self._gate.look()


@contextlib.contextmanager
def _undisturbed() -> Generator[None]:
    """Keep the core from programs that this process wakes meanwhile, where the kernel permits."""
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    with contextlib.ExitStack() as before:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            before.callback(os.sched_setscheduler, 0, policy, parameters)
        yield
