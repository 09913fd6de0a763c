"""Values that panels and plots derive from the state, cached for one state and moment."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from ccplay.state.lab_state import LabState

T = TypeVar("T")


class Known:
    """Cached results by key, all of one state at one moment."""

    def __init__(self) -> None:
        self._at: tuple[int, int, float] | None = None
        self._found: dict[Hashable, Any] = {}

    def once(self, state: LabState, t: float, key: Hashable, derive: Callable[[], T]) -> T:
        """Return the result of ``derive``, called once per state, moment ``t`` and ``key``.

        ``key`` must contain everything else that the result depends on. Callers must not change the
        result.
        """
        at = (id(state), state.version, t)
        if at != self._at:
            self._at = at
            self._found.clear()
        if key not in self._found:
            self._found[key] = derive()
        found: T = self._found[key]
        return found
