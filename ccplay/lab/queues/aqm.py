"""RED, PIE, FQ-PIE and FQ as netlink attributes, which pyroute2 does not encode.

Attributes are those of include/uapi/linux/pkt_sched.h, as ``tc`` sends them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from ccplay.lab.network.netlink import (
    NLA_F_NESTED,
    nla,
    plugins,
    red_eval_ewma,
    red_eval_idle_damping,
    red_eval_P,
    sched_choke,
)
from ccplay.model.base import Option
from ccplay.model.disciplines import thresholds

RED_ECN, RED_ADAPTIVE = 1, 4
"""``TC_RED_ECN``, ``TC_RED_ADAPTATIVE``."""

_PACKET = 1000
"""Average bytes of a packet, for ``tc-red(8)``: RED counts bytes and computes in packets."""
_PROBABILITY = 0.02
"""Probability of a drop when the average queue is at ``max``."""


def _numbers(prefix: str, *names: str) -> tuple[tuple[str, str], ...]:
    """Return a map of attributes that are all 32-bit numbers; ``""`` has a number but no name."""
    kinds = ("none", *("uint32" for _ in names))
    return tuple((f"{prefix}_{name}", kind) for name, kind in zip(("", *names), kinds, strict=True))


class _Red(nla):  # type: ignore[misc]
    nla_map = (
        ("TCA_RED_UNSPEC", "none"),
        ("TCA_RED_PARMS", "qopt"),
        ("TCA_RED_STAB", "stab"),
        ("TCA_RED_MAX_P", "uint32"),
    )
    qopt = sched_choke.options.qopt
    stab = sched_choke.options.stab


class _Pie(nla):  # type: ignore[misc]
    nla_map = _numbers("TCA_PIE", "TARGET", "LIMIT", "TUPDATE", "ALPHA", "BETA", "ECN", "BYTEMODE")


class _FqPie(nla):  # type: ignore[misc]
    nla_flags = NLA_F_NESTED
    nla_map = _numbers(
        "TCA_FQ_PIE",
        *("LIMIT", "FLOWS", "TARGET", "TUPDATE", "ALPHA", "BETA", "QUANTUM", "MEMORY_LIMIT"),
        *("ECN_PROB", "ECN", "BYTEMODE"),
    )


class _Fq(nla):  # type: ignore[misc]
    nla_map = _numbers(
        "TCA_FQ",
        *("PLIMIT", "FLOW_PLIMIT", "QUANTUM", "INITIAL_QUANTUM", "RATE_ENABLE"),
        *("FLOW_DEFAULT_RATE", "FLOW_MAX_RATE", "BUCKETS_LOG", "FLOW_REFILL_DELAY"),
        *("LOW_RATE_THRESHOLD", "ORPHAN_MASK", "CE_THRESHOLD"),
    )


for _kind, _options in {"red": _Red, "pie": _Pie, "fq_pie": _FqPie, "fq": _Fq}.items():
    plugins.setdefault(_kind, SimpleNamespace(options=_options))


def red_options(options: Mapping[str, Option]) -> dict[str, Any]:
    """Return RED's ``TCA_OPTIONS``, as ``tc-red(8)`` computes them from validated options."""
    least, most = thresholds(options)
    burst = (2 * least + most) // (3 * _PACKET)
    weight = red_eval_ewma(least, burst, _PACKET)
    idle, table = red_eval_idle_damping(weight, _PACKET, int(options["bandwidth"]) // 8)
    flags = RED_ECN * bool(options.get("ecn")) | RED_ADAPTIVE * bool(options.get("adaptive"))
    parameters = {
        "limit": int(options["limit"]),
        "qth_min": least,
        "qth_max": most,
        "Wlog": weight,
        "Plog": red_eval_P(least, most, _PROBABILITY),
        "Scell_log": idle,
        "flags": flags,
    }
    return {
        "attrs": [
            ["TCA_RED_PARMS", parameters],
            ["TCA_RED_STAB", table],
            ["TCA_RED_MAX_P", int(_PROBABILITY * 2**32)],
        ]
    }
