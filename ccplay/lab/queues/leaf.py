"""A leaf queue, changed in place where possible and replaced otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from ccplay.lab.network.rtnl import RouteSocket
from ccplay.lab.queues import qdiscs
from ccplay.model.values import Qdisc


class Leaf:
    """The queue under ``parent``: an interface's root or one of its classes."""

    def __init__(
        self, routes: RouteSocket, index: int, parent: int, handles: Iterator[int]
    ) -> None:
        """Nothing is there yet; ``handles`` gives every new queue of the interface its own."""
        self.parent = parent
        self.asked: Qdisc | None = None
        """What was put there last."""
        self.qdisc: Qdisc | None = None
        """The same as the kernel has it."""
        self._routes, self._index = routes, index
        self._handles = handles
        self._handle = 0

    def put(self, qdisc: Qdisc) -> None:
        """Put a queue in place: where it can be changed it keeps its packets, or begins empty.

        Raises ``CommandError`` or ``UnsupportedError``.
        """
        change = qdiscs.changed(self.asked, qdisc) if self.asked is not None else None
        if change is None:
            # The kernel won't change a handle's kind.
            self._handle = next(self._handles)
        qdiscs.attach(self._routes, self._index, self.parent, self._handle << 16, change or qdisc)
        self.asked = qdisc
        self.qdisc = qdiscs.read_back(self._routes, self._index, self.parent, qdisc)
