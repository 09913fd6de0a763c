"""A gate: programs that start together wait in front of it, ready to send, and pass it at once.

Each needs a core for some 0.4 ms until it has sent all that its window allows, so with two cores
the last of 64 would begin 13 ms after the first. Therefore the lab writes the first segment to each
connection itself, through a duplicate of the program's socket, before it releases any of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
from collections.abc import Callable, Collection, Generator, Sequence

from ccplay.errors import CcplayError
from ccplay.lab.netns import Namespace
from ccplay.lab.traffic.program import Held, Hold, Program, ports_of, sockets_of

_PAUSE_EACH_S, _LONGEST_PAUSE_S = 0.0003, 0.005
"""Seconds for which the lab leaves the processor to released programs: for each program, and at
most."""


class Gate:
    """A gate that is closed until ``open``; commands that come later pass at once."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.opened: float | None = None
        """Moment at which the gate was opened; None while it is closed."""
        self._entries: list[GateEntry] = []
        self._open, self._change = asyncio.Event(), asyncio.Event()

    def entry(self) -> GateEntry:
        """Return an entry for one command."""
        self._entries.append(GateEntry(self))
        return self._entries[-1]

    async def wait(self, within_s: float, grace_s: float) -> None:
        """Wait until every entry is ready or given up, but no longer than ``within_s``.

        For programs that have not even begun to open their connections it waits ``grace_s`` longer.
        """
        await self._wait(within_s, lambda each: each.ready)
        await self._wait(grace_s, lambda each: each.ready or each.connects)

    async def _wait(self, within_s: float, enough: Callable[[GateEntry], bool]) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not all(enough(each) for each in self._entries):
                    self._change.clear()
                    await self._change.wait()

    def open(self) -> None:
        """Let all entries pass, including later ones."""
        if self.opened is None:
            self.opened = self.clock()
            with _undisturbed():
                for each in self._entries:
                    each.begin()
                for each in self._entries:
                    each.release()
            # Programs just released need the processor more than the lab does.
            pause_s = min(_PAUSE_EACH_S * len(self._entries), _LONGEST_PAUSE_S)
            asyncio.get_running_loop().call_later(pause_s, self._open.set)

    def look(self) -> None:
        """Wake up ``wait``, because the state of an entry has changed."""
        self._change.set()

    async def until_open(self) -> None:
        """Wait until the gate is open, and the pause for its programs is over."""
        await self._open.wait()


def passed(clock: Callable[[], float]) -> GateEntry:
    """Return an entry of an open gate: its program starts and sends at once."""
    gate = Gate(clock)
    gate.open()
    return gate.entry()


class GateEntry:
    """The entry of one command."""

    def __init__(self, gate: Gate) -> None:
        self.ready = False
        """Whether the entry need not be awaited any longer."""
        self.connects = False
        """Whether only the network is awaited: the program is opening the connections for data."""
        self._gate = gate
        self._held: Held | None = None
        self._connections: list[tuple[socket.socket, bytes]] = []
        """Connections that the lab writes to before the program does, with a segment for each."""

    @property
    def holds(self) -> bool:
        """Whether the program was held."""
        return self._held is not None

    async def start(
        self,
        namespace: Namespace,
        argv: Sequence[str],
        hold: Hold,
        name: str = "",
        connections: Collection[tuple[int, int]] = (),
    ) -> tuple[Program, float]:
        """Start a program that waits for the gate at ``hold``; return it, and when it was released.

        ``connections`` are the (local, remote) ports of connections on which it is about to send
        meaningless data. If the kernel can't hold the program, it is started when the gate opens.
        Raises ``LabError`` if nsenter(1) is not installed.
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
        """Let the gate wait for this entry no longer."""
        self.ready = True
        self._gate.look()

    def begin(self) -> None:
        """Send a first segment on each connection of the program."""
        for connection, segment in self._connections:
            # The program sends what can't be sent now.
            with contextlib.suppress(OSError):
                connection.send(segment, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    def release(self) -> None:
        """Release the program."""
        if self._held is not None:
            self._held.release()

    async def _start_held(
        self,
        namespace: Namespace,
        argv: Sequence[str],
        hold: Hold,
        name: str,
        connections: Collection[tuple[int, int]],
    ) -> tuple[Program, float]:
        with contextlib.closing(Held(hold, self._gate.clock)) as held:
            program = await Program.start(namespace, argv, name, held=held)
            held.attach()
        self._held = held
        try:
            if self._gate.opened is not None:
                held.release()
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
        """Wait until a program passes the gate, even if it has ended; return that moment."""
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
            # If the kernel forbids it, the program sends the first segments itself.
            with contextlib.suppress(CcplayError, OSError):
                self._connections = [
                    (each.dup(), bytes(each.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)))
                    for each in sockets_of(program.pid)
                    if ports_of(each) in connections
                ]
        self.give_up()
        await self._gate.until_open()
        # A late one was released at once; this task continues milliseconds later on a busy machine.
        began = held.passed if late else self._gate.opened
        return self._gate.clock() if began is None else began

    async def _approach(self, held: Held) -> None:
        await held.approaching.wait()
        self.connects = True
        self._gate.look()


@contextlib.contextmanager
def _undisturbed() -> Generator[None]:
    """Keep woken programs from preempting this process, if the kernel permits that."""
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    with contextlib.ExitStack() as before:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            before.callback(os.sched_setscheduler, 0, policy, parameters)
        yield
