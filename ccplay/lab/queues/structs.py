"""Options of queue disciplines that the kernel has as a struct, alone or among attributes.

include/uapi/linux/pkt_sched.h; rates in bytes per second, times of token buckets in ticks.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import TypeAlias

from ccplay.lab.network.netlink import tick_in_usec
from ccplay.lab.queues import averages
from ccplay.model.base import Option
from ccplay.model.disciplines import DISCIPLINES

_U32, _U64 = struct.Struct("=I"), struct.Struct("=Q")

Options: TypeAlias = Mapping[str, Option]
Attributes: TypeAlias = Mapping[int, bytes]

# --- kinds whose options are one struct ------------------------------------------------------

_PRIO = struct.Struct("=i16B")
_SFQ, _SFQ_RED = struct.Struct("=IiIII"), struct.Struct("=IIIIIBBBBI24x")
"""Formats of ``struct tc_sfq_qopt``, and of what ``tc_sfq_qopt_v1`` adds."""


def _fifo(options: Options) -> bytes:
    return _U32.pack(int(options["limit"]))


def _fifo_held(image: bytes) -> dict[str, Option]:
    return {"limit": _U32.unpack_from(image)[0]}


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
        weight, step, probability = averages.constants("sfq", (least, longest), options, packet)
    flags = averages.ECN * bool(options.get("ecn")) | averages.HARDDROP * bool(
        options.get("harddrop")
    )
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
        options |= {"ecn": bool(flags & averages.ECN), "harddrop": bool(flags & averages.HARDDROP)}
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
        6: _U32.pack(burst),
    }
    if rate > _LARGEST:
        found[4] = _U64.pack(rate)
    if peak:
        found[7] = _U32.pack(bucket)
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
    str,
    tuple[Callable[[Options], dict[int, bytes]], Callable[[Attributes], dict[str, Option]]],
] = {"tbf": (_tbf, _tbf_held), "sfb": (_sfb, _sfb_held)}
"""Functions by kind that pack its options into attributes, one of them a struct, and unpack
them."""
