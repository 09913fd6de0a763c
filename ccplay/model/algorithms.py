"""Facts about every congestion control that comes with Linux."""

from __future__ import annotations

from typing import NamedTuple


class Algorithm(NamedTuple):
    """Facts about a congestion control of Linux."""

    summary: str
    source: str
    """RFC or paper that describes the algorithm; the code is net/ipv4/tcp_NAME.c."""
    config: str
    """Build option of the kernel, without ``CONFIG_TCP_CONG_``; empty if it is always built in."""


CATALOGUE: dict[str, Algorithm] = {
    "reno": Algorithm(
        "slow start, then one more segment per RTT; a loss halves cwnd",
        "RFC 5681, RFC 6582",
        "",
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
        "the larger cwnd, the faster it grows and the less a loss reduces it",
        "RFC 3649",
        "HSTCP",
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
