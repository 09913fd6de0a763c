"""Queue disciplines in software, one per file, each to be read beside its RFC or paper. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from ccplay.lab.disciplines.base import Discipline, Options
from ccplay.model.base import Option
from ccplay.model.disciplines import complete

CLASSES: Mapping[str, str] = {
    "pfifo": "PFIFO",
    "bfifo": "BFIFO",
    "codel": "CoDel",
    "fq_codel": "FQCoDel",
    "red": "RED",
    "pie": "PIE",
    "fq_pie": "FQPIE",
    "fq": "FQ",
    "cake": "CAKE",
    "sfq": "SFQ",
    "choke": "CHOKe",
    "dualpi2": "DualPI2",
    "prio": "Prio",
    "drr": "DRR",
}
"""Names of classes by kind; the kind is the name of the module."""


def make_kind(kind: str, options: Mapping[str, Option], seed: int) -> Discipline:
    """Return a discipline of a kind of ``CLASSES`` with validated options."""
    # A lab needs one or two modules, so only those are imported.
    module = import_module(f"{__package__}.{kind}")
    found: type[Discipline] = getattr(module, CLASSES[kind])
    return found(options_of(kind, options), seed)


def options_of(kind: str, options: Mapping[str, Option]) -> Options:
    """Return all parameters of a kind: those given, and defaults for the others."""
    return Options(complete(kind, options))
