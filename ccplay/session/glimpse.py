"""Reads a recording around one moment, so that it can be shown before all of it is read."""

from __future__ import annotations

import re
from pathlib import Path

from ccplay.errors import RecordingError, WireError
from ccplay.model.traffic import PROGRESS
from ccplay.state.lab_state import LabState
from ccplay.stream import wire
from ccplay.stream.limits import RecordingLimits
from ccplay.stream.sources import complete_lines

BEFORE_S, AFTER_S = 60.0, 30.0
"""Seconds read before and after the moment: more than the plots show at first."""

_SAMPLES = tuple(
    f'{{"event":"{kind}"'.encode()
    for kind in (
        *("sweep", "sweeps", "trace-samples", "ca-state-changed", "health"),
        *(each.__struct_config__.tag for each in PROGRESS),
    )
)
"""First bytes of the lines of samples, which make up nearly all of a recording."""

_MOMENT = re.compile(rb'.*"t":([0-9.]{1,20})}\n')
"""Pattern of the moment at the end of an event."""

_TAIL = 40
"""Bytes at the end of a line that contain the event's moment."""


def glimpse(path: Path, t: float) -> LabState | None:
    """Return the state of a recording with only the samples around ``t``.

    Everything built, started, changed and marked until then is in the state. Returns None for an
    unreadable recording: reading all of it then reports the reason.
    """
    state, bounds = LabState(), RecordingLimits()
    try:
        with path.open("rb") as file:
            state.apply(wire.decode_hello(next(complete_lines(file)), str(path)))
            for line in complete_lines(file):
                if line.startswith(_SAMPLES):
                    moment = _moment(line)
                    if moment > t + AFTER_S:
                        break
                    # A block begins some seconds before its last sweep.
                    if moment < t - BEFORE_S:
                        continue
                event = wire.decode_event(line)
                bounds.check(event)
                state.apply(event)
    except (OSError, StopIteration, RecordingError, WireError):
        return None
    return state


def _moment(line: bytes) -> float:
    found = _MOMENT.fullmatch(line[-_TAIL:])
    if found is None:
        raise WireError("a line does not end with its moment")
    return float(found[1])
