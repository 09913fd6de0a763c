"""Chooses the discipline for a request: the kernel's, or ccplay's own if the kernel has none."""

from __future__ import annotations

import msgspec

from ccplay.errors import CommandError, UnsupportedError
from ccplay.lab.queues import qdiscs
from ccplay.model.discipline import KERNEL, SOFTWARE
from ccplay.model.disciplines import (
    DISCIPLINES,
    MOST_RATE,
    SUFFIX,
    beyond,
    described,
    is_software,
)
from ccplay.model.values import Qdisc
from ccplay.units import format_rate

_taken: set[bytes] = set()
"""Queues, as JSON, that the kernel has accepted: a network has the same one on many links."""
_lacking: set[str] = set()
"""Kinds that this kernel was found to lack."""


def chosen(qdisc: Qdisc, *, software: bool) -> Qdisc:
    """Return a queue validated and tried; its kind ends with ``SUFFIX`` if it is ccplay's own.

    ``software`` is whether disciplines in software are possible. Raises ``CommandError`` or
    ``UnsupportedError``.
    """
    qdisc = qdiscs.validate(qdisc)
    if is_software(qdisc.kind):
        if not software:
            raise UnsupportedError(
                f"queue discipline {qdisc.kind!r} needs netfilter queues: see ccplay doctor"
            )
        return qdisc
    known = described(qdisc.kind) or DISCIPLINES["pfifo"]
    able = software and known.software
    if able and (not known.in_kernel or qdisc.kind in _lacking):
        return _in_software(qdisc)
    try:
        _try(qdisc)
    except UnsupportedError:
        if not able:
            raise
        _lacking.add(qdisc.kind)
        return _in_software(qdisc)
    return qdisc


def _in_software(qdisc: Qdisc) -> Qdisc:
    """Return the queue with ccplay's discipline in place of the kernel's.

    Raises ``UnsupportedError`` for a parameter that ccplay's lacks.
    """
    kind = qdisc.kind
    if (name := beyond(qdisc, SOFTWARE)) is not None:
        raise UnsupportedError(
            f"queue discipline {kind!r} is not in this kernel, and ccplay's own has no {name}"
        )
    return msgspec.structs.replace(qdisc, kind=kind + SUFFIX)


def _try(qdisc: Qdisc) -> None:
    """Try a queue on the lab's own loopback device, unless the same was accepted before."""
    known = DISCIPLINES.get(qdisc.kind)
    if known is None or not known.in_kernel:
        raise UnsupportedError(
            f"queue discipline {qdisc.kind!r} works in software only, and needs netfilter queues: "
            "see ccplay doctor"
        )
    image = msgspec.json.encode(qdisc)
    if image not in _taken:
        # First try the bare kind: if the kernel lacks it, ccplay's own may have the parameter.
        if (name := beyond(qdisc, KERNEL)) is not None:
            qdiscs.rehearse(Qdisc(kind=qdisc.kind))
            raise CommandError(
                f"{qdisc.kind}: {name}: the kernel's {qdisc.kind} has no such parameter, "
                f"{qdisc.kind}{SUFFIX} has"
            )
        qdiscs.rehearse(qdisc)
        _taken.add(image)


def check_software(link: str, qdisc: Qdisc, rate: int, mark: int) -> None:
    """Raise ``CommandError`` with the reason if a link can't have a discipline in software."""
    if not rate:
        raise CommandError(f"link {link} has no rate, which {qdisc.kind} needs")
    if rate > MOST_RATE:
        raise CommandError(
            f"link {link}: {qdisc.kind} is a discipline in software, which carries up to "
            f"{format_rate(MOST_RATE)}, not {format_rate(rate)}: choose a lower rate, "
            "or one of the kernel's disciplines"
        )
    if mark:
        raise CommandError(
            f"link {link}: its ECN mark threshold applies to the kernel's queue, but packets wait "
            f"in {qdisc.kind}: set mark to 0 first"
        )
