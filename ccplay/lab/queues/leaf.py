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
        """Begin without a discipline; ``handles`` yields the major number of a new handle."""
        self.parent = parent
        self.asked: Qdisc | None = None
        """The discipline as last requested."""
        self.qdisc: Qdisc | None = None
        """The discipline as the kernel has it."""
        self._routes, self._index = routes, index
        self._handles = handles
        self.handle = 0
        """Major number of its handle; 0 before the first discipline."""

    def put(self, qdisc: Qdisc) -> None:
        """Install a queue; one changed in place keeps its packets, a replaced one begins empty.

        Raises ``CommandError`` or ``UnsupportedError``.
        """
        change = qdiscs.changed(self.asked, qdisc) if self.asked is not None else None
        before = self.handle
        if change is None:
            # The kernel refuses another kind under the same handle.
            self.handle = next(self._handles)
        wanted = change or qdisc
        try:
            qdiscs.attach(self._routes, self._index, self.parent, self.handle << 16, wanted)
            self.qdisc = qdiscs.read_back(self._routes, self._index, self.parent, qdisc)
        except Exception:
            if qdiscs.handle_of(self._routes, self._index, self.parent) >> 16 == self.handle:
                self.asked = qdisc
            else:
                self.handle = before
            raise
        self.asked = qdisc
