"""Reloads the user's own algorithms and disciplines whenever their files are saved."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

from ccplay.bpf.loaded import library
from ccplay.errors import CcplayError
from ccplay.lab import software_shared
from ccplay.lab.custom.loading import library as disciplines
from ccplay.lab.shaping import Shaper
from ccplay.lab.software import Software, SourceReloader
from ccplay.lab.traffic.congestion import Watchdog
from ccplay.lab.traffic.traffic import LabTraffic
from ccplay.model.base import Event
from ccplay.model.commands import SetCongestionControl
from ccplay.model.events import Applied, Log

_LOOK_S = 0.1
"""Seconds between two checks of whether the user's files were saved."""

_OPENING_S = 3.0
"""Longest time in seconds that a new version of an algorithm waits for connections that are still
opening with the old version."""


class Reloader:
    """Replaces a saved algorithm in the kernel and switches its flows to the new version."""

    def __init__(
        self,
        traffic: LabTraffic,
        watchdog: Watchdog,
        renew_hosts: Callable[[str], Awaitable[None]],
        emit: Callable[[Event], None],
        clock: Callable[[], float],
    ) -> None:
        """``renew_hosts`` sets an algorithm again as the default of the hosts that use it."""
        self._traffic, self._watchdog, self._renew_hosts = traffic, watchdog, renew_hosts
        self._emit, self._clock = emit, clock

    async def watch(self) -> None:
        """Check the algorithms' files and reload those that were saved, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            for name in library.changed():
                try:
                    await self._reload(name)
                except CcplayError as error:
                    runs = library.kernel_name(name) is not None
                    now = "keeps the old version" if runs else "can't be used yet"
                    self._log("error", f"{name} {now}: {error}")
                except Exception as error:  # noqa: BLE001 - watching must go on
                    self._log("error", f"a fault in ccplay: {type(error).__name__}: {error}")

    async def _reload(self, name: str) -> None:
        begun = self._clock()
        new, old = await asyncio.to_thread(library.renew, name)
        if not new:
            self._log("info", f"{name} was saved without a change to the program")
            return
        if old is None:
            self._log("info", f"{name} was saved and can be chosen now")
            return
        await self._opened(name)
        for flow in self._traffic.under(name):
            self._switch(flow, name, begun)
        await self._renew_hosts(name)
        old.close()
        self._log("info", f"{name} was saved; the new version is in use")

    def _switch(self, flow: str, name: str, begun: float) -> None:
        """Switch a running flow to the new version."""
        try:
            self._traffic.switch_flow(flow, name)
        except CcplayError as error:
            # The flow may have just ended; the other flows are switched all the same.
            self._log("warning", f"flow {flow} keeps the old {name}: {error}")
            return
        now = self._clock()
        command = SetCongestionControl(flow=flow, cc=name)
        self._emit(Applied(t=now, command=command, took_s=round(now - begun, 6), renewed=True))
        for over in self._watchdog.forget(flow, now):
            self._emit(over)

    async def _opened(self, name: str) -> None:
        """Wait, with a limit, until no connection is about to open with the old version."""
        deadline = self._clock() + _OPENING_S
        while self._traffic.opening(name) and self._clock() < deadline:  # noqa: ASYNC110 - no event
            await asyncio.sleep(_LOOK_S)

    def _log(self, level: str, text: str) -> None:
        self._emit(Log(t=self._clock(), level=level, text=text))


def watchers(
    reloader: Reloader,
    software: Software | None,
    shaper: Shaper,
    emit: Callable[[Event], None],
    clock: Callable[[], float],
) -> Iterator[Coroutine[Any, Any, None]]:
    """Yield coroutines that watch the user's files and report sojourn times, until cancelled.

    A change that ``software`` makes by itself is reported as ``LinkChanged``.
    """
    if library.custom:
        yield reloader.watch()
    if software is None:
        return
    software.changed = lambda link: emit(shaper.describe(link))
    yield software_shared.report_sojourns(software.sojourn_times, emit, clock)
    if disciplines.files:
        yield SourceReloader(software, emit, clock).watch()
