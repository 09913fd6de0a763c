"""Congestion controls, distributions of jitter and code points: names that commands may use."""

from __future__ import annotations

from array import array
from functools import cache
from statistics import NormalDist
from typing import NamedTuple

# --- facts about every congestion control that comes with Linux -----------------------------------


class Algorithm(NamedTuple):
    """Facts about a congestion control of Linux."""

    summary: str
    source: str
    """RFC or paper that describes the algorithm; the code is net/ipv4/tcp_NAME.c."""
    config: str
    """Build option of the kernel, without ``CONFIG_TCP_CONG_``; empty if it is always built in."""


CATALOGUE: dict[str, Algorithm] = {
    "reno": Algorithm(
        "slow start, then one more segment per RTT; a loss halves cwnd", "RFC 5681, RFC 6582", ""
    ),
    "cubic": Algorithm(
        "Linux's default: cwnd is a cubic function of time since the last loss; cuts to 0.7",
        "RFC 9438",
        "CUBIC",
    ),
    "bbr": Algorithm(
        "estimates bottleneck rate and base RTT and paces by them; mostly ignores loss",
        "Cardwell et al., BBR: Congestion-Based Congestion Control, ACM Queue 14(5), 2016",
        "BBR",
    ),
    "vegas": Algorithm(
        "keeps 2 to 4 segments in the queue, judged by RTT; yields to flows that fill it",
        "Brakmo, Peterson, TCP Vegas, IEEE JSAC 13(8), 1995",
        "VEGAS",
    ),
    "westwood": Algorithm(
        "Reno, but a loss sets cwnd by the estimated bandwidth; for wireless links",
        "Mascolo et al., TCP Westwood, MobiCom 2001",
        "WESTWOOD",
    ),
    "htcp": Algorithm(
        "the longer ago the last loss, the faster cwnd grows; for fast long paths",
        "Leith, Shorten, H-TCP, PFLDnet 2004",
        "HTCP",
    ),
    "hybla": Algorithm(
        "scales growth by the RTT: as fast on satellite paths as on short ones",
        "Caini, Firrincieli, TCP Hybla, IJSCN 22, 2004",
        "HYBLA",
    ),
    "highspeed": Algorithm(
        "the larger cwnd, the faster it grows and the less a loss reduces it", "RFC 3649", "HSTCP"
    ),
    "illinois": Algorithm(
        "Reno with growth and reduction set by queueing delay",
        "Liu, Basar, Srikant, TCP-Illinois, VALUETOOLS 2006",
        "ILLINOIS",
    ),
    "scalable": Algorithm(
        "one segment per 100 acknowledged, an eighth less on loss, whatever the window",
        "Kelly, Scalable TCP, CCR 33(2), 2003",
        "SCALABLE",
    ),
    "veno": Algorithm(
        "Reno that separates random loss from congestion by Vegas' estimate; for wireless links",
        "Fu, Liew, TCP Veno, IEEE JSAC 21(2), 2003",
        "VENO",
    ),
    "yeah": Algorithm(
        "Scalable TCP while the queue is short, Reno once it grows",
        "Baiocchi, Castellani, Vacirca, YeAH-TCP, PFLDnet 2007",
        "YEAH",
    ),
    "bic": Algorithm(
        "finds the window by binary search; the predecessor of CUBIC",
        "Xu, Harfoush, Rhee, Binary Increase Congestion Control, INFOCOM 2004",
        "BIC",
    ),
    "cdg": Algorithm(
        "backs off, with some probability, when the RTT rises; tolerates random loss",
        "Hayes, Armitage, CAIA Delay-Gradient TCP, Networking 2011",
        "CDG",
    ),
    "dctcp": Algorithm(
        "reduces cwnd in proportion to the share of ECN-marked packets; for data centres",
        "RFC 8257",
        "DCTCP",
    ),
    "lp": Algorithm(
        "background traffic: uses only what other flows leave, judged by one-way delay",
        "Kuzmanovic, Knightly, TCP-LP, INFOCOM 2003",
        "LP",
    ),
    "nv": Algorithm(
        "successor of Vegas for data centres: compares measured and expected rates",
        "Brakmo, TCP-NV, net/ipv4/tcp_nv.c, 2015",
        "NV",
    ),
}
"""Every congestion control that comes with Linux, by name."""


# --- differentiated services code points by name: RFC 2474, 2597, 3246, 5865 and 8622 -------------

CODE_POINTS = {
    **{f"CS{number}": number << 3 for number in range(8)},
    **{f"AF{each}{drop}": each << 3 | drop << 1 for each in range(1, 5) for drop in range(1, 4)},
    "LE": 1,
    "VA": 44,
    "EF": 46,
}
"""Code points of six bits by name; tc and iperf3 use the same names."""

DEFAULT = "CS0"
"""Default code point, best effort."""


def type_of_service(name: str) -> int:
    """Return the byte of the IP header with a code point, both bits of ECN clear."""
    return CODE_POINTS[name] << 2


# --- the distributions of jitter: the tables of tc-netem(8), computed -----------------------------
# A packet draws an entry: its distance from the mean in jitters, times 8192, ``NETEM_DIST_SCALE``.

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
