"""Paths that traffic took if there were several, and their table."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ccplay.model.columns import COUNT, SECONDS, Column, ResultTable
from ccplay.model.events import FlowPath


class Route(msgspec.Struct, frozen=True):
    """A path that packets took, one of several."""

    t: float
    """Seconds since the start of the stream."""
    stream: str
    """Name of the connection or other traffic: ``1/2`` is stream 2 of flow 1."""
    nodes: list[str]
    """Nodes from the sender to the receiver; empty if every path was down."""
    pinned: bool = False
    """Whether a command chose the path rather than the hash."""
    back: list[str] = []
    """Nodes from the receiver to the sender, which ACKs take; empty if unknown."""
    transfers: int | None = None
    """Number of short flows' transfers that took the path; null for other traffic."""

    @property
    def path(self) -> str:
        """Nodes as text: ``h1 → leaf1 → spine2 → leaf3 → h9``."""
        return " → ".join(self.nodes) or "none: down"

    @property
    def acks(self) -> str:
        """Nodes on the path of ACKs as text; ``the same`` if they are those of the path."""
        return way_back(self.nodes, self.back) or ("the same" if self.back else "")

    @property
    def chosen(self) -> str:
        """The choice of the path as text: by a command or by the hash."""
        return "pinned" if self.pinned else "by hash"


def nodes_of(path: FlowPath) -> tuple[str, ...]:
    """Return the nodes on a path, both hosts included."""
    return _passed(path.links)


def way_back(nodes: Sequence[str], back: Sequence[str]) -> str:
    """Return the nodes on the path of ACKs as text, if they are not those of the path."""
    return "" if [*back] == [*nodes][::-1] else " → ".join(back)


def back_of(path: FlowPath) -> tuple[str, ...]:
    """Return the nodes on the path of ACKs, both hosts included."""
    return _passed(path.back)


def _passed(links: Sequence[str]) -> tuple[str, ...]:
    ends = [name.partition("->") for name in links]
    return (*(src for src, _, _ in ends), *(dst for _, _, dst in ends[-1:]))


def routes(paths: Sequence[FlowPath], transfers: Sequence[int] = ()) -> list[Route]:
    """Return the results of paths in order; ``transfers`` has those of short flows on each."""
    counts: list[int | None] = [*transfers, *([None] * (len(paths) - len(transfers)))]
    return [
        Route(
            round(path.t, 3),
            path.flow,
            list(nodes_of(path)),
            path.pinned,
            list(back_of(path)),
            count,
        )
        for path, count in zip(paths, counts, strict=False)
    ]


ROUTES = ResultTable(
    "Paths, of several",
    (
        Column("traffic", ("stream",)),
        Column("since", ("t",), SECONDS),
        Column("path", ("path",)),
        Column("ACKs", ("acks",)),
        Column("chosen", ("chosen",)),
        Column("transfers", ("transfers",), COUNT),
    ),
    lambda result: list(result.routes),
    in_brief=False,
)
"""Table of the paths that traffic of any kind took."""
