"""A value axis with round labels, linear or logarithmic, and a time axis in minutes and seconds."""

from __future__ import annotations

import math

from ccplay.units import format_clock

_HEADROOM = 1.04
_SHRINK = 0.6
"""Share of the axis below which all values must fall before it shrinks, to keep it from jumping."""

_DECADES = 4
"""Largest number of powers of ten on a logarithmic axis."""

_TIME_STEPS = (
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
)


class Scale:
    """A value axis that grows immediately and shrinks with hysteresis."""

    def __init__(self, least: float = 1.0) -> None:
        self.least = least
        """Smallest value at which the axis may end."""
        self.logarithmic = False
        self.held = False
        """Whether the axis is fixed, whatever the values."""
        self.top = 0.0
        self.step = 1.0

    def fit(self, peak: float, labels: int) -> bool:
        """Fit the axis to ``peak`` with at most ``labels`` steps; return whether it changed."""
        if self.held and self.top:
            return False
        needed = max(peak * _HEADROOM, self.least)
        step, top = _round_axis(needed, max(labels, 1))
        if self.logarithmic:
            top = _round_up(needed)
        steps = 0 if self.logarithmic else round(self.top / self.step)
        if (
            self.top
            and peak <= self.top
            and (top >= self.top or peak >= self.top * _SHRINK)
            and steps <= max(labels, 1) + 1
        ):
            return False
        changed = (step, top) != (self.step, self.top)
        self.step, self.top = step, top
        return changed

    def forget(self) -> None:
        """Let the next values determine the axis afresh, unless it is fixed."""
        if not self.held:
            self.top = 0.0

    @property
    def bottom(self) -> float:
        """Value at the bottom; a logarithmic axis draws zero and all lower values there too."""
        if not self.logarithmic:
            return 0.0
        lowest = math.floor(math.log10(self.least) + 1e-9)
        highest = math.ceil(math.log10(self.top) - 1e-9)
        return 10.0 ** max(min(lowest, highest - 1), highest - _DECADES)

    def height(self, value: float) -> float:
        """Return the height of a value: 0 at the bottom, 1 at the top, never outside."""
        if value >= self.top:
            return 1.0
        bottom = self.bottom
        if value <= bottom:
            return 0.0
        if self.logarithmic:
            return math.log(value / bottom) / math.log(self.top / bottom)
        return value / self.top

    def ticks(self) -> list[float]:
        """Return the labelled values: from zero to the top, or the powers of ten if logarithmic."""
        if self.logarithmic:
            first = round(math.log10(self.bottom))
            powers = range(first, math.floor(math.log10(self.top) + 1e-9) + 1)
            return [10.0**power for power in powers]
        return [self.step * i for i in range(round(self.top / self.step) + 1)]

    def minor_ticks(self) -> list[float]:
        """Return the unlabelled values that a logarithmic axis marks between powers of ten."""
        if not self.logarithmic:
            return []
        values = (tick * factor for tick in self.ticks() for factor in range(2, 10))
        return [value for value in values if value <= self.top * (1 + 1e-9)]


def _round_up(peak: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is at least ``peak``."""
    power = 10.0 ** math.floor(math.log10(peak) + 1e-9)
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= peak * (1 - 1e-9))


def _round_axis(peak: float, labels: int) -> tuple[float, float]:
    power = 10.0 ** math.floor(math.log10(peak / labels))
    for factor in (1, 2, 2.5, 5, 10):
        step = factor * power
        steps = math.ceil(peak / step - 1e-9)
        if steps <= labels and (factor != 2.5 or step >= 10):
            return step, step * steps
    raise AssertionError("ten steps of a power of ten hold any value")


def time_ticks(left: float, width: float, most: int) -> list[float]:
    """Return the round moments to label between ``left`` and ``left + width``."""
    step = next((each for each in _TIME_STEPS if width / each <= max(most, 1)), _TIME_STEPS[-1])
    first, end = (math.ceil(each / step - 1e-6) for each in (left, left + width))
    return [round(number * step, 2) for number in range(first, end)]


def moment(seconds: float) -> str:
    """Return a moment of ``time_ticks`` as text: ``01:05``, ``01:05.25``."""
    return format_clock(seconds + 1e-6) + f"{seconds % 1:.2f}"[1:].rstrip("0").rstrip(".")


def whole(value: float) -> str:
    """Return a value without a fraction, abbreviated if it is long."""
    return f"{value:.0f}" if value < 1e7 else short(value)


def short(value: float) -> str:
    """Return a value in at most four characters: ``87``, ``1.2k``, ``0.5``, ``0.05``."""
    for scale, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= scale:
            scaled = value / (1e3 if unit == "k" else scale)
            return f"{scaled:.0f}{unit}" if scaled >= 9.95 else f"{scaled:.1f}{unit}"
    if value >= 10 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}".rstrip("0")
