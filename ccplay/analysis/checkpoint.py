"""The checkpoint of a race: what every flow has when the first one of a fixed size is done."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ccplay.state.lab_state import LabState


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """All flows at one moment, that of a sweep, so that their figures can be compared."""

    t: float
    """Seconds since the start of the stream."""
    elapsed_s: float
    """Since the first flow of a fixed size opened its connection."""
    first: str
    """The flow that is done."""
    bytes: dict[str, int]
    """Payload acknowledged, by flow; those of a fixed size come first, in the file's order."""
    ratio: float | None
    """Bytes of the first over bytes of the second, where exactly two flows have a fixed size."""


def checkpoint(state: LabState, sizes: Mapping[str, int]) -> Checkpoint | None:
    """Return the checkpoint if a flow of ``sizes`` has its bytes by now, else None.

    Ask after every event and keep the first answer: the state knows the newest sweep only.
    """
    acked = {name: _acked(state, name) for name in sizes if name in state.flows}
    done = [name for name, size in acked.items() if size >= sizes[name]]
    if not done:
        return None
    # A sweep may find two at their ends; the one that is further beyond it was there first.
    first = max(done, key=lambda name: acked[name] / sizes[name])
    others = [flow.name for flow in state.flows.values() if flow.kind == "flow"]
    acked |= {name: _acked(state, name) for name in others if "/" not in name and name not in acked}
    pair = [acked.get(name, 0) for name in sizes]
    ratio = round(pair[0] / pair[1], 6) if len(pair) == 2 and pair[1] else None
    return Checkpoint(
        t=round(state.now, 6),
        elapsed_s=round(
            state.now - min(state.flows[name].started for name in sizes if name in acked), 6
        ),
        first=first,
        bytes=acked,
        ratio=ratio,
    )


def _acked(state: LabState, name: str) -> int:
    """Return what a flow's streams have together; a flow that ended may tell of more."""
    streams = state.streams[name].values()
    return max(sum(flow.acked for flow in streams), state.flows[name].bytes)
