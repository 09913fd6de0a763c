"""Congestion controls that do their flow no good: cwnd stuck at 1, or growing without bound."""

from __future__ import annotations

from dataclasses import dataclass

from ccplay.model import Log, TcpSamples

PATIENCE_S = 3.0
"""How long it must last: many round trips of any path that ccplay builds."""
FAR_ABOVE = 8
"""Times what is under way, and"""
LEAST_RUNAWAY = 1000
"""segments: a cwnd beyond both no longer limits anything."""
_LOSS = 4
"""``TCP_CA_Loss``: one segment at a time is right after a timeout; RFC 5681, section 3.1."""


@dataclass(slots=True)
class _Suspicion:
    """What is wrong with a flow, and since when."""

    cc: str
    wrong: str
    since: float
    told: bool = False


class Watchdog:
    """Looks at every sweep; says once a flow and algorithm what lasts."""

    def __init__(self) -> None:
        self._suspicions: dict[str, _Suspicion] = {}

    def look(self, t: float, samples: TcpSamples) -> list[Log]:
        """Return a warning for each flow whose cwnd has been wrong for ``PATIENCE_S`` by now."""
        warnings = []
        rows = zip(
            samples.flow,
            samples.cc,
            samples.cwnd,
            samples.unacked,
            samples.ca_state,
            strict=True,
        )
        for flow, cc, cwnd, unacked, ca_state in rows:
            wrong = _wrong(cwnd, unacked, ca_state)
            before = self._suspicions.get(flow)
            if not wrong:
                # Told once is told, until the flow has another algorithm.
                if before is not None and not before.told:
                    del self._suspicions[flow]
                continue
            if before is None or (before.cc, before.wrong) != (cc, wrong):
                self._suspicions[flow] = _Suspicion(cc, wrong, t)
            elif not before.told and t - before.since >= PATIENCE_S:
                before.told = True
                text = f"flow {flow}: {cc} {wrong}: look at its program, or switch it"
                warnings.append(Log(t=t, level="warning", text=text))
        return warnings


def _wrong(cwnd: int, unacked: int, ca_state: int) -> str:
    """Say what is wrong with a cwnd; nothing where it may be right."""
    if cwnd <= 1 and unacked and ca_state != _LOSS:
        return "keeps cwnd at 1"
    if cwnd > max(LEAST_RUNAWAY, FAR_ABOVE * unacked):
        return "lets cwnd grow without bound"
    return ""
