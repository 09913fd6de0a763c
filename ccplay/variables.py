"""The variables of algorithms in words: what ``Sweep.own`` names, with scale and unit."""

from __future__ import annotations

from ccplay.units import format_rate

_OF = {"bbr_pacing_gain": 256, "bbr_cwnd_gain": 256, "dctcp_alpha": 1024}
"""What counts as 1 where a variable is a fraction."""


def real(name: str, value: float) -> float:
    """Return what the variable is, fractions as such: a gain of 320 is 1.25."""
    return float(value) / _OF.get(name, 1)


def say(name: str, value: float) -> str:
    """Return a variable in words: ``min rtt 20.1 ms`` for ``bbr_min_rtt_us`` and 20100."""
    # The algorithm's own name stands beside it.
    *words, last = name.split("_")[1:] or [name]
    what = " ".join(words)
    if words and last == "bps":
        return f"{what} {format_rate(value)}"
    if words and last == "us":
        return f"{what} {value / 1e3:.1f} ms"
    number = f"{real(name, value):.2f}" if name in _OF else f"{value:.0f}"
    return f"{what} {last} {number}".lstrip()
