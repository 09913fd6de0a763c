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
        """Begin without a discipline; ``handles`` returns the handle of a new queue."""
        self.parent = parent
        self.asked: Qdisc | None = None
        """The discipline as last requested."""
        self.qdisc: Qdisc | None = None
        """The discipline as the kernel has it."""
        self._routes, self._index = routes, index
        self._handles = handles
        self._handle = 0

    def put(self, qdisc: Qdisc) -> None:
        """Install a queue: changed in place it keeps its packets, otherwise it begins empty.

        Raises ``CommandError`` or ``UnsupportedError``.
        """
        change = qdiscs.changed(self.asked, qdisc) if self.asked is not None else None
        if change is None:
            # The kernel won't change a handle's kind.
            self._handle = next(self._handles)
        qdiscs.attach(self._routes, self._index, self.parent, self._handle << 16, change or qdisc)
        self.asked = qdisc
        self.qdisc = qdiscs.read_back(self._routes, self._index, self.parent, qdisc)
