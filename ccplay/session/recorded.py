"""Reads the state at the end of a recording."""

from __future__ import annotations

from pathlib import Path

from ccplay.state.lab_state import LabState
from ccplay.stream.sources import recorded_events


def read_recording(path: Path) -> LabState:
    """Return the state at the end of a recording. Raises ``RecordingError``."""
    state = LabState()
    for event in recorded_events(path):
        state.apply(event)
    return state
