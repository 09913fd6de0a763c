"""Rate, loss and delay of packets between two counts of a monitor."""

from __future__ import annotations

from ccplay.model.values import Monitored
from ccplay.model.variables import UDP_VARIABLES

RECEIVED, LOSS, DELAY = (each.name for each in UDP_VARIABLES)
"""Names of the variables for the rate, the loss and the delay."""


def rates_between(
    before: Monitored | None, now: Monitored, seconds: float
) -> dict[str, float | None]:
    """Return the variables over the ``seconds`` since an earlier count, or since the first packet.

    None is unknown: nothing arrived, or no time has passed.
    """
    sent, received, size = now.sent, now.received, now.received_bytes
    delays_us = _delays_us(now)
    if before is not None:
        sent, received = sent - before.sent, received - before.received
        size, delays_us = size - before.received_bytes, delays_us - _delays_us(before)
    return {
        RECEIVED: size * 8 / seconds if seconds > 0 else None,
        # A reordered packet was counted as lost before.
        LOSS: max(1 - received / sent, 0.0) if sent > 0 else None,
        DELAY: delays_us / received if received > 0 and now.delay_mean_us is not None else None,
    }


def _delays_us(seen: Monitored) -> float:
    """Return the sum of all packets' delays in µs."""
    return (seen.delay_mean_us or 0.0) * seen.received
