"""The parameters of queue disciplines as ``TCA_OPTIONS``, and back.

Attributes and structs are those of include/uapi/linux/pkt_sched.h, as ``tc`` sends them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from ccplay.errors import CommandError
from ccplay.lab.netlink import U32, U64, join, split
from ccplay.lab.rtnl import red_eval_ewma, red_eval_idle_damping, red_eval_P, tick_in_usec
from ccplay.model.base import Option
from ccplay.model.disciplines import DISCIPLINES, thresholds
from ccplay.model.values import Qdisc

Options: TypeAlias = Mapping[str, Option]

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
    kind: str, thresholds: tuple[int, int], options: Options, packet: int
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


def _red(kind: str, options: Options) -> bytes:
    """Return the attributes ``TCA_RED_*`` or ``TCA_CHOKE_*``."""
    least, most = thresholds(options)
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
    found = {1: PARAMETERS.pack(*head), 2: bytes(map(int, table)), 3: U32.pack(probability)}
    if newer:
        found[4] = struct.pack("=II", flags, flags)
    return join(found)


def _red_held(kind: str, image: bytes) -> dict[str, Option]:
    found = split(image)
    limit, least, most, _, _, _, flags = PARAMETERS.unpack(found[1])
    if 4 in found:
        flags |= struct.unpack("=II", found[4])[0]
    names = _FLAGS if kind == "red" else ("ecn",)
    options: dict[str, Option] = {"limit": limit, "min": least, "max": most}
    options |= {name: bool(flags & _FLAGS[name]) for name in names}
    # With ``adaptive`` the kernel changes the probability itself.
    if 3 in found and not flags & ADAPTIVE:
        options["probability"] = U32.unpack(found[3])[0] / 2**32
    return options


# --- options of queue disciplines that the kernel has as a struct, alone or among attributes ------
# include/uapi/linux/pkt_sched.h; rates in bytes per second, times of token buckets in ticks.

_PRIO = struct.Struct("=i16B")
_SFQ, _SFQ_RED = struct.Struct("=IiIII"), struct.Struct("=IIIIIBBBBI24x")
"""Formats of ``struct tc_sfq_qopt``, and of what ``tc_sfq_qopt_v1`` adds."""


def _fifo(options: Options) -> bytes:
    return U32.pack(int(options["limit"]))


def _fifo_held(image: bytes) -> dict[str, Option]:
    return {"limit": U32.unpack_from(image)[0]}


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


_RATE = struct.Struct("=BBHhHI")
"""Format of ``struct tc_ratespec``."""
_TBF = struct.Struct("=12s12sIII")
_ETHERNET = 1
"""Link layer ``TC_LINKLAYER_ETHERNET``, for which the kernel needs no table of times."""
_LARGEST = 2**32 - 1


def _tbf(options: Options) -> bytes:
    rate, peak = (int(options.get(name, 0)) // 8 for name in ("rate", "peakrate"))
    spec, peak_spec = (
        _RATE.pack(0, _ETHERNET, 0, 0, 0, min(each, _LARGEST)) if each else bytes(_RATE.size)
        for each in (rate, peak)
    )
    burst, bucket = int(options["burst"]), int(options.get("mtu", 0))
    peak_ticks = _ticks(bucket, peak) if peak else 0
    found = {
        1: _TBF.pack(spec, peak_spec, int(options["limit"]), _ticks(burst, rate), peak_ticks),
        6: U32.pack(burst),
    }
    if rate > _LARGEST:
        found[4] = U64.pack(rate)
    if peak:
        found[7] = U32.pack(bucket)
        if peak > _LARGEST:
            found[5] = U64.pack(peak)
    return join(found)


def _tbf_held(image: bytes) -> dict[str, Option]:
    spec, peak_spec, limit, buffer, bucket = _TBF.unpack_from(split(image)[1])
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


# --- kinds whose attributes, or words of a struct, are numbers ----------------------------------

_U8 = struct.Struct("=B")


class _Word(NamedTuple):
    """An attribute that holds one number, and its conversion to and from a parameter."""

    number: int
    """Number of the attribute, or of the word in a struct."""
    to: Callable[[Any], int] = int
    back: Callable[[int], Option] = int
    form: struct.Struct = U32


_SFB = struct.Struct("=9I")
_IN_MS = (lambda us: int(us) // 1000, lambda ms: ms * 1000)
_IN_PARTS = (lambda share: round(float(share) * 0xFFFF), lambda part: part / 0xFFFF)
_SFB_WORDS = {
    "rehash": _Word(0, *_IN_MS),
    "db": _Word(1, *_IN_MS),
    "max": _Word(2),
    "target": _Word(3),
    "increment": _Word(4, *_IN_PARTS),
    "decrement": _Word(5, *_IN_PARTS),
    "limit": _Word(6),
    "penalty_rate": _Word(7),
    "penalty_burst": _Word(8),
}
"""Words of ``struct tc_sfb_qopt``."""


def _sfb(options: Options) -> bytes:
    known = {each.name: each.default for each in DISCIPLINES["sfb"].parameters}
    values = {**known, **options}
    words = (word.to(values[name] or 0) for name, word in _SFB_WORDS.items())
    return join({1: _SFB.pack(*words)})


def _sfb_held(image: bytes) -> dict[str, Option]:
    words = _SFB.unpack_from(split(image)[1])
    return {name: word.back(words[word.number]) for name, word in _SFB_WORDS.items()}


def _numbers(kind: str, options: Options) -> bytes:
    words = _WORDS[kind]
    found: dict[int, bytes] = {}
    if kind == "dualpi2" and "max_rtt" in options:
        found |= _gains(options)
    if kind == "cake" and "rtt" in options:
        found[_CAKE_TARGET] = U32.pack(max(1, int(options["rtt"]) // 20))
    for name, value in options.items():
        if (word := words.get(name)) is None:
            continue
        image = word.form.pack(word.to(value))
        # Two switches may share an attribute, such as CAKE's for ACKs: the larger number counts.
        found[word.number] = max(found.get(word.number, b""), image)
    return join(found)


def _numbers_held(kind: str, image: bytes) -> dict[str, Option]:
    found = split(image)
    return {
        name: word.back(word.form.unpack(found[word.number])[0])
        for name, word in _WORDS[kind].items()
        if word.number in found and len(found[word.number]) == word.form.size
    }


def _words(*names: str) -> dict[str, _Word]:
    """Return the attributes of these parameters, numbered from 1; ``""`` skips a number."""
    return {
        name: _Word(at, back=bool) if name in _SWITCHES else _Word(at)
        for at, name in enumerate(names, start=1)
        if name
    }


_SWITCHES = {"ecn", "bytemode", "dq_rate_estimator", "pacing"}


def _rate(number: int, form: struct.Struct = U32) -> _Word:
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


def _gains(options: Options) -> dict[int, bytes]:
    """Return the attributes of DualPI2's gains for ``max_rtt``, in 1/256 Hz; RFC 9332, app. A.1."""
    update_s = int(options.get("tupdate", 16_000)) / 1e6
    rtt_s = int(options["max_rtt"]) / 1e6
    gains = 0.1 * update_s / rtt_s**2, 0.3 / rtt_s
    return {5 + at: U32.pack(max(1, round(256 * gain))) for at, gain in enumerate(gains)}


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
        "bandwidth": _rate(2, U64),
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


# --- all kinds --------------------------------------------------------------------------------


class _Form(NamedTuple):
    """How the options of a kind become its ``TCA_OPTIONS``, and are read from it."""

    pack: Callable[[Options], bytes]
    read: Callable[[bytes], dict[str, Option]]
    nested: bool = True


_FORMS = {
    "pfifo": _Form(_fifo, _fifo_held, nested=False),
    "bfifo": _Form(_fifo, _fifo_held, nested=False),
    "pfifo_fast": _Form(lambda _: b"", lambda _: {}, nested=False),
    "prio": _Form(_prio, _prio_held, nested=False),
    "sfq": _Form(_sfq, _sfq_held, nested=False),
    "tbf": _Form(_tbf, _tbf_held),
    "sfb": _Form(_sfb, _sfb_held),
    **{kind: _Form(partial(_red, kind), partial(_red_held, kind)) for kind in ("red", "choke")},
    **{kind: _Form(partial(_numbers, kind), partial(_numbers_held, kind)) for kind in _WORDS},
}


def encode(qdisc: Qdisc) -> tuple[bytes, bool]:
    """Return the ``TCA_OPTIONS`` of a validated ``qdisc``, and whether it is nested.

    Raises ``CommandError`` for parameters that do not go together.
    """
    form = _FORMS[qdisc.kind]
    return form.pack(qdisc.options), form.nested


def decode(kind: str, image: bytes) -> dict[str, Option]:
    """Return the options in the kernel's ``TCA_OPTIONS``, in the units of ``model.Qdisc``."""
    return _FORMS[kind].read(image)
