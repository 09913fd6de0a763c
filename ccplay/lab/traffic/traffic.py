"""All traffic of the lab by name: starts it, stops it, and finds its connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from ccplay.errors import CommandError, UnsupportedError
from ccplay.lab.network.netns import Namespace
from ccplay.lab.network.routing import Routing
from ccplay.lab.paths.finder import PathFinder
from ccplay.lab.probe.probe import Probe
from ccplay.lab.traffic.flow import Flow
from ccplay.lab.traffic.gate import Entry, passed
from ccplay.lab.traffic.site import Classifier, Connected, Runner, Site
from ccplay.lab.traffic.starting import STARTERS
from ccplay.model.base import LONGEST_NAME, Event
from ccplay.model.commands import SetPath
from ccplay.model.fields import check
from ccplay.model.network import Network
from ccplay.model.traffic import TRAFFIC, TrafficKind, started_by, stopped_by
from ccplay.model.traffic_commands import StartTraffic, StopTraffic
from ccplay.model.traffic_events import SubflowStarted

S = TypeVar("S", bound=StartTraffic)

_STARTS = {kind.started: kind for kind in TRAFFIC}
_ENDS = {kind.ended: kind for kind in TRAFFIC}
_ROUTED = tuple(kind for kind in TRAFFIC if "via" in kind.start.__struct_fields__)
"""Kinds of traffic whose path can be chosen."""


class Traffic:
    """The traffic on the network; ``close`` ends all of it.

    A name refers to the same traffic for a whole session, even after its end: recordings need that.
    """

    def __init__(
        self,
        namespace: Callable[[str], Namespace],
        probe: Probe,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
        network: Network,
        *,
        classifier: Classifier | None = None,
        routing: Routing | None = None,
        reserved: Iterable[str] = (),
    ) -> None:
        """``namespace`` returns a node's namespace; ``emit`` receives events at times of ``clock``.

        ``classifier`` learns about packets before they are sent. ``routing`` reports which of
        several paths they take. Names that are ``reserved`` are not assigned automatically.
        """
        self._reserved = set(reserved)
        self._paths = (
            PathFinder(routing, network, emit, clock)
            if routing is not None and routing.knows_paths
            else None
        )
        self._probe, self._emit, self._network = probe, emit, network
        self._site = Site(
            *(namespace, probe, self._on_event, clock, network),
            classifier=classifier,
            paths=self._paths,
            routing=routing,
        )
        self._runners: dict[str, Runner] = {}
        self._starting: dict[str, asyncio.Task[tuple[Any, Runner]]] = {}
        self._kinds: dict[str, TrafficKind] = {}
        """Kind of all traffic by name: about to start, running or ended."""
        probe.after_sweep.append(self._watch)

    async def start(self, command: S, entry: Entry | None = None) -> S:
        """Start traffic and return ``command`` with every name filled in.

        The first packet waits at ``entry``; without an entry it is sent at once.

        Raises ``CommandError``, ``UnsupportedError``, ``LabError``.
        """
        if (kind := started_by(command)) is None:
            raise CommandError("this command starts no traffic")
        src, dst = self._path(command.src, command.dst)
        name = self._new_name(kind, kind.name_of(command))
        check(command, f"{kind.word} {name}")
        command = replace(command, **{kind.field: name}, src=src, dst=dst)
        self._kinds[name] = kind
        entry = entry or passed(self._site.clock)
        self._starting[name] = asyncio.create_task(STARTERS[kind.name](command, self._site, entry))
        try:
            command, self._runners[name] = await self._starting[name]
        except asyncio.CancelledError:
            self._drop(name)
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            raise CommandError(f"{kind.word} {name} was stopped before it began") from None
        except BaseException:
            self._drop(name)
            raise
        finally:
            del self._starting[name]
            entry.give_up()
        return command

    def stop(self, command: StopTraffic) -> None:
        """End traffic without waiting; an event reports its end.

        Raises ``CommandError`` if none with this name is running.
        """
        if (kind := stopped_by(command)) is not None:
            name = kind.name_of(command) or ""
            if self._kinds.get(name) is kind and name in self._starting:
                self._starting[name].cancel()
                return
            self._running(name, (kind,)).begin_stop()

    def switch_flow(self, name: str, cc: str) -> None:
        """Change the congestion control of a running flow or download.

        Raises ``CommandError`` or ``UnsupportedError``.
        """
        self._connected(name).switch(cc)

    def sender(self, name: str) -> tuple[Namespace, range]:
        """Return the namespace and the ports from which a running flow or download sends.

        Raises ``CommandError`` if none with this name is running.
        """
        found = self._connected(name)
        return self._site.namespace(found.src), found.sports

    def runs(self, name: str) -> bool:
        """Return whether a flow or download with this name is running."""
        found = self._sampled.get(name)
        return found is not None and not found.ended.is_set()

    def under(self, cc: str) -> list[str]:
        """Return the names of the running flows and downloads whose connection uses ``cc``."""
        found = {
            name: self._probe.counters(name)
            for name, each in self._sampled.items()
            if not each.ended.is_set()
        }
        return [name for name, now in found.items() if now is not None and now.cc == cc]

    def opening(self, cc: str) -> bool:
        """Return whether a connection with ``cc`` is about to open."""
        return any(each.opening_under == cc for each in self._sampled.values())

    async def close(self) -> None:
        """End all traffic, and wait until it has ended."""
        for each in self._starting.values():
            each.cancel()
        running = [each for each in self._runners.values() if not each.ended.is_set()]
        await asyncio.gather(*(each.stop() for each in running))
        self._probe.after_sweep.remove(self._watch)
        await self._site.close()

    @property
    def _sampled(self) -> dict[str, Connected]:
        return {
            name: cast("Connected", each)
            for name, each in self._runners.items()
            if self._kinds[name].connection
        }

    def _connected(self, name: str) -> Connected:
        kinds = tuple(kind for kind in TRAFFIC if kind.connection)
        return cast("Connected", self._running(name, kinds))

    def _running(self, name: str, kinds: tuple[TrafficKind, ...]) -> Runner:
        """Return the running traffic ``name``. Raises ``CommandError``, which lists what runs."""
        things = {key: each for key, each in self._runners.items() if self._kinds[key] in kinds}
        thing = things.get(name)
        if thing is None or thing.ended.is_set():
            there = [each for each, other in things.items() if not other.ended.is_set()]
            word = kinds[0].word
            state = f"no {word} {name!r}" if thing is None else f"{word} {name!r} has ended"
            raise CommandError(f"{state}; running: {', '.join(there) or 'none'}")
        return thing

    def _on_event(self, event: Event) -> None:
        """Emit an event, and update the classifier and the paths accordingly."""
        if (kind := _ENDS.get(type(event))) is not None:
            self._site.dismiss(kind.plural, kind.name_of(event) or "")
        self._emit(event)
        if self._paths is None:
            return
        if (kind := _STARTS.get(type(event))) is not None:
            self._paths.begin(kind.name_of(event) or "")
        elif kind := _ENDS.get(type(event)):
            self._paths.forget(kind.name_of(event) or "")
        elif isinstance(event, SubflowStarted):
            flow = self._runners.get(event.flow)
            if isinstance(flow, Flow):
                for name, sport, addresses in flow.connections():
                    self._paths.connect(event.flow, name, sport, flow.port, addresses)

    def _drop(self, name: str) -> None:
        """Remove traffic that did not start."""
        del self._kinds[name]
        if self._paths is not None:
            self._paths.forget(name)

    def set_path(self, command: SetPath) -> SetPath:
        """Move running traffic to another path; return the command with the routers on it.

        Raises ``CommandError``, ``UnsupportedError`` or ``LabError``.
        """
        self._running(command.traffic, _ROUTED)
        if self._paths is None:
            raise UnsupportedError(
                "this kernel does not report which of several paths packets take "
                "(net.ipv4.fib_multipath_hash_fields, Linux 5.14)"
            )
        return replace(command, via=self._paths.move(command.traffic, command.via))

    def find_paths(self) -> None:
        """Report the changed paths of running traffic."""
        if self._paths is not None:
            self._paths.look()

    def _watch(self) -> None:
        for each in self._sampled.values():
            each.watch()

    def _path(self, src: str | None, dst: str | None) -> tuple[str, str]:
        """Return both hosts: by default the first sender, and the peer of ``src``."""
        src = src if src is not None else self._network.senders[0]
        self._require_host(src)
        dst = dst if dst is not None else self._network.peer(src)
        self._require_host(dst)
        if src == dst:
            raise CommandError(f"traffic from {src} to itself does not cross the network")
        return src, dst

    def _require_host(self, name: str) -> None:
        if name not in self._network.hosts:
            raise CommandError(f"no host {name!r}; hosts: {', '.join(self._network.hosts)}")

    def _new_name(self, kind: TrafficKind, name: str | None) -> str:
        if name is None:
            avoided = self._kinds.keys() | self._reserved
            return next(
                free
                for number in range(1, len(avoided) + 2)
                if (free := f"{kind.prefix}{number}") not in avoided
            )
        if (holder := self._kinds.get(name)) is not None:
            raise CommandError(f"the name {name!r} is taken: another {holder.word} uses or used it")
        if not name.isprintable() or not name or set(name) & set("/ "):
            raise CommandError(f"{kind.word} {name!r}: a name can't contain spaces or '/'")
        if len(name) > LONGEST_NAME:
            short = f"{name[:20]}…"
            raise CommandError(
                f"{kind.word} {short!r}: a name can't have more than {LONGEST_NAME} characters"
            )
        return name
