"""Congestion controls that do their flow no good: cwnd stuck at 1, or growing without bound.

And windows that none can have meant: there are kernels that now and then leave a BPF program out.
"""

from __future__ import annotations

import msgspec

from ccplay.model.events import Log, Misbehaved
from ccplay.model.samples import TcpSamples
from ccplay.model.values import MOST_SEGMENTS

PATIENCE_S = 3.0
"""How long it must last: many round trips of any path that ccplay builds."""
FAR_ABOVE = 8
"""Times what is under way, and"""
LEAST_RUNAWAY = 1000
"""segments: a cwnd beyond both no longer limits anything."""
_DISORDER, _LOSS = 1, 4
"""``TCP_CA_Disorder``, ``TCP_CA_Loss``."""


class _Suspicion(msgspec.Struct):
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
        self._incredible: set[tuple[str, str]] = set()
        """Connections and algorithms that had a window which no path holds."""
        self._looked = 0.0

    def look(self, t: float, samples: TcpSamples) -> list[Misbehaved | Log]:
        """Return what has been going on for ``PATIENCE_S`` by now, and what no longer does.

        A window that no path holds is told at once, in words.
        """
        passed, self._looked = t - self._looked, t
        news: list[Misbehaved | Log] = []
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
            if cwnd > MOST_SEGMENTS or (ssthresh is not None and ssthresh > MOST_SEGMENTS):
                news += self._wonder(name, cc, max(cwnd, ssthresh or 0), t)
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
        self._incredible = {k for k in self._incredible if k[0].partition("/")[0] != flow}
        names = [name for name in self._suspicions if name.partition("/")[0] == flow]
        return [over for name in names for over in self._drop(name, t)]

    def _wonder(self, name: str, cc: str, window: int, t: float) -> list[Log]:
        if (name, cc) in self._incredible:
            return []
        self._incredible.add((name, cc))
        why = f"the kernel skipped a call of {cc}, or that is wrong"
        text = f"flow {name}: no path holds a window of {window:,}: {why}"
        return [Log(t=t, level="warning", text=text)]

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
