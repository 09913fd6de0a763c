"""Congestion controls that do their flow no good: cwnd stuck at 1, or growing without bound."""

from __future__ import annotations

from dataclasses import dataclass

from ccplay.model.events import Misbehaved
from ccplay.model.samples import TcpSamples

PATIENCE_S = 3.0
"""How long it must last: many round trips of any path that ccplay builds."""
FAR_ABOVE = 8
"""Times what is under way, and"""
LEAST_RUNAWAY = 1000
"""segments: a cwnd beyond both no longer limits anything."""
_DISORDER, _LOSS = 1, 4
"""``TCP_CA_Disorder``, ``TCP_CA_Loss``."""


@dataclass(slots=True)
class _Suspicion:
    """What is wrong with a connection, and since when."""

    cc: str
    wrong: str
    since: float
    good_s: float = 0.0
    """How long the algorithm has had its say since it did so last."""
    told: bool = False


class Watchdog:
    """Looks at every sweep; says once what lasts, and when it is over."""

    def __init__(self) -> None:
        self._suspicions: dict[str, _Suspicion] = {}
        self._looked = 0.0

    def look(self, t: float, samples: TcpSamples) -> list[Misbehaved]:
        """Return what has been going on for ``PATIENCE_S`` by now, and what no longer does."""
        passed, self._looked = t - self._looked, t
        news: list[Misbehaved] = []
        rows = zip(
            samples.flow,
            samples.cc,
            samples.cwnd,
            samples.ssthresh,
            samples.unacked,
            samples.ca_state,
            strict=True,
        )
        for name, cc, cwnd, ssthresh, unacked, ca_state in rows:
            before = self._suspicions.get(name)
            if before is not None and before.cc != cc:
                news += self._drop(name, t)
                before = None
            # Until a loss is repaired TCP holds cwnd down itself, to ssthresh in the end.
            wanted = cwnd if ca_state <= _DISORDER else ssthresh
            if ca_state == _LOSS or wanted is None or not unacked:
                continue
            if wrong := _wrong(wanted, unacked):
                news += self._suspect(name, cc, wrong, t)
            elif before is not None:
                before.good_s += passed
                if before.good_s >= PATIENCE_S:
                    news += self._drop(name, t)
        return news

    def forgive(self, flow: str, t: float) -> list[Misbehaved]:
        """Begin anew with a flow, all its streams; return that what was told of it is over."""
        names = [name for name in self._suspicions if name.partition("/")[0] == flow]
        return [over for name in names for over in self._drop(name, t)]

    def _suspect(self, name: str, cc: str, wrong: str, t: float) -> list[Misbehaved]:
        before = self._suspicions.get(name)
        if before is None or before.wrong != wrong:
            over = self._drop(name, t)
            self._suspicions[name] = _Suspicion(cc, wrong, t)
            return over
        before.good_s = 0.0
        if before.told or t - before.since < PATIENCE_S:
            return []
        before.told = True
        return [Misbehaved(t=t, flow=name, cc=cc, wrong=wrong)]

    def _drop(self, name: str, t: float) -> list[Misbehaved]:
        before = self._suspicions.pop(name, None)
        return [Misbehaved(t=t, flow=name, cc=before.cc)] if before and before.told else []


def _wrong(cwnd: int, unacked: int) -> str:
    """Say what is wrong with a cwnd that an algorithm wants; nothing where it may be right."""
    if cwnd <= 1:
        return "keeps cwnd at 1"
    if cwnd > max(LEAST_RUNAWAY, FAR_ABOVE * unacked):
        return "lets cwnd grow without bound"
    return ""
