"""Which of several paths each connection of a flow takes: asked at its start and when cables go."""

from __future__ import annotations

from collections.abc import Callable

from ccplay.lab.network.routing import Routing
from ccplay.lab.traffic.flow import Flow
from ccplay.model.base import Event
from ccplay.model.events import FlowPath, Log
from ccplay.model.network import Network


class PathFinder:
    """The flows that run, and the path that each of their connections was last found on."""

    def __init__(
        self,
        routing: Routing,
        network: Network,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
    ) -> None:
        """``network`` has all cables, whether up or down."""
        self._routing, self._network = routing, network
        self._emit, self._clock = emit, clock
        self._flows: dict[str, Flow] = {}
        self._known: dict[str, list[str]] = {}

    def follow(self, flow: Flow) -> None:
        """Report the path of each connection of a flow that has just begun."""
        self._flows[flow.name] = flow
        self._find(flow)

    def forget(self, name: str) -> None:
        """Let a flow go that has ended."""
        if (flow := self._flows.pop(name, None)) is not None:
            for stream, *_ in flow.connections():
                self._known.pop(stream, None)

    def look(self) -> None:
        """Report the paths that have changed."""
        for flow in self._flows.values():
            self._find(flow)

    def _find(self, flow: Flow) -> None:
        only = [[link.name for link in path] for path in self._network.paths(flow.src, flow.dst)]
        for stream, sport, addresses in flow.connections():
            try:
                path = self._routing.path(
                    (flow.src, flow.dst), (sport, flow.port), addresses=addresses
                )
            except OSError as error:
                text = f"flow {stream}: its path is not known: {error.strerror}"
                self._emit(Log(t=self._clock(), level="warning", text=text))
                continue
            names = [link.name for link in path]
            # Where there is one path, it goes without saying, unless a cable of it is down.
            if self._known.get(stream, only[0] if len(only) == 1 else None) != names:
                self._emit(FlowPath(t=self._clock(), flow=stream, links=names))
            self._known[stream] = names
