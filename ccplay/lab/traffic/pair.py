"""Traffic by a program of ccplay: one process receives, one sends and reports its progress."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ccplay.errors import LabError
from ccplay.lab.network.netns import Namespace
from ccplay.lab.traffic.gate import Entry
from ccplay.lab.traffic.holding import Hold
from ccplay.lab.traffic.program import Program

REPORT_S = 0.5
"""Interval in seconds between two reports of what the sender has written."""


class Pair:
    """The two processes. They end when the sender does, by ``stop``, or because one dies."""

    def __init__(
        self,
        src: str,
        dst: str,
        on_line: Callable[[str], None],
        on_report: Callable[[], None],
        on_end: Callable[[str | None], None],
    ) -> None:
        """Prepare; ``on_line`` receives each line, ``on_report`` is called every ``REPORT_S``.

        ``on_end`` is called once, after all lines of the sender, with the reason if it died
        unasked.
        """
        self.src, self.dst = src, dst
        self.ended = asyncio.Event()
        self._on_line, self._on_report, self._on_end = on_line, on_report, on_end
        self._asked = False

    async def start(
        self,
        script: Path,
        receiver: tuple[Namespace, Sequence[str]],
        sender: tuple[Namespace, Sequence[str]],
        hold: Hold,
        entry: Entry,
    ) -> None:
        """Start ``script`` in both hosts with their arguments; it imports nothing of ccplay.

        The receiver writes ``ready`` once it listens; the sender passes ``entry`` at ``hold``.
        Raises ``LabError`` if the receiver does not listen.
        """
        # -I: nothing from the environment; -S: no site-packages, which take time to find.
        argv = [sys.executable, "-I", "-S", str(script)]
        self._receiver = await Program.start(receiver[0], [*argv, *receiver[1]], script.stem)
        if not await self._receiver.prints("ready"):
            await self._receiver.stop()
            raise LabError(f"{script.stem}: {self._receiver.last_words()}")
        self._receiver.ignore_output()
        try:
            self._sender, _ = await entry.start(sender[0], [*argv, *sender[1]], hold, script.stem)
        except BaseException:
            self._receiver.kill()
            raise
        self._attending = asyncio.create_task(self._attend())

    def begin_stop(self) -> None:
        """End both without waiting."""
        if not self._asked:
            self._asked = True
            self._stopping = asyncio.create_task(self._sender.stop())

    async def stop(self) -> None:
        """End both and wait until they have ended."""
        self.begin_stop()
        await self.ended.wait()

    async def _attend(self) -> None:
        reporting = asyncio.create_task(self._report())
        async for line in self._sender.lines():
            self._on_line(line)
        status = await self._sender.wait()
        reporting.cancel()
        await self._receiver.stop()
        self._on_report()
        self.ended.set()
        self._on_end(self._sender.last_words() if status and not self._asked else None)

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(REPORT_S)
            self._on_report()
