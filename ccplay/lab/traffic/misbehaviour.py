"""Misbehaving congestion controls: cwnd stuck at 1, or far above what is in flight.

Also impossible windows: some kernels now and then skip a call of a BPF program.
"""

from __future__ import annotations

import msgspec

from ccplay.model.events import Log, Misbehaved
from ccplay.model.samples import TcpSamples
from ccplay.model.values import MOST_SEGMENTS

PATIENCE_S = 3.0
"""Seconds for which misbehaviour must last: many round trips of any path in ccplay."""
FAR_ABOVE = 8
"""Multiple of the segments in flight above which a cwnd limits nothing, if it also exceeds
``LEAST_RUNAWAY``."""
LEAST_RUNAWAY = 1000
"""Segments that a cwnd must exceed to count as far above what is in flight."""
_DISORDER, _LOSS = 1, 4
"""Numbers of the states ``TCP_CA_Disorder`` and ``TCP_CA_Loss``."""


class _Suspicion(msgspec.Struct):
    """The possible misbehaviour of a connection, and its beginning."""

    cc: str
    wrong: str
    since: float
    good_s: float = 0.0
    """Seconds for which cwnd has been good again while the algorithm was in control of it."""
    reported: bool = False


class Watchdog:
    """Checks every sweep; reports lasting misbehaviour once, and its end."""

    def __init__(self) -> None:
        self._suspicions: dict[str, _Suspicion] = {}
        self._incredible: set[tuple[str, str]] = set()
        """Connections and algorithms that had a window larger than any path can hold."""
        self._looked = 0.0

    def look(self, t: float, samples: TcpSamples) -> list[Misbehaved | Log]:
        """Return misbehaviour that has lasted ``PATIENCE_S``, and misbehaviour that has ended.

        A window larger than any path can hold is reported immediately, as text.
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
                news += self._report_impossible(name, cc, max(cwnd, ssthresh or 0), t)
            before = self._suspicions.get(name)
            if before is not None and before.cc != cc:
                news += self._drop(name, t)
                before = None
            # Until a loss is repaired TCP itself limits cwnd, finally to ssthresh.
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

    def forget(self, flow: str, t: float) -> list[Misbehaved]:
        """Forget all suspicions of a flow and its streams; return the ends of those reported."""
        self._incredible = {k for k in self._incredible if k[0].partition("/")[0] != flow}
        names = [name for name in self._suspicions if name.partition("/")[0] == flow]
        return [over for name in names for over in self._drop(name, t)]

    def _report_impossible(self, name: str, cc: str, window: int, t: float) -> list[Log]:
        if (name, cc) in self._incredible:
            return []
        self._incredible.add((name, cc))
        why = f"the kernel skipped a call of {cc}, or {cc} is wrong"
        text = f"flow {name}: no path can hold a window of {window:,}: {why}"
        return [Log(t=t, level="warning", text=text)]

    def _suspect(self, name: str, cc: str, wrong: str, t: float) -> list[Misbehaved]:
        before = self._suspicions.get(name)
        if before is None or before.wrong != wrong:
            over = self._drop(name, t)
            self._suspicions[name] = _Suspicion(cc, wrong, t)
            return over
        before.good_s = 0.0
        if before.reported or t - before.since < PATIENCE_S:
            return []
        before.reported = True
        return [Misbehaved(t=t, flow=name, cc=cc, wrong=wrong)]

    def _drop(self, name: str, t: float) -> list[Misbehaved]:
        before = self._suspicions.pop(name, None)
        return [Misbehaved(t=t, flow=name, cc=before.cc)] if before and before.reported else []


def _wrong(cwnd: int, unacked: int) -> str:
    """Return what is wrong with an algorithm's cwnd; empty if nothing is."""
    if cwnd <= 1:
        return "keeps cwnd at 1"
    if cwnd > max(LEAST_RUNAWAY, FAR_ABOVE * unacked):
        return f"keeps cwnd above {FAR_ABOVE} times what is in flight"
    return ""
