"""A histogram of the lateness of packets in one second."""

from __future__ import annotations


class Lateness:
    """Lateness of released packets, counted in steps of 10 us up to 10 ms."""

    _STEP_S = 10e-6
    _STEPS = 1024

    def __init__(self) -> None:
        self._counts = [0] * self._STEPS
        self.packets = 0

    def add(self, late_s: float) -> None:
        """Count one packet that was released ``late_s`` seconds late."""
        step = int(late_s / self._STEP_S)
        self._counts[step if step < self._STEPS else -1] += 1
        self.packets += 1

    def percentile_us(self, share: float) -> float | None:
        """Return the lateness, in microseconds, that ``share`` of the packets did not exceed."""
        if not self.packets:
            return None
        left = share * self.packets
        for step, count in enumerate(self._counts):
            left -= count
            if left <= 0:
                return round((step + 0.5) * self._STEP_S * 1e6, 1)
        return round(self._STEPS * self._STEP_S * 1e6, 1)

    def clear(self) -> None:
        """Empty the histogram for a new second."""
        self._counts = [0] * self._STEPS
        self.packets = 0
