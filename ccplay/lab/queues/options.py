"""Converts the parameters of queue disciplines to ``TCA_OPTIONS`` and back.

Attributes and structs are those of include/uapi/linux/pkt_sched.h, as ``tc`` sends them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ccplay.lab.queues import averages
from ccplay.lab.queues.structs import NESTS, STRUCTS
from ccplay.model.base import Option
from ccplay.model.disciplines import thresholds
from ccplay.model.values import Qdisc

NESTED = 0x8000
"""Flag ``NLA_F_NESTED`` of an attribute that contains others."""
_TYPE = 0x3FFF

_ATTRIBUTE = struct.Struct("=HH")
_U32, _U64, _U8 = struct.Struct("=I"), struct.Struct("=Q"), struct.Struct("=B")


class _Word(NamedTuple):
    """An attribute that holds one number, and its conversion to and from a parameter."""

    number: int
    to: Callable[[Any], int] = int
    back: Callable[[int], Option] = int
    form: struct.Struct = _U32


def encode(qdisc: Qdisc) -> tuple[bytes, bool]:
    """Return the ``TCA_OPTIONS`` of a validated ``qdisc``, and whether it is nested.

    Raises ``CommandError`` for parameters that do not go together.
    """
    kind, options = qdisc.kind, qdisc.options
    if kind in STRUCTS:
        return STRUCTS[kind][0](options), False
    if kind in ("red", "choke"):
        return join(averages.attributes(kind, options, thresholds(options))), True
    if kind in NESTS:
        return join(NESTS[kind][0](options)), True
    words = _WORDS[kind]
    found: dict[int, bytes] = {}
    if kind == "dualpi2" and "max_rtt" in options:
        found |= _gains(options)
    if kind == "cake" and "rtt" in options:
        found[_CAKE_TARGET] = _U32.pack(max(1, int(options["rtt"]) // 20))
    for name, value in options.items():
        if (word := words.get(name)) is None:
            continue
        image = word.form.pack(word.to(value))
        # Two switches may share an attribute, such as CAKE's for ACKs: the larger number counts.
        found[word.number] = max(found.get(word.number, b""), image)
    return join(found), True


def decode(kind: str, image: bytes) -> dict[str, Option]:
    """Return the options in the kernel's ``TCA_OPTIONS``, in the units of ``model.Qdisc``."""
    if kind in STRUCTS:
        return STRUCTS[kind][1](image)
    found = split(image)
    if kind in ("red", "choke"):
        return averages.held(kind, found)
    if kind in NESTS:
        return NESTS[kind][1](found)
    return {
        name: word.back(word.form.unpack(found[word.number])[0])
        for name, word in _WORDS[kind].items()
        if word.number in found and len(found[word.number]) == word.form.size
    }


def join(attributes: Mapping[int, bytes]) -> bytes:
    """Return numbered attributes as bytes for netlink."""
    return b"".join(attribute(number, value) for number, value in attributes.items())


def attribute(number: int, value: bytes) -> bytes:
    """Return one attribute with its header and padding."""
    return _ATTRIBUTE.pack(4 + len(value), number) + value + bytes(-len(value) % 4)


def split(image: bytes) -> dict[int, bytes]:
    """Return the attributes of an image by number; the last one of a number counts."""
    found, at = {}, 0
    while at + 4 <= len(image):
        size, number = _ATTRIBUTE.unpack_from(image, at)
        found[number & _TYPE] = image[at + 4 : at + size]
        at += max((size + 3) & ~3, 4)
    return found


# --- kinds whose attributes are numbers ------------------------------------------------------


def _words(*names: str) -> dict[str, _Word]:
    """Return the attributes of these parameters, numbered from 1; ``""`` skips a number."""
    return {name: _switched(name, at) for at, name in enumerate(names, start=1) if name}


def _switched(name: str, number: int) -> _Word:
    return _Word(number, back=bool) if name in _SWITCHES else _Word(number)


_SWITCHES = {"ecn", "bytemode", "dq_rate_estimator", "pacing", "nat", "wash", "ingress"}


def _rate(number: int, form: struct.Struct = _U32) -> _Word:
    return _Word(number, lambda bits: int(bits) // 8, lambda octets: octets * 8, form)


def _named(number: int, *names: str) -> _Word:
    return _Word(number, names.index, lambda at: names[at])


_FLOW_MODES = (
    *("flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost"),
    "triple-isolate",
)
_DIFFSERV_MODES = ("diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence")

_FLAG = _Word(0, back=bool, form=_U8)


_CAKE_TARGET = 8
"""Attribute ``TCA_CAKE_TARGET``: a twentieth of the RTT in microseconds, which tc also sends
(q_cake.c); without it the kernel keeps 5 ms."""


def _gains(options: Mapping[str, Option]) -> dict[int, bytes]:
    """Return the attributes of DualPI2's gains for ``max_rtt``, in 1/256 Hz; RFC 9332, app. A.1."""
    update_s = int(options.get("tupdate", 16_000)) / 1e6
    rtt_s = int(options["max_rtt"]) / 1e6
    gains = 0.1 * update_s / rtt_s**2, 0.3 / rtt_s
    return {5 + at: _U32.pack(max(1, round(256 * gain))) for at, gain in enumerate(gains)}


_WORDS: dict[str, dict[str, _Word]] = {
    "codel": _words("target", "limit", "interval", "ecn", "ce_threshold"),
    "fq_codel": {
        **_words(
            *("target", "limit", "interval", "ecn", "flows", "quantum", "ce_threshold"),
            *("drop_batch", "memory_limit"),
        ),
        "ce_threshold_selector": _Word(10, form=_U8),
        "ce_threshold_mask": _Word(11, form=_U8),
    },
    "pie": _words(
        *("target", "limit", "tupdate", "alpha", "beta", "ecn", "bytemode", "dq_rate_estimator")
    ),
    "fq_pie": _words(
        *("limit", "flows", "target", "tupdate", "alpha", "beta", "quantum", "memory_limit"),
        *("ecn_prob", "ecn", "bytemode", "dq_rate_estimator"),
    ),
    "fq": {
        **_words("limit", "flow_limit", "quantum", "initial_quantum", "pacing"),
        "maxrate": _rate(7),
        "buckets": _Word(8, lambda count: int(count).bit_length() - 1, lambda log: 1 << log),
        "refill_delay": _Word(9),
        "orphan_mask": _Word(10),
        "low_rate_threshold": _rate(11),
        "ce_threshold": _Word(12),
        "timer_slack": _Word(13, lambda us: int(us) * 1000, lambda ns: ns // 1000),
        "horizon": _Word(14),
        "horizon_drop": _Word(15, back=bool, form=_U8),
    },
    "cake": {
        "bandwidth": _rate(2, _U64),
        "diffserv_mode": _named(3, *_DIFFSERV_MODES),
        "atm": _named(4, "noatm", "atm", "ptm"),
        "flow_mode": _named(5, *_FLOW_MODES),
        "overhead": _Word(6),
        "rtt": _Word(7),
        "autorate_ingress": _Word(9, back=bool),
        "memlimit": _Word(10),
        "nat": _Word(11, back=bool),
        "wash": _Word(13, back=bool),
        "mpu": _Word(14),
        "ingress": _Word(15, back=bool),
        "ack_filter": _Word(16, back=bool),
        "ack_filter_aggressive": _Word(16, lambda on: 2 * bool(on), lambda mode: mode > 1),
        "split_gso": _Word(17, back=bool),
        "fwmark": _Word(18),
    },
    "hhf": _words(
        *("limit", "quantum", "hh_limit", "reset_timeout", "admit_bytes", "evict_timeout"),
        "non_hh_weight",
    ),
    "dualpi2": {
        "limit": _Word(1),
        "memlimit": _Word(2),
        "target": _Word(3),
        "tupdate": _Word(4),
        "step_thresh": _Word(8),
        "min_qlen_step": _Word(9),
        "coupling_factor": _Word(10, form=_U8),
        "drop_on_overload": _FLAG._replace(number=11),
        "drop_enqueue": _FLAG._replace(number=12),
        "classic_protection": _Word(13, form=_U8),
        "any_ect": _Word(14, lambda on: 3 if on else 1, lambda mask: mask == 3, _U8),
        "split_gso": _FLAG._replace(number=15),
    },
}
"""Attributes ``TCA_KIND_…`` by kind and parameter."""
