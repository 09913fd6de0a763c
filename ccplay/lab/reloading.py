"""Reloads the user's own algorithms and disciplines whenever their files are saved."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

from ccplay.bpf.loaded import library
from ccplay.errors import CcplayError
from ccplay.lab.custom.loading import library as disciplines
from ccplay.lab.software import Software
from ccplay.lab.traffic.congestion import Watchdog
from ccplay.lab.traffic.traffic import LabTraffic
from ccplay.model.base import Command, Event
from ccplay.model.commands import SetCongestionControl, SetQdisc
from ccplay.model.events import Applied, Log

_LOOK_S = 0.1
"""Seconds between two checks of whether the user's algorithms were saved."""

_LOOK_AT_DISCIPLINES_S = 0.01
"""Seconds between two checks of the disciplines' files; a saved file is read once two checks find
it alike."""

_OPENING_S = 3.0
"""Longest time in seconds that a new version of an algorithm waits for connections that are still
opening with the old version."""


class Reloader:
    """Replaces what was saved under running traffic: in the kernel, and in front of links."""

    def __init__(
        self,
        traffic: LabTraffic,
        watchdog: Watchdog,
        renew_hosts: Callable[[str], Awaitable[None]],
        emit: Callable[[Event], None],
        clock: Callable[[], float],
        *,
        software: Software | None,
    ) -> None:
        """``renew_hosts`` sets an algorithm again as the default of the hosts that use it.

        ``clock`` returns seconds since the start of the stream; ``software`` is None if it is
        unavailable.
        """
        self._traffic, self._watchdog, self._renew_hosts = traffic, watchdog, renew_hosts
        self._software = software
        self._emit, self._clock = emit, clock

    def watchers(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Yield coroutines that check the user's files and reload saved ones, until cancelled."""
        if library.custom:
            yield self._watch(
                _LOOK_S,
                library.changed,
                self._reload_algorithm,
                lambda name: library.kernel_name(name) is not None,
            )
        if disciplines.files and (own := self._software) is not None:
            yield self._watch(
                _LOOK_AT_DISCIPLINES_S,
                disciplines.changed,
                lambda name: self._reload_discipline(name, own),
                own.works,
            )

    async def _watch(
        self,
        look_s: float,
        changed: Callable[[], list[str]],
        reload: Callable[[str], Awaitable[None]],
        works: Callable[[str], bool],
    ) -> None:
        """Reload files that ``changed``; ``works`` is whether the old version of one is in use."""
        while True:
            await asyncio.sleep(look_s)
            for name in changed():
                try:
                    await reload(name)
                except CcplayError as error:
                    now = "keeps the old version" if works(name) else "can't be used yet"
                    self._log("error", f"{name} {now}: {error}")
                except Exception as error:  # noqa: BLE001 - the next save must be noticed, too
                    self._log("error", f"a fault in ccplay: {type(error).__name__}: {error}")

    async def _reload_algorithm(self, name: str) -> None:
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
        self._report_renewed(SetCongestionControl(flow=flow, cc=name), begun)
        for over in self._watchdog.forget(flow, self._clock()):
            self._emit(over)

    async def _opened(self, name: str) -> None:
        """Wait, with a limit, until no connection is about to open with the old version."""
        deadline = self._clock() + _OPENING_S
        while self._traffic.opening(name) and self._clock() < deadline:  # noqa: ASYNC110 - no event
            await asyncio.sleep(_LOOK_S)

    async def _reload_discipline(self, name: str, software: Software) -> None:
        """Give the queues of a discipline its new source; packets that wait in them stay."""
        begun = self._clock()
        source = disciplines.source(name)
        links = software.under(name)
        for link, qdisc in links:
            if await software.renew(link, source):
                self._report_renewed(SetQdisc(link=link, qdisc=qdisc), begun)
        if not links:
            self._log("info", f"{name} was saved and can be chosen now")
        elif software.works(name):
            self._log("info", f"{name} was saved; the new version is in use")

    def _report_renewed(self, command: Command, begun: float) -> None:
        """Report that traffic or a link has the new version of what ``command`` chose for it."""
        now = self._clock()
        self._emit(Applied(t=now, command=command, took_s=round(now - begun, 6), renewed=True))

    def _log(self, level: str, text: str) -> None:
        self._emit(Log(t=self._clock(), level=level, text=text))
