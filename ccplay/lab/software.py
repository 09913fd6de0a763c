"""Disciplines in software, the lab's side: packets wait in a netfilter queue before a link's rate.

Firewall rules (table mangle) lead what leaves through an interface into a netfilter queue. A
process forked from the lab, ``software queue``, copies the headers, asks a class of
``lab/disciplines`` what to drop, mark and send, and releases packets at the link's rate on a
virtual clock (``software_queue``). A released packet has a firewall mark that leads it past HTB's
rate, into class ``1:2``; another mark sets CE. If the process dies, packets bypass its queue and
wait in the kernel's leaf at the link's rate. The lab reads counters from shared memory
(``software_shared``) in each sweep. The row of a queue adds up the packets in software and in the
kernel, so a swap counts every packet once.

Swaps: from kernel to software, the process starts to send when the kernel's leaf has drained; from
software to kernel, the new, empty leaf receives all waiting packets at once and in order. Between
two disciplines in software, packets keep their times of arrival. Where a discipline raises an
exception, or sends nothing for 0.5 s while packets wait, a FIFO takes over; ``software_queue``
holds all waiting packets, so a discipline can lose none.

A user's own discipline is a file that only a command line names. The lab reads it
(``custom/loading``) and sends its text with the order. The process ``queue trial`` first runs it in
a child; then the process ``software queue`` does, with limits of time, memory and processes
(``custom/limits``). If it ends that process, the lab learns from ``software_shared`` whose call
ran. Its parameters are read from the text without running it, so scenarios, menus and the lab know
them beforehand.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ccplay.assets import find_tool
from ccplay.errors import LabError
from ccplay.lab import child, netns, software_queue, software_shared
from ccplay.lab.child import Child, Logger, Supervisor
from ccplay.lab.custom import limits
from ccplay.lab.custom.loading import SourceError, library
from ccplay.lab.netns import LinkEnd, Namespace
from ccplay.lab.qdisc_counters import PASSAGE, SoftwareReading
from ccplay.lab.software_queue import MARKED, PACED
from ccplay.lab.software_shared import (
    DisciplineReply,
    DisciplineRequest,
    SharedCounters,
    Slot,
    Sojourns,
)
from ccplay.lab.traces import Moving
from ccplay.model.disciplines import SUFFIX
from ccplay.model.events import SojournTimes
from ccplay.model.values import Feature, Qdisc

# --- rules that lead packets into a netfilter queue, then past the link's rate --------------------
# They are in the table mangle, iptables-extensions(8). FORWARD and OUTPUT come before POSTROUTING,
# so a packet sent on from the queue still passes the rules that act on its firewall mark: one sets
# CE, the other leads packets that have waited already into a class without a rate. Packets that
# bypass the queue because the process has died have no mark, and wait in the kernel's queue at the
# link's rate.


def _rules(verb: str, interface: str, queue: int) -> str:
    major, minor = PASSAGE >> 16, PASSAGE & 0xFFFF
    waiting = f"-o {interface} -j NFQUEUE --queue-num {queue} --queue-bypass"
    leaving = f"POSTROUTING -o {interface} -m mark"
    rules = (
        f"{leaving} --mark {MARKED}/{MARKED} -j TOS --set-tos 0x03/0x03",
        f"{leaving} --mark {PACED}/{PACED} -j CLASSIFY --set-class {major:x}:{minor:x}",
        f"FORWARD {waiting}",
        f"OUTPUT {waiting}",
    )
    return "\n".join(["*mangle", *(f"{verb} {each}" for each in rules), "COMMIT", ""])


async def add_rules(namespace: Namespace, interface: str, queue: int) -> None:
    """Lead packets that leave through an interface into a netfilter queue. Raises ``LabError``."""
    await netns.change_iptables(namespace, _rules("-A", interface, queue))


async def remove_rules(namespace: Namespace, interface: str, queue: int) -> None:
    """Remove the rules of ``add_rules``; waiting packets stay in the queue. Raises ``LabError``."""
    await netns.change_iptables(namespace, _rules("-D", interface, queue))


def begin_rules_trial() -> subprocess.Popen[str] | None:
    """Start trying the rules on the lab's own loopback device; return None without iptables."""
    if find_tool(netns.PROGRAM) is None:
        return None
    pipe = subprocess.PIPE
    trial = subprocess.Popen(netns.iptables_argv(), stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert trial.stdin is not None  # noqa: S101 - it is a pipe
    trial.stdin.write(_rules("-A", "lo", 1) + _rules("-D", "lo", 1))
    trial.stdin.close()
    return trial


def rules_refusal(trial: subprocess.Popen[str] | None, queues: Feature) -> tuple[str, str]:
    """Return why disciplines in software can't work here, and what to do; empty if they can.

    ``queues`` reports whether netfilter queues work, which the delay line needs too.
    """
    if trial is None:
        return "iptables-legacy is not installed", "apt install iptables"
    messages = trial.stderr.read() if trial.stderr is not None else ""
    code = trial.wait()
    if not queues.available:
        return queues.reason, queues.remedy
    if code:
        reason = messages.strip().partition("\n")[0]
        return reason, "as root: modprobe -a iptable_mangle xt_NFQUEUE xt_mark xt_DSCP xt_CLASSIFY"
    return "", ""


# --- the lab's side of disciplines in software: their process, its requests and its counters ------

SHARES = (0.5, 0.95, 0.99, 1.0)
"""Quantiles of sojourn times that are reported."""

FALLBACK = Qdisc(kind="pfifo", options={"limit": software_queue.FALLBACK_PACKETS})
"""Discipline that replaces one that fails; it has more room if more packets wait."""


class Forked(NamedTuple):
    """Processes that the lab forks before anything else."""

    serving: Child
    board: SharedCounters
    """Memory that the lab shares with ``serving``."""
    trying: Child | None
    """Process that tries the user's disciplines; None if there are none."""


class Software:
    """All disciplines in software of a lab, in one process, which is restarted if it dies.

    Until it runs again, packets wait in the kernel's own queue, at the link's rate; those that the
    process held are lost.
    """

    def __init__(self, log: Logger, seed: int, forked: Forked | None = None) -> None:
        """Start nothing yet; ``log`` logs faults, ``forked`` are the first processes.

        Each queue is seeded with ``seed`` plus its number.
        """
        self._log = log
        self._seed = seed
        self._board = SharedCounters() if forked is None else forked.board
        self._links: dict[int, _Link] = {}
        self._dropped: dict[int, int] = {}
        """Packets dropped by queues that have ended, by link."""
        self._histograms: dict[int, list[int]] = {}
        """Histograms of the sojourn times in queues that have ended, by link."""
        self._spread = Sojourns()
        self._removing: dict[int, asyncio.Task[None]] = {}
        """Tasks that remove the rules of a link, by link."""
        self._changing = asyncio.Lock()
        self.changed: Callable[[str], object] = lambda _: None
        """Function that receives the name of a link whose discipline has failed, or works again."""
        self._generation = self._version = 0
        self._serving = Supervisor(
            "the disciplines' process",
            DisciplineReply,
            log,
            launch=lambda: child.start(software_queue.serve, self._board.descriptor),
            restore=self._restore,
            on_reply=self._on_reply,
            loss="packets bypass them and wait in the kernel's queues",
            forked=None if forked is None else forked.serving,
            blame=self._blame,
        )
        self._trying = Supervisor(
            "the process that tries disciplines",
            DisciplineReply,
            log,
            launch=lambda: child.start(software_queue.serve_trials),
            loss="none of yours can be chosen",
            forked=None if forked is None else forked.trying,
        )
        self._tried: dict[str, tuple[str, object]] = {}
        """Source and parameters with which each of the user's disciplines was tried last."""

    @property
    def processes(self) -> Iterable[int]:
        """Process ID of the disciplines' process; empty if it does not run."""
        return self._serving.pids

    def lateness(self) -> tuple[float, float] | None:
        """Return median and 99th percentile of packets' lateness in us, of the last second.

        None if there were no packets.
        """
        return self._serving.lateness

    def dropped(self, number: int) -> int:
        """Return the number of packets dropped in front of a link."""
        now = self.read(number)
        return self._dropped.get(number, 0) + (0 if now is None else now.counts.drops)

    def read(self, number: int) -> SoftwareReading | None:
        """Return the reading of a link's queue; None if it has none."""
        if (link := self._links.get(number)) is None:
            return None
        counts, values = link.slot.read(len(link.statistics))
        own = dict(zip(link.statistics, values, strict=True))
        own |= self._spread.recent(link.at.link)
        if link.moving is not None:
            own |= link.moving.variables(link.request.rate)
        return SoftwareReading(link.kind, link.generation, counts, own)

    def sojourn_times(self, t: float) -> list[SojournTimes]:
        """Return the sojourn times of all links' packets since the last call."""
        for link in self._links.values():
            self._settle(link)
        return self._spread.report(t)

    def _settle(self, link: _Link) -> None:
        """Attribute the packets sent so far to the link's present discipline."""
        number = link.at.number
        self._spread.count(number, link.at.link, link.kind, self._sojourns(number))

    def sojourn_us(self, number: int) -> list[float]:
        """Return the quantiles ``SHARES`` of a link's sojourn times in us; empty without any."""
        counts = self._sojourns(number)
        found = [software_shared.percentile(counts, share) for share in SHARES]
        return [round(each, 1) for each in found if each is not None]

    def _sojourns(self, number: int) -> list[int]:
        past, link = self._histograms.get(number), self._links.get(number)
        now = link.slot.histogram() if link is not None else [0] * software_shared.PLACES
        return now if past is None else [sum(each) for each in zip(past, now, strict=True)]

    async def put(
        self,
        at: LinkEnd,
        qdisc: Qdisc,
        rate: int,
        kernel_backlog: Callable[[], int],
        moving: Moving | None = None,
    ) -> None:
        """Let a discipline decide on the packets of a link, or change the present one.

        ``moving`` is what moves the link; None leaves it at its rate.
        ``kernel_backlog`` returns the bytes that still wait in the kernel once no more arrive
        there; the link is busy with them first. Raises ``LabError``.
        """
        kind = qdisc.kind.removesuffix(SUFFIX)
        request = DisciplineRequest(
            queue=at.number,
            pid=at.namespace.pid,
            kind=kind,
            source=library.source(kind),
            options=qdisc.options,
            version=self._next_version(),
            rate=rate,
            course=None if moving is None else moving.course,
            seed=self._seed + at.number,
        )
        await self._try(request)
        if (link := self._links.get(at.number)) is not None:
            await self._change(link, request)
            link.moving = moving
            return
        await self._serving.start()
        if (removing := self._removing.pop(at.number, None)) is not None:
            await removing
        try:
            reply = await self._ask(request)
        except BaseException:
            # The queue may be open already if the discipline refuses its parameters.
            self._serving.send(DisciplineRequest(queue=at.number, do="close"))
            raise
        self._generation += 1
        slot = self._board.slot(at.number - 1)
        link = _Link(at, request, reply.statistics, slot, self._generation, moving=moving)
        self._links[at.number] = link
        try:
            await add_rules(at.namespace, at.interface, at.number)
        except BaseException:
            del self._links[at.number]
            with contextlib.suppress(LabError):
                await remove_rules(at.namespace, at.interface, at.number)
            self._serving.send(DisciplineRequest(queue=at.number, do="close"))
            raise
        self._serving.send(
            DisciplineRequest(queue=at.number, do="begin", busy_s=kernel_backlog() * 8 / rate)
        )

    def under(self, kind: str) -> list[tuple[str, Qdisc]]:
        """Return the links for which a discipline was requested, each with its parameters.

        Includes links on which a FIFO has replaced the discipline since.
        """
        return [
            (each.at.link, Qdisc(kind=kind + SUFFIX, options=each.request.options))
            for each in self._links.values()
            if each.request.kind == kind
        ]

    def substitute(self, number: int) -> Qdisc | None:
        """Return the FIFO that has replaced a link's discipline; None if the discipline works."""
        link = self._links.get(number)
        return None if link is None or link.works else FALLBACK

    def works(self, kind: str) -> bool:
        """Return whether a discipline is in use on any link, not replaced by a FIFO."""
        return any(each.works for each in self._links.values() if each.request.kind == kind)

    async def restart(self, number: int) -> None:
        """Let what moves a link begin where it says now. Raises ``LabError``."""
        if (link := self._links.get(number)) is not None and link.moving is not None:
            request = replace(link.request, course=link.moving.course)
            await self._change(link, request)

    async def renew(self, name: str, source: str) -> bool:
        """Use another source for the discipline of a link while packets wait in it.

        Return whether it works: it may have failed at once, on the packets that wait. Raises
        ``LabError`` with the mistake; then the earlier source stays in use.
        """
        link = next((each for each in self._links.values() if each.at.link == name), None)
        if link is not None:
            version = self._next_version()
            request = replace(link.request, source=source, version=version)
            await self._try(request)
            await self._change(link, request)
        return link is not None and link.works

    def _next_version(self) -> int:
        self._version += 1
        return self._version

    async def _try(self, request: DisciplineRequest) -> None:
        """Try one of the user's disciplines away from all packets. Raises ``LabError``."""
        tried = request.source, request.options
        if request.source and self._tried.get(request.kind) != tried:
            await self._trying.start()
            reply = await self._trying.ask(replace(request, do="try"))
            if reply.failed:
                raise LabError(reply.failed)
            self._tried[request.kind] = tried

    async def _change(self, link: _Link, request: DisciplineRequest) -> None:
        """Set rate and discipline of a link that has a discipline. Raises ``LabError``."""
        async with self._changing:
            reply = await self._ask(replace(request, do="change"))
            self._settle(link)
            worked, link.request = link.works, request
            # The new discipline may have failed already: another reply reports that.
            if link.works:
                link.statistics = reply.statistics
        if link.works != worked:
            self.changed(link.at.link)

    async def end(self, at: LinkEnd) -> None:
        """Move the packets that wait in software, if any, to the kernel's queue, in order.

        Later packets pass to the kernel's queue as they arrive, and soon bypass the process.
        """
        if at.number not in self._links:
            return
        # A process that dies meanwhile holds no packets either.
        with contextlib.suppress(LabError):
            await self._serving.ask(DisciplineRequest(queue=at.number, do="pass"))
        self._dropped[at.number] = self.dropped(at.number)
        self._settle(self._links[at.number])
        self._histograms[at.number] = self._sojourns(at.number)
        del self._links[at.number]
        # Packets already pass, so the removal of the rules need not be awaited.
        self._removing[at.number] = asyncio.create_task(self._remove(at))

    async def _remove(self, at: LinkEnd) -> None:
        try:
            await remove_rules(at.namespace, at.interface, at.number)
        except LabError as error:
            self._log("warning", f"link {at.link}: {error}", spoils=True)
        self._serving.send(DisciplineRequest(queue=at.number, do="close"))

    async def close(self) -> None:
        """Finish the removal of rules, and end the process."""
        await asyncio.gather(*self._removing.values())
        await self._serving.close()
        await self._trying.close()

    async def _ask(self, request: DisciplineRequest) -> DisciplineReply:
        """Send a request and wait until it is done. Raises ``LabError`` with the reason."""
        reply = await self._serving.ask(request)
        if reply.failed and request.source:
            # The message begins with the file and its line.
            raise LabError(reply.failed)
        if reply.failed:
            raise LabError(f"the queue {request.kind}{SUFFIX} can't be used: {reply.failed}")
        return reply

    def _restore(self) -> None:
        """Open the queues of all links in a new process."""
        for link in self._links.values():
            self._generation += 1
            link.generation = self._generation
            request = link.request
            if not link.works:
                request = replace(request, kind=software_queue.FALLBACK, source="")
            self._serving.send(request)
            self._serving.send(DisciplineRequest(queue=link.request.queue, do="begin"))

    def _blame(self, code: int) -> str:
        """Return how a user's discipline has ended the process, and let a FIFO take its place.

        Returns an empty text if another cause has ended it.
        """
        words = self._board.take_last_words()
        own = [each for each in self._links.values() if each.request.source and each.works]
        at_fault = [each for each in own if each.slot.busy[0]]
        # A process that stood still as a whole is ended too, which is no discipline's fault.
        if not at_fault and code > 0 and not words.startswith(limits.TIMEOUT):
            at_fault = own
        causes = []
        for link in at_fault:
            line = limits.last_line(words, link.request.kind)
            causes.append(
                str(SourceError(link.request.kind, line, limits.explain_end(words, code)))
            )
            link.failed, link.statistics = link.request.version, []
            text = (
                f"link {link.at.link}: {causes[-1]}; the packets that waited in software are lost"
            )
            self._log("error", f"{text}, and a FIFO takes its place", spoils=True)
            self.changed(link.at.link)
        return "; ".join(causes)

    def _on_reply(self, reply: DisciplineReply) -> None:
        link = self._links.get(reply.queue)
        for line in reply.printed.splitlines():
            self._log("info", f"printed: {line}")
        if reply.fault and link is not None:
            link.failed, link.statistics = reply.version, reply.statistics
            text = f"link {link.at.link}: {reply.fault}; a FIFO has taken its place"
            self._log("error", text, spoils=True)
            self.changed(link.at.link)


class _Link(msgspec.Struct):
    """A link with a discipline in software."""

    at: LinkEnd
    request: DisciplineRequest
    statistics: list[str]
    slot: Slot
    generation: int
    failed: int = 0
    """Version of the discipline that a FIFO has replaced."""
    moving: Moving | None = None
    """What moves the link; None if its rate is fixed."""

    @property
    def works(self) -> bool:
        """Whether the requested discipline decides."""
        return self.failed != self.request.version

    @property
    def kind(self) -> str:
        """Kind of the discipline that decides."""
        return self.request.kind + SUFFIX if self.works else FALLBACK.kind


def fork_processes() -> Forked:
    """Fork the processes for disciplines; the caller must have no threads and no event loop yet."""
    board = SharedCounters()
    trials = child.fork(software_queue.serve_trials) if library.files else None
    return Forked(child.fork(software_queue.serve, board.descriptor), board, trials)
