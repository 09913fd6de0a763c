"""Screens wait for a CPU as long as it takes: while labs run, tests of screens may get none."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from textual.pilot import Pilot, WaitForScreenTimeout

from ccplay.share import presenter, sockets
from ccplay.share.sockets import WatchSource
from ccplay.ui import help as keys_in_turn
from ccplay.ui.help import OrderlyApp
from tests.terminals import PATIENCE_S

_LIMITS = {
    keys_in_turn: ("_PATIENCE_S", "_LATEST_S"),
    sockets: ("_LIST_S", "_NEXT_S", "_TRY_PATIENCE_S"),
    presenter: ("_START_S",),
}
"""Names of ccplay's limits in seconds for keys and for servers, which here wait for a CPU, too."""

ROUNDS = 20
"""Messages, each caused by the one before, after which all is done that a key causes."""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let keys wait for the ones before, the pilot for all that they cause, spectators for servers,
    and toasts for all of these.
    """
    for module, names in _LIMITS.items():
        for name in names:
            monkeypatch.setattr(module, name, PATIENCE_S)
    for call in (sockets.join, vars(WatchSource)["join"].__func__):
        monkeypatch.setattr(call, "__defaults__", (PATIENCE_S,))
    wait, is_busy, notify = Pilot._wait_for_screen, OrderlyApp._is_busy, OrderlyApp.notify

    def notify_for_long(app: OrderlyApp[Any], message: str, **options: Any) -> None:
        notify(app, message, **options | {"timeout": PATIENCE_S})

    async def wait_for_keys(pilot: Pilot[Any]) -> bool:
        rounds = 0
        async with asyncio.timeout(PATIENCE_S):
            while True:
                # A widget that was removed meanwhile does not answer: ask again those that remain.
                with suppress(WaitForScreenTimeout):
                    done, app = await wait(pilot, 5.0), pilot.app
                    if not (done and isinstance(app, OrderlyApp) and app.is_running):
                        return done
                    # New samples may keep the screen of a live session busy for ever.
                    rounds = 0 if app.keys_wait else rounds + 1
                    if rounds and (rounds == ROUNDS or not is_busy(app)):
                        return True
                await asyncio.sleep(0)

    monkeypatch.setattr(Pilot, "_wait_for_screen", wait_for_keys)
    monkeypatch.setattr(OrderlyApp, "notify", notify_for_long)
