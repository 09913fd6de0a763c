"""Variables of a kernel congestion control, which inet_diag reports in addition to ``tcp_info``.

They are in one of three attributes, include/uapi/linux/inet_diag.h, which the algorithm chooses
(``get_info`` in net/ipv4/tcp_*.c); a request for the attribute of Vegas returns any of them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

ASKED = 1 << (3 - 1)
"""Bit of ``INET_DIAG_VEGASINFO`` in ``idiag_ext``, which requests these attributes."""

REPORTING = frozenset(
    (b"bbr", b"bbr2", b"bbr3", b"dctcp", b"vegas", b"nv", b"yeah", b"illinois", b"westwood")
)
"""Algorithms of Linux with a ``get_info``; BPF programs can't have one."""

_ATTRIBUTE = struct.Struct("=HH")
_UNKNOWN_RTT = 0x7FFFFFFF
"""RTT that Vegas reports before it has measured one."""
_UNBEGUN = 0
"""Value that BBR itself never has: the socket was read before the algorithm had started."""


class _Field(NamedTuple):
    name: str
    factor: int = 1
    unknown: tuple[int, ...] = ()


_FIELDS: dict[tuple[int, str], tuple[_Field, ...]] = {
    (3, "IIII"): (
        _Field("vegas_enabled"),
        _Field("vegas_rttcnt"),
        _Field("vegas_rtt_us", unknown=(_UNKNOWN_RTT,)),
        _Field("vegas_minrtt_us", unknown=(_UNKNOWN_RTT,)),
    ),
    (9, "HHIII"): (
        _Field("dctcp_enabled"),
        _Field("dctcp_ce_state"),
        _Field("dctcp_alpha"),
        _Field("dctcp_ab_ecn"),
        _Field("dctcp_ab_tot"),
    ),
    (16, "QIII"): (
        # The kernel reports bytes per second.
        _Field("bbr_bw_bps", factor=8),
        _Field("bbr_min_rtt_us", unknown=(_UNBEGUN, (1 << 32) - 1)),
        _Field("bbr_pacing_gain", unknown=(_UNBEGUN,)),
        _Field("bbr_cwnd_gain", unknown=(_UNBEGUN,)),
    ),
}
"""Fields of INET_DIAG_VEGASINFO, DCTCPINFO and BBRINFO, by attribute and ``struct`` code."""

_LAYOUTS = {kind: (struct.Struct(f"=4x{code}"), fields) for (kind, code), fields in _FIELDS.items()}
_BY_NAME = {field.name: field for fields in _FIELDS.values() for field in fields}
_HEADS = {_ATTRIBUTE.pack(layout.size, kind): kind for kind, (layout, _) in _LAYOUTS.items()}


def places(head: bytes) -> list[tuple[str, str, int]]:
    """Return the variables of an attribute by its first four bytes: name, ``struct`` code, offset.

    The list is empty for an unknown attribute.
    """
    if head not in _HEADS:
        return []
    kind = _HEADS[head]
    code = next(code for known, code in _FIELDS if known == kind)
    offsets = [struct.calcsize(f"=4x{code[:at]}") for at in range(len(code))]
    names = [field.name for field in _LAYOUTS[kind][1]]
    return list(zip(names, code, offsets, strict=True))


def in_units(name: str, counts: Sequence[int]) -> list[int | None]:
    """Convert a variable of several sockets from the kernel's unit to that of ``Sweep.own``."""
    return _values(_BY_NAME[name], counts)


def columns(attributes: Sequence[bytes]) -> dict[str, list[int | None]]:
    """Return the variables of several sockets by name, each as a list with one value per socket.

    ``attributes`` are those after ``INET_DIAG_CONG``, by socket. A value is None if the socket has
    no such variable.
    """
    members: dict[bytes, list[int]] = {}
    known = [each if not each or each[:4] in _HEADS else _plain(each) for each in attributes]
    for at, each in enumerate(known):
        if each:
            members.setdefault(each[:4], []).append(at)
    found: dict[str, list[int | None]] = {}
    for head, those in members.items():
        layout, fields = _LAYOUTS[_HEADS[head]]
        rows = layout.iter_unpack(b"".join([known[at][: layout.size] for at in those]))
        for field, counts in zip(fields, zip(*rows, strict=True), strict=True):
            found[field.name] = _spread(_values(field, counts), those, len(known))
    return found


def _values(field: _Field, counts: Sequence[int]) -> list[int | None]:
    if any(each in counts for each in field.unknown):
        return [None if each in field.unknown else each * field.factor for each in counts]
    return [*counts] if field.factor == 1 else [each * field.factor for each in counts]


def _spread(values: list[int | None], places: Sequence[int], size: int) -> list[int | None]:
    if len(places) == size:
        return values
    found: list[int | None] = [None] * size
    for at, value in zip(places, values, strict=True):
        found[at] = value
    return found


def _plain(attributes: bytes) -> bytes:
    """Return the first known attribute, cut to its known length; empty if there is none."""
    at = 0
    while at + 4 <= len(attributes):
        size, kind = _ATTRIBUTE.unpack_from(attributes, at)
        if kind in _LAYOUTS:
            known = _LAYOUTS[kind][0].size
            if size < known:
                break
            return _ATTRIBUTE.pack(known, kind) + attributes[at + 4 : at + known]
        at += max((size + 3) & ~3, 4)
    return b""
