"""The choice of a connection's subflows: pairs of addresses and ports whose paths share least."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ccplay.lab.traffic.mptcp.path_manager import Ends

CANDIDATES = 32
"""Number of source ports from which those of a connection's subflows are chosen."""


def choose(
    manager: str,
    addresses: tuple[Sequence[str], Sequence[str]],
    ports: tuple[Sequence[int], int],
    count: int,
    path: Callable[[Ends], Sequence[str]],
) -> list[Ends]:
    """Return up to ``count`` subflows, the first of them between the first addresses.

    ``manager`` is ``ndiffports``, which varies the source port between the same two addresses, or
    ``fullmesh``, which has one subflow for each pair of addresses. ``addresses`` are those of
    sender and receiver, ``ports`` the source ports to choose from and the receiver's port. Each
    further subflow shares the fewest links with those before it; ``path`` returns the links of a
    subflow.
    """
    sports, dport = ports
    src, dst = addresses
    if manager == "fullmesh":
        pairs = ((one, other) for one in src for other in dst)
        every = [
            Ends(one, sport, other, dport)
            for sport, (one, other) in zip(sports, pairs, strict=False)
        ]
    else:
        every = [Ends(src[0], sport, dst[0], dport) for sport in sports]
    chosen = [every.pop(0)]
    taken = {each: frozenset(path(each)) for each in (*chosen, *every)}
    while every and len(chosen) < count:
        best = min(every, key=lambda each: _shared(taken[each], (taken[one] for one in chosen)))
        every.remove(best)
        chosen.append(best)
    return chosen


def _shared(links: frozenset[str], others: Iterable[frozenset[str]]) -> int:
    """Return how many links a path shares with each of the others, added up."""
    return sum(len(links & each) for each in others)
