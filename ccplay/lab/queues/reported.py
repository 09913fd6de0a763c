"""Own values of the kernel's disciplines, and their offsets in the kernel's statistics.

``include/uapi/linux/pkt_sched.h``. Names are those of ``Sweep.queue_own``; ccplay's disciplines in
software use the same names for the same values.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType

from ccplay.lab.queues.attributes import U32, walk

WORDS: Mapping[str, Mapping[str, int]] = {
    "codel": {"codel_count": 4, "codel_ldelay_us": 12, "codel_dropping": 28},
    "fq_codel": {
        "fq_codel_new_flows": 20,
        "fq_codel_old_flows": 24,
        "fq_codel_memory_bytes": 32,
    },
    "red": {"red_early_packets": 0, "red_pdrop_packets": 4},
    "choke": {"choke_early_packets": 0, "choke_matched_packets": 16},
    "pie": {"pie_delay_us": 8},
    "fq_pie": {"fq_pie_new_flows": 24, "fq_pie_old_flows": 28, "fq_pie_memory_bytes": 32},
    "dualpi2": {"dualpi2_classic_delay_us": 4, "dualpi2_l4s_delay_us": 8},
    "fq": {"fq_flows": 64, "fq_inactive_flows": 68, "fq_throttled_flows": 72},
}
"""Offsets of 32-bit words in ``tc_KIND_xstats``, by discipline."""

STRUCTURED = frozenset({"pie", "dualpi2", "cake"})
"""Disciplines whose statistics are not only words; see ``more``."""

_PIE = struct.Struct("=Q8x4x4x4x4x4x")
"""Format of ``struct tc_pie_xstats`` since Linux 5.1, which begins with the probability."""

_TINS = 10
"""Attribute ``TCA_CAKE_STATS_TIN_STATS``, with an attribute for each tin, lowest priority first."""
_MARKS, _BACKLOG, _SPARSE, _BULK = 8, 11, 21, 22
"""Attributes of a tin: ``TCA_CAKE_TIN_STATS_*``; sparse flows are new, bulk flows the others."""
_NAMES = {
    1: ("best_effort",),
    3: ("bulk", "best_effort", "voice"),
    4: ("bulk", "best_effort", "video", "voice"),
}
"""Names of tins by how many there are: besteffort, diffserv3, diffserv4; in others by number."""

_NOTHING: Mapping[str, int] = MappingProxyType({})


def more(kind: str, data: bytes, at: int, end: int) -> Mapping[str, int]:
    """Return the own values of a discipline that are not among its ``WORDS``."""
    match kind:
        case "pie" if end - at >= _PIE.size:
            (probability,) = _PIE.unpack_from(data, at)
            return {"pie_prob_1000000": probability * 10**6 >> 64}
        case "dualpi2" if end - at >= U32.size:
            (probability,) = U32.unpack_from(data, at)
            return {"dualpi2_prob_1000000": probability * 10**6 >> 32}
        case "cake":
            return _tins(data, at, end)
    return _NOTHING


def cake_marks(data: bytes, at: int, end: int) -> int:
    """Return the sum of the marks of all of cake's tins."""
    return sum(_number(data, tin, _MARKS) for tin in _each_tin(data, at, end))


def _tins(data: bytes, at: int, end: int) -> Mapping[str, int]:
    tins = _each_tin(data, at, end)
    names = _NAMES.get(len(tins), tuple(f"tin{number}" for number in range(len(tins))))
    found = {}
    for name, tin in zip(names, tins, strict=True):
        found[f"cake_{name}_bytes"] = _number(data, tin, _BACKLOG)
        flows = _number(data, tin, _SPARSE) + _number(data, tin, _BULK)
        found[f"cake_{name}_flows"] = flows
    return found


def _each_tin(data: bytes, at: int, end: int) -> list[dict[int, tuple[int, int]]]:
    tins = walk(data, at, end).get(_TINS)
    return [walk(data, *each) for each in walk(data, *tins).values()] if tins else []


def _number(data: bytes, tin: Mapping[int, tuple[int, int]], attribute: int) -> int:
    place = tin.get(attribute)
    return int(U32.unpack_from(data, place[0])[0]) if place else 0
