"""The parameters of queue disciplines as ``TCA_OPTIONS``, and back.

Attributes and structs are those of include/uapi/linux/pkt_sched.h, as ``tc`` sends them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from ccplay.errors import CommandError
from ccplay.lab.rtnl import red_eval_ewma, red_eval_idle_damping, red_eval_P, tick_in_usec
from ccplay.model.base import Option
from ccplay.model.disciplines import DISCIPLINES, thresholds
from ccplay.model.values import Qdisc

# --- parameters of RED's and CHOKe's average queue in the kernel's units, computed as tc does -----

ECN, HARDDROP, ADAPTIVE, NODROP = 1, 2, 4, 8
"""Flags ``TC_RED_ECN``, ``TC_RED_HARDDROP``, ``TC_RED_ADAPTATIVE`` and ``TC_RED_NODROP``; the first
three are ``TC_RED_HISTORIC_FLAGS``."""
_HISTORIC = ECN | HARDDROP | ADAPTIVE

_FLAGS = {"ecn": ECN, "harddrop": HARDDROP, "adaptive": ADAPTIVE, "nodrop": NODROP}

PARAMETERS = struct.Struct("=IIIBBBB")
"""Format of ``struct tc_red_qopt`` and ``tc_choke_qopt``."""

PROBABILITY = 0.02
"""Default probability of a drop when the average queue is at ``max``."""

_PACKET = 1000
"""Default length of an average packet in bytes; CHOKe's thresholds count such packets."""


def constants(
    kind: str, thresholds: tuple[int, int], options: Mapping[str, Option], packet: int
) -> tuple[int, int, int]:
    """Return ``Wlog``, ``Plog`` and ``max_P`` for thresholds and an average packet, in bytes.

    Raises ``CommandError`` if the burst is too small for the thresholds.
    """
    least, most = thresholds
    burst = int(options.get("burst") or (2 * least + most) // (3 * packet))
    probability = float(options.get("probability", PROBABILITY))
    try:
        weight = red_eval_ewma(least, burst, packet)
    except ValueError:
        weight = -1
    if weight < 0:
        raise CommandError(f"{kind}: burst: {burst} packets are too few for a min of {least} bytes")
    return weight, red_eval_P(least, most, probability), int(probability * 2**32)


def attributes(
    kind: str, options: Mapping[str, Option], thresholds: tuple[int, int]
) -> dict[int, bytes]:
    """Return the attributes ``TCA_RED_*`` or ``TCA_CHOKE_*`` of validated options, by number.

    Raises ``CommandError`` for parameters that do not go together.
    """
    least, most = thresholds
    packet = int(options.get("avpkt", _PACKET))
    unit = 1 if kind == "red" else packet
    in_bytes = least * unit, most * unit
    weight, step, probability = constants(kind, in_bytes, options, packet)
    idle, table = red_eval_idle_damping(weight, packet, int(options["bandwidth"]) // 8)
    if idle < 0:
        raise CommandError(f"{kind}: bandwidth: too low for the table of idle times")
    flags = sum(bit for name, bit in _FLAGS.items() if options.get(name))
    # If one of the flags is a newer one, all of them go into an attribute of their own.
    newer = flags & ~_HISTORIC
    if newer and not flags & ECN:
        raise CommandError(f"{kind}: nodrop: needs ecn")
    head = (int(options["limit"]), least, most, weight, step, idle, 0 if newer else flags)
    found = {1: PARAMETERS.pack(*head), 2: bytes(map(int, table)), 3: _U32.pack(probability)}
    if newer:
        found[4] = struct.pack("=II", flags, flags)
    return found


def read_options(kind: str, found: Mapping[int, bytes]) -> dict[str, Option]:
    """Return the options in the attributes that the kernel reports, given by number."""
    limit, least, most, _, _, _, flags = PARAMETERS.unpack(found[1])
    if 4 in found:
        flags |= struct.unpack("=II", found[4])[0]
    names = _FLAGS if kind == "red" else ("ecn",)
    options: dict[str, Option] = {"limit": limit, "min": least, "max": most}
    options |= {name: bool(flags & _FLAGS[name]) for name in names}
    # With ``adaptive`` the kernel changes the probability itself.
    if 3 in found and not flags & ADAPTIVE:
        options["probability"] = _U32.unpack(found[3])[0] / 2**32
    return options


_U32 = struct.Struct("=I")


# --- options of queue disciplines that the kernel has as a struct, alone or among attributes ------
# include/uapi/linux/pkt_sched.h; rates in bytes per second, times of token buckets in ticks.

_STRUCTS_U32, _U64 = struct.Struct("=I"), struct.Struct("=Q")

Options: TypeAlias = Mapping[str, Option]
Attributes: TypeAlias = Mapping[int, bytes]

# --- kinds whose options are one struct ------------------------------------------------------

_PRIO = struct.Struct("=i16B")
_SFQ, _SFQ_RED = struct.Struct("=IiIII"), struct.Struct("=IIIIIBBBBI24x")
"""Formats of ``struct tc_sfq_qopt``, and of what ``tc_sfq_qopt_v1`` adds."""


def _fifo(options: Options) -> bytes:
    return _STRUCTS_U32.pack(int(options["limit"]))


def _fifo_held(image: bytes) -> dict[str, Option]:
    return {"limit": _STRUCTS_U32.unpack_from(image)[0]}


def _prio(options: Options) -> bytes:
    bands, priomap = (options.get(each.name, each.default) for each in _BANDS)
    return _PRIO.pack(int(bands or 0), *map(int, str(priomap).split()))


def _prio_held(image: bytes) -> dict[str, Option]:
    bands, *priomap = _PRIO.unpack_from(image)
    return {"bands": bands, "priomap": " ".join(map(str, priomap))}


_BANDS = tuple(DISCIPLINES["prio"].parameter(name) for name in ("bands", "priomap"))


def _sfq(options: Options) -> bytes:
    names = ("quantum", "perturb", "limit", "divisor", "flows")
    plain = _SFQ.pack(*(int(options.get(name, 0)) for name in names))
    most = int(options.get("redflowlimit", 0))
    least = longest = weight = step = probability = 0
    if most:
        longest = int(options.get("max", most // 4))
        least = int(options.get("min", longest // 3))
        packet = int(options.get("avpkt", 1000))
        weight, step, probability = constants("sfq", (least, longest), options, packet)
    flags = ECN * bool(options.get("ecn")) | HARDDROP * bool(options.get("harddrop"))
    red = _SFQ_RED.pack(
        *(int(options.get("depth", 0)), bool(options.get("headdrop")), most, least, longest),
        *(weight, step, 0, flags, probability),
    )
    return plain + red


def _sfq_held(image: bytes) -> dict[str, Option]:
    quantum, perturb, limit, divisor, flows = _SFQ.unpack_from(image)
    options: dict[str, Option] = {"limit": limit, "flows": flows, "quantum": quantum}
    options |= {"perturb": perturb, "divisor": divisor}
    if len(image) >= _SFQ.size + _SFQ_RED.size:
        # ``sfq_dump`` (net/sched/sch_sfq.c) does not fill in the third field, redflowlimit.
        depth, headdrop, _, least, longest, _, _, _, flags, probability = _SFQ_RED.unpack_from(
            image, _SFQ.size
        )
        options |= {"depth": depth, "headdrop": bool(headdrop)}
        options |= {"ecn": bool(flags & ECN), "harddrop": bool(flags & HARDDROP)}
        if least:
            options |= {"min": least, "max": longest, "probability": probability / 2**32}
    return options


STRUCTS: dict[str, tuple[Callable[[Options], bytes], Callable[[bytes], dict[str, Option]]]] = {
    "pfifo": (_fifo, _fifo_held),
    "bfifo": (_fifo, _fifo_held),
    "pfifo_fast": (lambda _: b"", lambda _: {}),
    "prio": (_prio, _prio_held),
    "sfq": (_sfq, _sfq_held),
}
"""Functions by kind that pack its options into one struct, and unpack them."""

# --- kinds with a struct among their attributes ----------------------------------------------

_RATE = struct.Struct("=BBHhHI")
"""Format of ``struct tc_ratespec``."""
_TBF, _SFB = struct.Struct("=12s12sIII"), struct.Struct("=9I")
_ETHERNET = 1
"""Link layer ``TC_LINKLAYER_ETHERNET``, for which the kernel needs no table of times."""
_LARGEST = 2**32 - 1


def _tbf(options: Options) -> dict[int, bytes]:
    rate, peak = (int(options.get(name, 0)) // 8 for name in ("rate", "peakrate"))
    spec, peak_spec = (
        _RATE.pack(0, _ETHERNET, 0, 0, 0, min(each, _LARGEST)) if each else bytes(_RATE.size)
        for each in (rate, peak)
    )
    burst, bucket = int(options["burst"]), int(options.get("mtu", 0))
    peak_ticks = _ticks(bucket, peak) if peak else 0
    found = {
        1: _TBF.pack(spec, peak_spec, int(options["limit"]), _ticks(burst, rate), peak_ticks),
        6: _STRUCTS_U32.pack(burst),
    }
    if rate > _LARGEST:
        found[4] = _U64.pack(rate)
    if peak:
        found[7] = _STRUCTS_U32.pack(bucket)
        if peak > _LARGEST:
            found[5] = _U64.pack(peak)
    return found


def _tbf_held(found: Attributes) -> dict[str, Option]:
    spec, peak_spec, limit, buffer, bucket = _TBF.unpack_from(found[1])
    rate, peak = _RATE.unpack(spec)[-1], _RATE.unpack(peak_spec)[-1]
    options: dict[str, Option] = {"rate": rate * 8, "burst": _octets(buffer, rate), "limit": limit}
    if peak:
        options |= {"peakrate": peak * 8, "mtu": _octets(bucket, peak)}
    return options


def _ticks(size: int, rate: int) -> int:
    return min(int(size / rate * 1e6 * tick_in_usec), _LARGEST)


def _octets(ticks: int, rate: int) -> int:
    octets: float = ticks / tick_in_usec * rate / 1e6
    return round(octets)


_SFB_NAMES = (
    *("rehash", "db", "max", "target", "increment", "decrement", "limit"),
    *("penalty_rate", "penalty_burst"),
)
_SFB_PROBABILITY = 0xFFFF


def _sfb(options: Options) -> dict[int, bytes]:
    known = {each.name: each.default for each in DISCIPLINES["sfb"].parameters}
    values = {**known, **options}
    words = [values[name] or 0 for name in _SFB_NAMES]
    return {1: _SFB.pack(*map(_sfb_word, _SFB_NAMES, words))}


def _sfb_word(name: str, value: Option) -> int:
    if name in ("increment", "decrement"):
        return round(float(value) * _SFB_PROBABILITY)
    return int(value) // 1000 if name in ("rehash", "db") else int(value)


def _sfb_held(found: Attributes) -> dict[str, Option]:
    words = dict(zip(_SFB_NAMES, _SFB.unpack_from(found[1]), strict=True))
    options: dict[str, Option] = {**words}
    options |= {name: words[name] / _SFB_PROBABILITY for name in ("increment", "decrement")}
    return options | {name: words[name] * 1000 for name in ("rehash", "db")}


NESTS: dict[
    str, tuple[Callable[[Options], dict[int, bytes]], Callable[[Attributes], dict[str, Option]]]
] = {"tbf": (_tbf, _tbf_held), "sfb": (_sfb, _sfb_held)}
"""Functions by kind that pack its options into attributes, one of them a struct, and unpack
them."""


# --- converts the parameters of queue disciplines to ``TCA_OPTIONS`` and back ---------------------

NESTED = 0x8000
"""Flag ``NLA_F_NESTED`` of an attribute that contains others."""
_TYPE = 0x3FFF

_ATTRIBUTE = struct.Struct("=HH")
_OPTIONS_U32, _OPTIONS_U64, _U8 = struct.Struct("=I"), struct.Struct("=Q"), struct.Struct("=B")


class _Word(NamedTuple):
    """An attribute that holds one number, and its conversion to and from a parameter."""

    number: int
    to: Callable[[Any], int] = int
    back: Callable[[int], Option] = int
    form: struct.Struct = _OPTIONS_U32


def encode(qdisc: Qdisc) -> tuple[bytes, bool]:
    """Return the ``TCA_OPTIONS`` of a validated ``qdisc``, and whether it is nested.

    Raises ``CommandError`` for parameters that do not go together.
    """
    kind, options = qdisc.kind, qdisc.options
    if kind in STRUCTS:
        return STRUCTS[kind][0](options), False
    if kind in ("red", "choke"):
        return join(attributes(kind, options, thresholds(options))), True
    if kind in NESTS:
        return join(NESTS[kind][0](options)), True
    words = _WORDS[kind]
    found: dict[int, bytes] = {}
    if kind == "dualpi2" and "max_rtt" in options:
        found |= _gains(options)
    if kind == "cake" and "rtt" in options:
        found[_CAKE_TARGET] = _OPTIONS_U32.pack(max(1, int(options["rtt"]) // 20))
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
        return read_options(kind, found)
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
    return {
        name: _Word(at, back=bool) if name in _SWITCHES else _Word(at)
        for at, name in enumerate(names, start=1)
        if name
    }


_SWITCHES = {"ecn", "bytemode", "dq_rate_estimator", "pacing", "nat", "wash", "ingress"}


def _rate(number: int, form: struct.Struct = _OPTIONS_U32) -> _Word:
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
    return {5 + at: _OPTIONS_U32.pack(max(1, round(256 * gain))) for at, gain in enumerate(gains)}


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
        "bandwidth": _rate(2, _OPTIONS_U64),
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


# --- attributes of a netlink message, read in place: netlink(7) -----------------------------------

U32 = struct.Struct("=I")


def walk(data: bytes, at: int, end: int) -> dict[int, tuple[int, int]]:
    """Return the start and end of each attribute's payload by type; the first of a type counts."""
    payloads: dict[int, tuple[int, int]] = {}
    while at + 4 <= end:
        size, kind = _ATTRIBUTE.unpack_from(data, at)
        payloads.setdefault(kind & _TYPE, (at + 4, at + size))
        at += max((size + 3) & ~3, 4)
    return payloads
