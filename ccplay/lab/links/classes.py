"""Classes that share a link's rate: which are possible, and which traffic each receives."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ccplay.errors import CommandError
from ccplay.lab.links.htb import CLASS
from ccplay.lab.queues.leaf import Leaf
from ccplay.model.fields import check
from ccplay.model.values import TrafficClass

MOST_CLASSES = 8

FIRST_HANDLE = CLASS + 0xF
"""Handle of the first class below ``1:1``; the classes are ``1:10``, ``1:11`` …."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,15}")


class SharedQueue(msgspec.Struct):
    """One of a link's classes, with its queue."""

    asked: TrafficClass
    leaf: Leaf
    rate: int = 0
    """Guaranteed rate in bits per second, read back from the kernel."""

    def describe(self, link_rate: int) -> TrafficClass:
        """Return the class as the kernel has it, on a link with this rate in bits per second."""
        # The kernel keeps whole bytes per second.
        exact = abs(self.rate - link_rate * self.asked.share) <= 8
        share = self.asked.share if exact else self.rate / link_rate
        return msgspec.structs.replace(self.asked, share=share, qdisc=self.leaf.qdisc)


def check_classes(link: str, classes: Sequence[TrafficClass]) -> None:
    """Raise ``CommandError``, with the reason, for classes that can't share a link."""
    if len(classes) > MOST_CLASSES:
        raise CommandError(f"link {link}: at most {MOST_CLASSES} classes, not {len(classes)}")
    taken: dict[str, str] = {}
    names: set[str] = set()
    for each in classes:
        if not _NAME.fullmatch(each.name) or each.name in names:
            raise CommandError(
                f"link {link}: a class needs a unique, valid name, not {each.name!r}"
            )
        names.add(each.name)
        check(each, f"class {each.name}")
        for traffic in each.traffic:
            if (other := taken.setdefault(traffic, each.name)) != each.name:
                raise CommandError(f"{traffic!r} is in two classes: {other} and {each.name}")
    if (total := sum(each.share for each in classes)) > 1 + 1e-9:
        raise CommandError(f"link {link}: the shares add up to {total:.0%}, more than 100%")


def choose(classes: Sequence[SharedQueue], kind: str, name: str) -> SharedQueue:
    """Return the class of some traffic: one that lists its name, else its kind, else the last."""
    for word in (name, kind):
        for each in classes:
            if word in each.asked.traffic:
                return each
    return classes[-1]
