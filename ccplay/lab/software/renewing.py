"""Replaces the user's own disciplines under running traffic whenever their files are saved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ccplay.errors import CcplayError
from ccplay.lab.custom.library import library
from ccplay.lab.software.client import Software
from ccplay.model.base import Event
from ccplay.model.commands import SetQdisc
from ccplay.model.events import Applied, Log

_LOOK_S = 0.01
"""Seconds between two checks of the files; a saved file is read once two checks find it alike."""


class Renewer:
    """Gives the queues of a saved discipline its new source; packets that wait in them stay."""

    def __init__(
        self,
        software: Software,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
    ) -> None:
        """``clock`` returns seconds since the start of the stream."""
        self._software, self._emit, self._clock = software, emit, clock

    async def watch(self) -> None:
        """Check the files and load those that were saved, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            for name in library.changed():
                try:
                    await self._renew(name)
                except CcplayError as error:
                    works = self._software.works(name)
                    now = "keeps the old version" if works else "can't be used yet"
                    self._log("error", f"{name} {now}: {error}")
                except Exception as error:  # noqa: BLE001 - the next save must be noticed, too
                    self._log("error", f"a fault in ccplay: {type(error).__name__}: {error}")

    async def _renew(self, name: str) -> None:
        begun = self._clock()
        source = library.source(name)
        links = self._software.under(name)
        for link, qdisc in links:
            if not await self._software.renew(link, source):
                continue
            now = self._clock()
            command = SetQdisc(link=link, qdisc=qdisc)
            self._emit(Applied(t=now, command=command, took_s=round(now - begun, 6), renewed=True))
        if not links:
            self._log("info", f"{name} was saved and can be chosen now")
        elif self._software.works(name):
            self._log("info", f"{name} was saved; the new version is in use")

    def _log(self, level: str, text: str) -> None:
        self._emit(Log(t=self._clock(), level=level, text=text))
