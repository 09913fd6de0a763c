"""Parameters of RED's and CHOKe's average queue in the kernel's units, computed as tc does."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from ccplay.errors import CommandError
from ccplay.lab.network.netlink import red_eval_ewma, red_eval_idle_damping, red_eval_P
from ccplay.model.base import Option

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


def held(kind: str, found: Mapping[int, bytes]) -> dict[str, Option]:
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
