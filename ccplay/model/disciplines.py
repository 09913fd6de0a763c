"""The catalogue of queue disciplines with their parameters.

Names and defaults are those of ``tc-KIND(8)`` and of net/sched/sch_KIND.c. ``Capabilities.qdiscs``
reports which of them *this* kernel has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ccplay.model.base import Option
from ccplay.model.qdiscs import (
    BFIFO,
    CAKE,
    CHOKE,
    CODEL,
    DRR,
    DUALPI2,
    FQ,
    FQ_CODEL,
    FQ_PIE,
    HHF,
    KERNEL,
    PFIFO,
    PFIFO_FAST,
    PIE,
    PRIO,
    RED,
    SFB,
    SFQ,
    SOFTWARE,
    TBF,
    DisciplineKind,
)
from ccplay.model.quantities import did_you_mean, quote
from ccplay.model.values import Feature, Qdisc

SUFFIX = ".py"
"""Ending of the names of ccplay's disciplines in software, which the kernel's names do not have."""

AVERAGING = ("red", "choke")
"""Kinds of queue with two thresholds for the average queue length; see ``thresholds``."""

MOST_RATE = 100_000_000
"""Largest rate of full packets in bits per second that a discipline in software can serve."""

NOT_OF_CLASS = (
    "runs in software, which serves a whole link, never one of its classes: choose one of the "
    "kernel's for the class"
)
"""Why a discipline in software can't be the queue of a class; follows its name."""

custom: dict[str, DisciplineKind] = {}
"""Disciplines of the user by name, which only the command line can add."""


def described(kind: str) -> DisciplineKind | None:
    """Return the discipline of a kind, ``codel`` or ``codel.py``; None if there is none."""
    name = kind.removesuffix(SUFFIX)
    found = DISCIPLINES.get(name) or custom.get(name)
    return None if found is None or (is_software(kind) and not found.software) else found


def serves(kind: str, features: Iterable[Feature]) -> str:
    """Return ``SOFTWARE`` if ccplay's discipline serves this kind of queue, else ``KERNEL``.

    ``features`` are the disciplines that a lab reports. Those that its kernel lacks are served by
    ccplay.
    """
    summaries = {each.name: each.summary for each in features if each.available}
    replaced = summaries.get(kind) == summaries.get(f"{kind}{SUFFIX}", "")
    return SOFTWARE if is_software(kind) or replaced else KERNEL


def is_software(kind: str) -> bool:
    """Return whether a kind names ccplay's discipline in software rather than the kernel's."""
    return kind.endswith(SUFFIX)


def software_only(kind: str) -> bool:
    """Return whether a kind is served in software whatever the kernel has."""
    found = described(kind)
    return found is not None and (is_software(kind) or not found.in_kernel)


def plain(kind: str) -> str:
    """Return a kind's name in the kernel: ``codel`` of ``codel.py``."""
    return kind.removesuffix(SUFFIX)


def beyond(qdisc: Qdisc, who: str) -> str | None:
    """Return a queue's first parameter that the implementation ``who`` does not have, or None."""
    discipline = described(qdisc.kind)
    if discipline is None or discipline.open:
        return None
    known = {each.name for each in discipline.of(who)}
    return next((name for name in qdisc.options if name not in known), None)


def kinds() -> list[str]:
    """Return all kinds: plain names, ccplay's and then the user's, before those with ``SUFFIX``."""
    software = [f"{each.kind}{SUFFIX}" for each in DISCIPLINES.values() if each.software]
    return [*DISCIPLINES, *custom, *software, *(f"{each}{SUFFIX}" for each in custom)]


def complete(kind: str, options: Mapping[str, Option]) -> dict[str, Option | None]:
    """Return every parameter of a kind: those in ``options``, else the defaults."""
    defaults = {each.name: each.default for each in DISCIPLINES[kind].parameters}
    filled: dict[str, Option | None] = {**defaults, **options}
    if kind in AVERAGING:
        filled["min"], filled["max"] = thresholds(
            {name: value for name, value in filled.items() if value is not None}
        )
    return filled


def validate(qdisc: Qdisc) -> Qdisc:
    """Return ``qdisc`` with its values in the kernel's units and required parameters filled in.

    A value may be text as typed by people (``"5 ms"``). Raises ``ValueError``, with a suggestion,
    for an unknown kind or parameter and for an invalid value.
    """
    discipline = described(qdisc.kind)
    if discipline is None:
        meant = did_you_mean(qdisc.kind, kinds() if is_software(qdisc.kind) else DISCIPLINES)
        raise ValueError(f"unknown queue discipline {quote(qdisc.kind)}{meant}")
    options: dict[str, Option] = {}
    for name, value in qdisc.options.items():
        if discipline.open:
            options[name] = value
            continue
        known = discipline.parameter(name)
        if known.only == KERNEL and is_software(qdisc.kind):
            raise ValueError(
                f"{qdisc.kind} has no parameter {quote(name)}; {plain(qdisc.kind)} has one"
            )
        try:
            options[name] = known.parse(value) if isinstance(value, str) else known.check(value)
        except ValueError as error:
            raise ValueError(f"{qdisc.kind}: {name}: {error}") from None
    for each in discipline.of(SOFTWARE if is_software(qdisc.kind) else KERNEL):
        if each.required and each.name not in options:
            if each.default is None:
                raise ValueError(f"{qdisc.kind} needs {each.name}: {each.meaning}")
            options[each.name] = each.default
    if discipline.kind in AVERAGING:
        try:
            thresholds(options)
        except ValueError as error:
            raise ValueError(f"{qdisc.kind}: {error}") from None
    return Qdisc(kind=qdisc.kind, options=options)


def thresholds(options: Mapping[str, Option]) -> tuple[int, int]:
    """Return min and max of RED or CHOKe, by default as in tc-red(8).

    As the average queue grows from min to max, more packets are dropped at random. Raises
    ``ValueError`` unless 0 < min < max <= limit.
    """
    limit = int(options["limit"])
    most = int(options.get("max", limit // 4))
    least = int(options.get("min", most // 3))
    if not 0 < least < most:
        raise ValueError(f"min must be smaller than max, {least} is not smaller than {most}")
    if most > limit:
        raise ValueError(f"max must not be larger than the limit, {most} is larger than {limit}")
    return least, most


DISCIPLINES: dict[str, DisciplineKind] = {
    each.kind: each
    for each in (
        *(PFIFO, BFIFO, TBF, CODEL, FQ_CODEL, RED, PIE, FQ_PIE, FQ, CAKE, SFQ, CHOKE),
        *(DUALPI2, PRIO, DRR, PFIFO_FAST, HHF, SFB),
    )
}
"""Disciplines by kind, the simplest first."""
