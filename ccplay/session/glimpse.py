"""A glimpse of a recording around one moment, before all of it has been read."""

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
"""Seconds around the moment: more than the first window of the plots shows."""

_SAMPLES = tuple(
    f'{{"event":"{kind}"'.encode()
    for kind in (
        *("sweep", "sweeps", "trace-samples", "ca-state-changed", "health"),
        *(each.__struct_config__.tag for each in PROGRESS),
    )
)
"""Beginnings of the lines that make up nearly all of a recording."""

_MOMENT = re.compile(rb'.*"t":([0-9.]{1,20})}\n')
"""Pattern of the moment at the end of an event."""

_TAIL = 40
"""Bytes that it fits into."""


def glimpse(path: Path, t: float) -> LabState | None:
    """Return the state of a recording with only the samples around ``t``.

    Everything built, started, changed and marked until then is there, as in the whole state. None
    if that is not possible: reading the whole recording then reports the reason.
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
                    # A block begins up to some seconds before its last sweep.
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
