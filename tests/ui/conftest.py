"""Screens wait for a CPU as long as it takes: while labs run, tests of screens may get none."""

import pytest
from textual.pilot import Pilot

from ccplay.ui import help as keys_in_turn
from tests.terminals import PATIENCE_S


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Textual, and keys that wait for the keys before them, wait for ``PATIENCE_S``."""
    monkeypatch.setattr(Pilot._wait_for_screen, "__defaults__", (PATIENCE_S,))
    for name in ("_PATIENCE_S", "_LATEST_S"):
        monkeypatch.setattr(keys_in_turn, name, PATIENCE_S)
