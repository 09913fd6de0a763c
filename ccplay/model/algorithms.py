"""Facts about every congestion control that comes with Linux."""

from __future__ import annotations

from typing import NamedTuple


class Algorithm(NamedTuple):
    """Facts about a congestion control of Linux."""

    summary: str
    source: str
    """Its description: an RFC or a paper; the code is net/ipv4/tcp_NAME.c."""
    config: str
    """The kernel's build option, without ``CONFIG_TCP_CONG_``; empty where always built in."""


CATALOGUE: dict[str, Algorithm] = {
    "reno": Algorithm(
        "slow start, then one segment more an RTT; halves on loss",
        "RFC 5681, RFC 6582",
        "",
    ),
    "cubic": Algorithm(
        "Linux's default: grows along a cubic curve back to where loss came last; cuts to 0.7",
        "RFC 9438",
        "CUBIC",
    ),
    "bbr": Algorithm(
        "models bottleneck rate and base RTT and paces by them; mostly ignores loss",
        "Cardwell et al., BBR: Congestion-Based Congestion Control, ACM Queue 14(5), 2016",
        "BBR",
    ),
    "vegas": Algorithm(
        "keeps 2 to 4 segments in the queue, by RTT alone; yields to whatever fills it",
        "Brakmo, Peterson, TCP Vegas, IEEE JSAC 13(8), 1995",
        "VEGAS",
    ),
    "westwood": Algorithm(
        "Reno that, on loss, falls to the bandwidth estimated from ACKs: for wireless links",
        "Mascolo et al., TCP Westwood, MobiCom 2001",
        "WESTWOOD",
    ),
    "htcp": Algorithm(
        "grows faster the longer ago the last loss is: for long fast paths",
        "Leith, Shorten, H-TCP, PFLDnet 2004",
        "HTCP",
    ),
    "hybla": Algorithm(
        "scales growth by RTT so that satellite paths grow like short ones",
        "Caini, Firrincieli, TCP Hybla, IJSCN 22, 2004",
        "HYBLA",
    ),
    "highspeed": Algorithm(
        "grows more and cuts less the larger the window is",
        "RFC 3649",
        "HSTCP",
    ),
    "illinois": Algorithm(
        "Reno whose growth and cut follow the queueing delay: loss decides when, delay how much",
        "Liu, Basar, Srikant, TCP-Illinois, VALUETOOLS 2006",
        "ILLINOIS",
    ),
    "scalable": Algorithm(
        "one segment more every 100 ACKs, minus an eighth on loss, whatever the window",
        "Kelly, Scalable TCP, CCR 33(2), 2003",
        "SCALABLE",
    ),
    "veno": Algorithm(
        "Reno with Vegas' queue estimate to tell random loss from congestion: for wireless links",
        "Fu, Liew, TCP Veno, IEEE JSAC 21(2), 2003",
        "VENO",
    ),
    "yeah": Algorithm(
        "scalable while the queue is short, Reno once it grows",
        "Baiocchi, Castellani, Vacirca, YeAH-TCP, PFLDnet 2007",
        "YEAH",
    ),
    "bic": Algorithm(
        "searches for the right window by halving the interval; CUBIC's predecessor",
        "Xu, Harfoush, Rhee, Binary Increase Congestion Control, INFOCOM 2004",
        "BIC",
    ),
    "cdg": Algorithm(
        "backs off when the RTT's gradient rises, with a probability; tolerates random loss",
        "Hayes, Armitage, CAIA Delay-Gradient TCP, Networking 2011",
        "CDG",
    ),
    "dctcp": Algorithm(
        "cuts in proportion to the share of ECN-marked packets; needs marking, for data centres",
        "RFC 8257",
        "DCTCP",
    ),
    "lp": Algorithm(
        "low priority: uses only what other flows leave, by one-way delay",
        "Kuzmanovic, Knightly, TCP-LP, INFOCOM 2003",
        "LP",
    ),
    "nv": Algorithm(
        "Vegas' successor for data centres: compares measured with expected rate",
        "Brakmo, TCP-NV, net/ipv4/tcp_nv.c, 2015",
        "NV",
    ),
}
"""One line on every congestion control that comes with Linux."""
