"""All traffic of the lab by name: starts it, alone or together, stops it, finds its connections."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar, cast

from msgspec.structs import replace

from ccplay.errors import CcplayError, CommandError, UnsupportedError
from ccplay.lab.netns import Namespace
from ccplay.lab.network import Routing
from ccplay.lab.paths import PathFinder
from ccplay.lab.probe import Probe
from ccplay.lab.shaping import Shaper
from ccplay.lab.traffic import congestion
from ccplay.lab.traffic.gate import Gate, GateEntry, passed
from ccplay.lab.traffic.site import Connected, Running, Site
from ccplay.model.base import (
    LONGEST_NAME,
    Event,
    StartTraffic,
    StopTraffic,
    TrafficEnded,
    TrafficStarted,
)
from ccplay.model.commands import SetPath
from ccplay.model.events import Applied, Failed
from ccplay.model.network import Network
from ccplay.model.quantities import check
from ccplay.traffic import TRAFFIC, started_by, stopped_by
from ccplay.traffic.base import TrafficKind

_Starter: TypeAlias = Callable[[Any, Site, GateEntry], Coroutine[Any, Any, tuple[Any, Running]]]

STARTERS: dict[str, _Starter] = {
    kind.name: importlib.import_module(f"ccplay.traffic.{kind.field}.run").start for kind in TRAFFIC
}
"""Function ``start`` of each kind's module ``run``, by the kind's name.

It takes a command within bounds that has its name and both hosts, and the entry of the gate for its
first packet. It returns the command as carried out, and the running traffic. It raises
``CommandError``, ``UnsupportedError`` or ``LabError``.
"""


# --- all traffic of the lab by name: starts it, stops it, and finds its connections ---------------

S = TypeVar("S", bound=StartTraffic)

_ENDS = {kind.ended: kind for kind in TRAFFIC}
_ROUTED = tuple(kind for kind in TRAFFIC if kind.routed)
"""Kinds of traffic whose path can be chosen."""


class LabTraffic:
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
        classifier: Shaper | None = None,
        routing: Routing | None = None,
        reserved: Iterable[str] = (),
        before: Callable[[str, Namespace, range], None] | None = None,
    ) -> None:
        """``namespace`` returns a node's namespace; ``emit`` receives events at times of ``clock``.

        ``classifier`` learns about packets before they are sent. ``routing`` reports which of
        several paths they take. Names that are ``reserved`` are not assigned automatically.
        ``before`` is called with the name, the source and its ports before traffic starts.
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
            before=before,
        )
        self._running: dict[str, Running] = {}
        self._starting: dict[str, asyncio.Task[tuple[Any, Running]]] = {}
        self._kinds: dict[str, TrafficKind] = {}
        """Kind of all traffic by name: about to start, running or ended."""
        probe.after_sweep.append(self._watch)

    async def start(self, command: S, entry: GateEntry | None = None) -> S:
        """Start traffic and return ``command`` with every name filled in.

        The first packet waits at ``entry``; without an entry it is sent at once.

        Raises ``CommandError``, ``UnsupportedError``, ``LabError``.
        """
        if (kind := started_by(command)) is None:
            raise CommandError("this command starts no traffic")
        src, dst = self._path(command.src, command.dst)
        name = self._new_name(kind, command.name)
        check(command, f"{kind.word} {name}")
        command = replace(command, **{kind.field: name}, src=src, dst=dst)
        self._kinds[name] = kind
        entry = entry or passed(self._site.clock)
        self._starting[name] = asyncio.create_task(STARTERS[kind.name](command, self._site, entry))
        try:
            command, self._running[name] = await self._starting[name]
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
            name = command.name
            if self._kinds.get(name) is kind and name in self._starting:
                self._starting[name].cancel()
                return
            self._find(name, (kind,)).begin_stop()

    def switch_flow(self, name: str, cc: str) -> None:
        """Change the congestion control of a running flow or download.

        Raises ``CommandError`` or ``UnsupportedError``.
        """
        self._connected(name).switch(cc)

    def sender(self, name: str) -> tuple[Namespace, range, float]:
        """Return the namespace, the ports and the start in seconds of a running flow or download.

        Raises ``CommandError`` if none with this name is running.
        """
        found = self._connected(name)
        return self._site.namespace(found.src), found.sports, found.began

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
        running = [each for each in self._running.values() if not each.ended.is_set()]
        await asyncio.gather(*(each.stop() for each in running))
        self._probe.after_sweep.remove(self._watch)
        await self._site.close()

    @property
    def _sampled(self) -> dict[str, Connected]:
        return {
            name: cast("Connected", each)
            for name, each in self._running.items()
            if self._kinds[name].connection
        }

    def _connected(self, name: str) -> Connected:
        kinds = tuple(kind for kind in TRAFFIC if kind.connection)
        return cast("Connected", self._find(name, kinds))

    def _find(self, name: str, kinds: tuple[TrafficKind, ...]) -> Running:
        """Return the running traffic ``name``. Raises ``CommandError``, which lists what runs."""
        things = {key: each for key, each in self._running.items() if self._kinds[key] in kinds}
        thing = things.get(name)
        if thing is None or thing.ended.is_set():
            there = [each for each, other in things.items() if not other.ended.is_set()]
            word = kinds[0].word
            state = f"no {word} {name!r}" if thing is None else f"{word} {name!r} has ended"
            raise CommandError(f"{state}; running: {', '.join(there) or 'none'}")
        return thing

    def _on_event(self, event: Event) -> None:
        """Emit an event, and update the classifier and the paths accordingly."""
        if isinstance(event, TrafficEnded):
            self._site.dismiss(_ENDS[type(event)].plural, event.name)
        self._emit(event)
        if self._paths is None:
            return
        if isinstance(event, TrafficStarted):
            self._paths.begin(event.name)
        elif isinstance(event, TrafficEnded):
            self._paths.forget(event.name)

    def _drop(self, name: str) -> None:
        """Remove traffic that did not start."""
        del self._kinds[name]
        if self._paths is not None:
            self._paths.forget(name)

    def set_path(self, command: SetPath) -> SetPath:
        """Move running traffic to another path; return the command with the routers on it.

        Raises ``CommandError``, ``UnsupportedError`` or ``LabError``.
        """
        self._find(command.traffic, _ROUTED)
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


# --- traffic of one moment: prepared in parallel, released together, answered one by one ----------

GRACE_S = 0.3
"""Seconds after the moment for which unprepared traffic is awaited: less than a step may be
late."""

LONGEST_S = 10.0
"""Longest time in seconds that a network waits for the traffic that starts with it."""

HANDSHAKES_S = 3.5
"""Seconds that connections may take to open before their traffic starts; a SYN that is lost twice
takes 3."""


class Together:
    """Several commands that start traffic. Call ``prepare``, ``open``, then ``answer``."""

    def __init__(
        self,
        commands: Sequence[StartTraffic],
        traffic: LabTraffic,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
        log: Callable[[str, str], None],
    ) -> None:
        """Prepare; ``emit`` receives answers at times of ``clock``, ``log`` reports slow steps."""
        self._commands, self._traffic = commands, traffic
        self._emit, self._clock, self._log = emit, clock, log
        self._gate = Gate(clock)
        self._tasks: list[asyncio.Task[StartTraffic]] = []

    async def prepare(self, until: float, grace_s: float) -> None:
        """Start all programs; return when they wait for the moment, or at ``until``.

        It waits ``grace_s`` longer for those that have not begun to open connections by then.
        """
        entries = [self._gate.entry() for _ in self._commands]
        ready: dict[str, CcplayError | None] = {}
        for each in self._commands:
            if (cc := getattr(each, "cc", None)) is not None and cc not in ready:
                ready[cc] = await self._problem(cc)
        self._tasks = [
            asyncio.create_task(self._start(each, entry, ready.get(getattr(each, "cc", ""))))
            for each, entry in zip(self._commands, entries, strict=True)
        ]
        await self._gate.wait(max(until - self._clock(), 0.0), grace_s)

    def open(self) -> None:
        """Release all first packets now."""
        self._gate.open()

    async def answer(self, due: float) -> None:
        """Report for each command, in order, whether it took effect; ``due`` was the moment."""
        for command, task in zip(self._commands, self._tasks, strict=True):
            try:
                done = await task
            except CcplayError as error:
                problem = str(error)
            except Exception as error:  # noqa: BLE001 - one bad command must not end the lab
                problem = f"a fault in ccplay: {type(error).__name__}: {error}"
            else:
                now = self._clock()
                took_s = round(max(now - due, 0.0), 6)
                self._emit(Applied(t=now, command=done, took_s=took_s, due=due))
                continue
            self._emit(Failed(t=self._clock(), command=command, message=problem, due=due))

    async def _problem(self, cc: str) -> CcplayError | None:
        try:
            await congestion.prepare(cc, self._log)
        except CcplayError as error:
            return error
        return None

    async def _start(
        self, command: StartTraffic, entry: GateEntry, problem: CcplayError | None
    ) -> StartTraffic:
        try:
            if problem is not None:
                raise problem
            return await self._traffic.start(command, entry)
        finally:
            entry.give_up()


class Starting:
    """All traffic whose moment is still to come."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start empty; moments are those of ``clock``."""
        self._clock = clock
        self._tasks: dict[asyncio.Task[None], float] = {}

    def add(self, at: float, together: Together, *, prepared: bool = False) -> None:
        """Release traffic at a moment; until then prepare it, unless it is prepared."""
        task = asyncio.create_task(self._start(at, together, prepared))
        self._tasks[task] = at
        task.add_done_callback(self._tasks.pop)

    async def until(self, moment: float) -> None:
        """Wait for the answers to all traffic that is due by ``moment``."""
        if due := [task for task, at in self._tasks.items() if at <= moment]:
            await asyncio.wait(due)

    async def _start(self, at: float, together: Together, prepared: bool) -> None:
        if not prepared:
            await together.prepare(max(at, self._clock()), GRACE_S)
        await asyncio.sleep(at - self._clock())
        together.open()
        await together.answer(at)
