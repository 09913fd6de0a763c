"""Traffic of one moment: prepared in parallel, released together, answered one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ccplay.errors import CcplayError
from ccplay.lab.traffic import congestion
from ccplay.lab.traffic.gate import Entry, Gate
from ccplay.lab.traffic.traffic import Traffic
from ccplay.model.base import Event
from ccplay.model.events import Applied, Failed
from ccplay.model.traffic_commands import StartTraffic

GRACE_S = 0.3
"""Seconds after the moment for which unprepared traffic is awaited: less than a step may be
late."""

LONGEST_S = 10.0
"""Longest time in seconds that a network waits for the traffic that starts with it."""

HANDSHAKES_S = 3.5
"""Seconds that connections may take to open before their traffic starts; a SYN that is lost twice
takes 3."""


class Together:
    """Several commands that start traffic. Call ``prepare``, ``open``, then ``answer``."""

    def __init__(
        self,
        commands: Sequence[StartTraffic],
        traffic: Traffic,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
        log: Callable[[str, str], None],
    ) -> None:
        """Prepare; ``emit`` receives answers at times of ``clock``, ``log`` reports slow steps."""
        self._commands, self._traffic = commands, traffic
        self._emit, self._clock, self._log = emit, clock, log
        self._gate = Gate(clock)
        self._tasks: list[asyncio.Task[StartTraffic]] = []

    async def prepare(self, until: float, grace_s: float) -> None:
        """Start all programs; return when they wait for the moment, or at ``until``.

        It waits ``grace_s`` longer for those that have not begun to open connections by then.
        """
        entries = [self._gate.entry() for _ in self._commands]
        ready: dict[str, CcplayError | None] = {}
        for each in self._commands:
            if (cc := getattr(each, "cc", None)) is not None and cc not in ready:
                ready[cc] = await self._problem(cc)
        self._tasks = [
            asyncio.create_task(self._start(each, entry, ready.get(getattr(each, "cc", ""))))
            for each, entry in zip(self._commands, entries, strict=True)
        ]
        await self._gate.wait(max(until - self._clock(), 0.0), grace_s)

    def open(self) -> None:
        """Release all first packets now."""
        self._gate.open()

    async def answer(self, due: float) -> None:
        """Report for each command, in order, whether it took effect; ``due`` was the moment."""
        for command, task in zip(self._commands, self._tasks, strict=True):
            try:
                done = await task
            except CcplayError as error:
                problem = str(error)
            except Exception as error:  # noqa: BLE001 - one bad command must not end the lab
                problem = f"a fault in ccplay: {type(error).__name__}: {error}"
            else:
                now = self._clock()
                took_s = round(max(now - due, 0.0), 6)
                self._emit(Applied(t=now, command=done, took_s=took_s, due=due))
                continue
            self._emit(Failed(t=self._clock(), command=command, message=problem, due=due))

    async def _problem(self, cc: str) -> CcplayError | None:
        try:
            await congestion.prepare(cc, self._log)
        except CcplayError as error:
            return error
        return None

    async def _start(
        self, command: StartTraffic, entry: Entry, problem: CcplayError | None
    ) -> StartTraffic:
        try:
            if problem is not None:
                raise problem
            return await self._traffic.start(command, entry)
        finally:
            entry.give_up()


class Starting:
    """All traffic whose moment is still to come."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start empty; moments are those of ``clock``."""
        self._clock = clock
        self._tasks: dict[asyncio.Task[None], float] = {}

    def add(self, at: float, together: Together, *, prepared: bool = False) -> None:
        """Release traffic at a moment; until then prepare it, unless it is prepared."""
        task = asyncio.create_task(self._start(at, together, prepared))
        self._tasks[task] = at
        task.add_done_callback(self._tasks.pop)

    async def until(self, moment: float) -> None:
        """Wait for the answers to all traffic that is due by ``moment``."""
        if due := [task for task, at in self._tasks.items() if at <= moment]:
            await asyncio.wait(due)

    async def _start(self, at: float, together: Together, prepared: bool) -> None:
        if not prepared:
            await together.prepare(max(at, self._clock()), GRACE_S)
        await asyncio.sleep(at - self._clock())
        together.open()
        await together.answer(at)
