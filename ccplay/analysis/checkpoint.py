"""The checkpoint of a race: bytes of every flow when the first of a fixed size is done."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ccplay.state.lab_state import LabState


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """All flows at the moment of one sweep, so that their metrics can be compared."""

    t: float
    """Seconds since the start of the stream."""
    elapsed_s: float
    """Seconds since the first flow of a fixed size opened its connection."""
    first: str
    """Name of the flow that is done."""
    bytes: dict[str, int]
    """Acknowledged payload in bytes by flow; flows of a fixed size come first, in the file's
    order."""
    ratio: float | None
    """Bytes of the first over those of the second flow, if exactly two have a fixed size."""


def checkpoint(state: LabState, sizes: Mapping[str, int] | None = None) -> Checkpoint | None:
    """Return the checkpoint of a session; None if no flow of a fixed size is done yet.

    ``sizes`` are the flows of a fixed size in the order for the ratio; by default those that the
    session has started, in the order of its scenario.
    """
    if (finish := state.finish) is None:
        return None
    fixed = list(fixed_sizes(state) if sizes is None else sizes)
    found = finish.bytes
    names = [name for name in fixed if name in found]
    pair = [found.get(name, 0) for name in fixed]
    started = min(state.flows[name].started for name in names or [finish.first])
    return Checkpoint(
        t=round(finish.t, 6),
        elapsed_s=round(finish.t - started, 6),
        first=finish.first,
        bytes={name: found[name] for name in dict.fromkeys((*names, *found))},
        ratio=round(pair[0] / pair[1], 6) if len(pair) == 2 and pair[1] else None,
    )


def fixed_sizes(state: LabState) -> dict[str, int]:
    """Return the flows of a fixed size with their bytes.

    They are in the order of the scenario, although repeats may start them in another; flows started
    by hand follow.
    """
    found = state.sizes
    build = state.hello.build if state.hello else None
    scripted = [name for name in (build.reserved if build else ()) if name in found]
    return {name: found[name] for name in (*scripted, *found)}
