"""The action that leaves for another network."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, cast

from ccplay.scenario.values import Scenario
from ccplay.ui.actions.base import Actions


class _Leaving(Protocol):
    """The part of the app that starts sessions."""

    starts: bool

    def start(self, scenario: Scenario | None) -> Awaitable[None]:
        """Leave for another network."""


class StartingActions(Actions):
    """The action that starts another lab."""

    def can_start(self) -> bool:
        """Return whether this screen can start another lab; a replay can't."""
        return bool(getattr(self.app, "starts", False))

    def action_new_network(self) -> None:
        """Ask for a network, then end this lab and start a lab with that network."""
        from ccplay.ui.dialogs.network import NetworkDialog  # noqa: PLC0415 - after first paint

        hello = self.session.state.hello
        topology = hello.network.topology if hello is not None else None
        self.app.push_screen(NetworkDialog(topology), cast("_Leaving", self.app).start)
