"""The distributions of jitter: the tables of tc-netem(8), computed.

An entry is the distance from the mean in units of the jitter, times 8192 (``NETEM_DIST_SCALE``). A
packet draws one entry.
"""

from __future__ import annotations

from array import array
from functools import cache
from statistics import NormalDist

SCALE = 8192
"""Value of a table's entry that stands for 1.0 times the jitter."""
SIZE = 4096
"""Number of entries in a table, as in iproute2."""

UNIFORM = "uniform"
"""Netem's default, which needs no table: from the delay minus the jitter to the delay plus the
jitter."""
DISTRIBUTIONS = (UNIFORM, "normal", "pareto", "paretonormal")

_MOST = 32767


@cache
def table(name: str) -> array[int]:
    """Return the table of a distribution in ascending order; empty for the uniform one."""
    if name == UNIFORM:
        return array("h")
    normal = [NormalDist().inv_cdf(max(at, 0.5) / SIZE) * SCALE for at in range(SIZE)]
    # Pareto with shape 3, minus its mean: iproute2's netem/pareto.c.
    pareto = [((1 - at / SIZE) ** (-1 / 3) - 1.5) * 4 / 3 * SCALE for at in range(SIZE)]
    mixed = [0.25 * n + 0.75 * min(p, _MOST) for n, p in zip(normal, pareto, strict=True)]
    known = {"normal": normal, "pareto": pareto, "paretonormal": mixed}[name]
    return array("h", (max(-_MOST, min(_MOST, round(each))) for each in known))
