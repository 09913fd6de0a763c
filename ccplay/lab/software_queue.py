"""The process that runs disciplines in software, and each of its queues.

The link is a virtual clock. A packet of L bytes keeps the link busy for L * 8 / rate seconds, and
the next packet is due when the link is free again:

    free = max(free, since) + L * 8 / rate

where ``since`` is the moment since which packets wait. A packet that is sent late therefore costs
no rate: the packet after it is due when it would have been anyway.

A link that moves has another clock, of ``ccplay/trace/schedule``: the integral of a rate with
steps, or opportunities. At an opportunity the discipline chooses packets until its bytes are used;
a packet that needs more is in transit until a later one, and leaves then.
"""

from __future__ import annotations

import gc
import io
import select
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ccplay.errors import CcplayError
from ccplay.lab.child import introduce
from ccplay.lab.custom import limits, loading, trial
from ccplay.lab.custom.limits import Printed
from ccplay.lab.custom.loading import MisuseError
from ccplay.lab.disciplines import make_kind
from ccplay.lab.disciplines.base import CE, Discipline, FirstInFirstOut, Options, Packet
from ccplay.lab.netfilter_queue import HeaderQueue
from ccplay.lab.netns import Namespace
from ccplay.lab.packet_loop import Lateness, PacketLoop, run_as
from ccplay.lab.qdisc_counters import Counts
from ccplay.lab.software_shared import (
    MOST_STATISTICS,
    DisciplineReply,
    DisciplineRequest,
    SharedCounters,
    Slot,
)
from ccplay.lab.traces import MappedTrace
from ccplay.model.base import Option
from ccplay.trace.content import OPPORTUNITY
from ccplay.trace.schedule import NEVER, Bucket, Opportunities, RateSteps, charged

# --- one queue in software: gives packets to a discipline, and sends what it returns on time ------

MARKED, PACED = 0x1, 0x2
"""Firewall marks of a sent packet: set CE on it; it has waited here and need not wait again."""

_NEVER = float("inf")

PATIENCE_S = 0.5
"""Longest time in seconds for which a discipline may send nothing while packets wait."""

FALLBACK = "fifo"
"""Kind of the FIFO that replaces a discipline that failed."""

FALLBACK_PACKETS = 1000
"""Smallest limit, in packets, of the FIFO that replaces a discipline that failed."""

_ASK_AGAIN_S = 1e-3
"""Seconds until a discipline that holds packets back is asked again."""

_MOST_STATISTIC = 1 << 53

_GRACE_S = 200e-6
"""Seconds after an opportunity in which a packet that is read may still use it."""

_MOST_READ = 64
"""Largest number of packets read before packets are sent again."""


class ServedQueue:
    """A queue in front of a link, with the discipline at work in it."""

    def __init__(self, queue: HeaderQueue, slot: Slot) -> None:
        """Hold all packets until ``begin``."""
        self.queue = queue
        self.fault = ""
        """Description of the discipline's last failure; the runner reports and empties it."""
        self.names: list[str] = []
        """Names of the statistics that the discipline reports, in the order of the slot."""
        self._slot = slot
        slot.clear()
        self._limited = limits.Limited(slot.busy)
        self._discipline: Discipline = _fifo(FALLBACK_PACKETS)
        self._kind = ""
        self._source = ""
        self._stuck_since = 0.0
        """Moment since which the discipline sends nothing although packets wait; 0 if it sends."""
        self._waiting: dict[int, Packet] = {}
        self._free = _NEVER
        self._since = 0.0
        self._ask_at = 0.0
        self._link_s = self._seconds_per_byte = 0.0
        self._course: MappedTrace | None = None
        self._opportunities: Opportunities | None = None
        self._steps: RateSteps | None = None
        self._bucket: Bucket | None = None
        self._transit: Packet | None = None
        """Packet that some opportunities have carried a part of."""
        self._left = 0
        """Bytes of it that have not been carried."""
        self._passing = False
        self._backlog = 0
        self._drops = self._marks = self._packets = self._bytes = self._sojourn_us = 0

    def change(
        self,
        kind: str,
        options: Mapping[str, Option],
        rate: int,
        seed: int,
        now: float,
        *,
        source: str = "",
    ) -> None:
        """Use another discipline, which receives waiting packets in the order of their arrival.

        ``source`` is the text of one of the user's own. Raises ``SourceError`` for mistakes in it;
        then the earlier discipline stays.
        """
        if source:
            with self._limited:
                discipline = loading.make_discipline(kind, source, options, seed)
        elif kind == FALLBACK:
            discipline = _fifo(FALLBACK_PACKETS)
        else:
            discipline = make_kind(kind, options, seed)
        self._link_s = 8 / rate
        self._passing = False
        self._kind, self._source = kind, source
        self._stuck_since = 0.0
        self._replace(discipline, now)

    def move(self, course: MappedTrace | None, rate: int, now: float) -> None:
        """Send packets by what moves the link; None is the fixed rate. Raises ``OSError``."""
        if course is None and self._course is None:
            return
        if course == self._course and self._opportunities is not None:
            return
        content = None if course is None else course.read()
        was, self._course = self._course, course
        self._opportunities = self._steps = None
        if content is not None and course is not None:
            if len(content.opportunities):
                self._opportunities = Opportunities(content, course.start, loop=course.loop)
                self._opportunities.lose(min(now, self._free))
            elif len(content.rates):
                self._steps = RateSteps(content, course.start, loop=course.loop, after=rate)
            if content.policer[0] and (self._bucket is None or course != was):
                self._bucket = Bucket(*content.policer, now)
            elif not content.policer[0]:
                self._bucket = None
        else:
            self._bucket = None
        if self._opportunities is None:
            self._end_transit(now)
        if self._free != _NEVER:
            # When the link would be free is known to another clock only.
            self._free = now

    def _end_transit(self, now: float) -> None:
        """Send the packet in transit, which no other opportunity will carry."""
        if self._transit is not None:
            self._release(self._transit, now)
            self._transit, self._left = None, 0

    def give_up(self, error: MemoryError, now: float) -> None:
        """Replace a discipline of the user, which has left no memory, by a FIFO."""
        if self._source:
            self._fall_back(error, now)

    def begin(self, moment: float) -> None:
        """Allow packets to leave from ``moment`` on."""
        self._free = moment

    def pass_on(self) -> None:
        """Send all waiting packets at once, and later packets as they arrive."""
        self._passing = True
        self._end_transit(self._since)
        for number, packet in self._waiting.items():
            self.queue.send_on(number, MARKED if packet.ecn == CE else 0)
            self._packets += 1
            self._bytes += packet.length
        self._waiting.clear()
        self._backlog = 0
        self._add_up()
        self._discipline = _fifo(FALLBACK_PACKETS)
        self.queue.flush()
        self.publish()

    def read(self, now: float) -> bool:
        """Give arrived packets to the discipline; return whether there may be more."""
        receive = self.queue.receive
        for _ in range(_MOST_READ):
            packet = receive()
            if packet is None:
                return False
            if self._passing:
                self.queue.send_on(packet.number, 0)
                continue
            packet.arrived = now
            if not self._waiting:
                self._since = now
            self._waiting[packet.number] = packet
            self._backlog += packet.length
            self._arrive(packet, now)
        return True

    @property
    def wake(self) -> float:
        """Moment when the next packet is due; 0 if none waits, or before ``begin``."""
        if not (self._waiting or self._transit) or self._free == _NEVER:
            return 0.0
        if self._opportunities is not None:
            next_one = max(self._opportunities.next, self._free)
            return max(next_one, self._ask_at) if self._stuck_since else next_one
        return max(self._free, self._ask_at) if self._stuck_since else self._free

    def send(self, now: float, lateness: Lateness) -> None:
        """Send the packets that are due at ``now``, and carry out all decisions."""
        if self._opportunities is not None:
            self._use_opportunities(self._opportunities, now, lateness)
            self.queue.flush()
            return
        while self._waiting and self._free <= now:
            held = self._stuck_since > 0
            begin = now if held else max(self._free, self._since)
            packet = self._choose(begin, now)
            if packet is None:
                break
            self._release(packet, now)
            if not held:
                lateness.add(now - begin)
            self._free = self._end_of(begin, packet)
        self.queue.flush()

    def catch_up(self, now: float, lateness: Lateness) -> None:
        """Use or lose the opportunities before ``now`` that packets not yet read came too late for.

        A packet that was read up to ``_GRACE_S`` after an opportunity may have come before it.
        """
        if (clock := self._opportunities) is not None and clock.next <= now - _GRACE_S:
            self._use_opportunities(clock, now - _GRACE_S, lateness)
            clock.lose(now - _GRACE_S)

    def _use_opportunities(self, clock: Opportunities, now: float, lateness: Lateness) -> None:
        """Let the opportunities up to ``now`` carry what waits."""
        if self._free > now:
            return
        while (self._waiting or self._transit) and clock.next <= now:
            moment, left = clock.use(), OPPORTUNITY
            while left > 0:
                if self._transit is None:
                    self._transit = self._choose(moment, now)
                    if self._transit is None:
                        break
                    self._left = charged(self._transit.length)
                carried = min(left, self._left)
                left -= carried
                self._left -= carried
                if not self._left:
                    lateness.add(max(0.0, now - moment))
                    self._release(self._transit, now)
                    self._transit = None
        if clock.next == NEVER:
            # The trace has ended: the fixed rate is back.
            self._opportunities = None
            self._end_transit(now)
            self._free = now

    def _end_of(self, begin: float, packet: Packet) -> float:
        """Return when a packet has left that begins at ``begin``."""
        if self._steps is None:
            return begin + packet.length * self._seconds_per_byte
        end = self._steps.end(begin, packet.length)
        if self._seconds_per_byte > self._link_s:
            end = max(end, begin + packet.length * self._seconds_per_byte)
        return end

    def publish(self) -> None:
        """Write the counters to the board."""
        try:
            values = self._statistics()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the file may be a user's
            self._fall_back(error, self._since)
            values = []
        drops, marks = _decided(self._discipline)
        drops, marks = self._drops + drops, self._marks + marks
        self._slot.write(
            Counts(
                *(len(self._waiting), self._backlog, drops, marks, self._packets, self._bytes),
                *(self._sojourn_us, int(not self._passing)),
            ),
            values,
        )

    def _statistics(self) -> list[int]:
        """Return the discipline's statistics in the order of ``names``."""
        if not self._source:
            return [max(0, each) for each in self._discipline.statistics().values()][
                :MOST_STATISTICS
            ]
        with self._limited:
            own = self._discipline.statistics()
        found = (int(own.get(name, 0)) for name in self.names)
        return [min(max(0, each), _MOST_STATISTIC) for each in found]

    # --- the discipline ---------------------------------------------------------------------

    def _arrive(self, packet: Packet, now: float) -> None:
        try:
            if self._source:
                with self._limited:
                    self._discipline.arrive(packet, now)
            else:
                self._discipline.arrive(packet, now)
            self._drop()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the file may be a user's
            self._fall_back(error, now)

    def _choose(self, moment: float, now: float) -> Packet | None:
        """Return the packet to send at ``moment``, or None; a policer drops those without tokens.

        What the discipline decides, it decides at ``now``.
        """
        while True:
            try:
                packet = self._chosen(now)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - the file may be a user's
                self._fall_back(error, now)
                return None
            if packet is None:
                return None
            self._backlog -= packet.length
            if self._bucket is None or self._bucket.passes(packet.length, moment):
                return packet
            self._drops += 1
            self.queue.discard(packet.number)
            if not self._waiting:
                return None

    def _release(self, packet: Packet, now: float) -> None:
        """Send a packet that has been chosen."""
        self._packets += 1
        self._bytes += packet.length
        sojourn_us = round((now - packet.arrived) * 1e6)
        self._sojourn_us += sojourn_us
        self._slot.count_sojourn(sojourn_us)
        self.queue.send_on(packet.number, PACED | MARKED if packet.ecn == CE else PACED)

    def _chosen(self, now: float) -> Packet | None:
        """Return the packet to send; None if none waits, or the discipline holds packets back.

        Raises ``MisuseError`` if it holds them back for ``PATIENCE_S``, or returns a packet that
        does not wait.
        """
        if self._source:
            with self._limited:
                packet = self._discipline.depart(now)
                rate = self._discipline.rate
        else:
            packet = self._discipline.depart(now)
            rate = self._discipline.rate
        self._drop()
        if packet is not None:
            if self._waiting.get(packet.number) is not packet:
                raise MisuseError("dequeue returned a packet that is no longer waiting")
            del self._waiting[packet.number]
            self._seconds_per_byte = max(self._link_s, 8 / rate) if rate else self._link_s
            self._stuck_since = 0.0
        elif self._waiting:
            self._stuck_since = self._stuck_since or now
            self._ask_at = now + _ASK_AGAIN_S
            if now - self._stuck_since >= PATIENCE_S:
                raise MisuseError(
                    f"dequeue has returned None for {PATIENCE_S:g} s while {len(self._waiting)} "
                    "packets wait"
                )
        return packet

    def _drop(self) -> None:
        """Carry out the discipline's drops. Raises ``MisuseError`` for a packet dropped twice."""
        dropped = self._discipline.dropped
        if not dropped:
            return
        while dropped:
            packet = dropped.pop(0)
            if self._waiting.pop(packet.number, None) is None:
                raise MisuseError("drop was called for a packet that is no longer waiting")
            self._backlog -= packet.length
            self.queue.discard(packet.number)

    def _replace(self, discipline: Discipline, now: float) -> None:
        """Replace the discipline by another, and give it all waiting packets."""
        self._add_up()
        self._discipline = discipline
        self.names = list(discipline.statistics())[:MOST_STATISTICS]
        for packet in list(self._waiting.values()):
            self._arrive(packet, now)
            if self._discipline is not discipline:
                # The discipline failed, and the FIFO in its place has received all packets.
                return

    def _add_up(self) -> None:
        """Add the discipline's drops and marks to those of the disciplines before it."""
        drops, marks = _decided(self._discipline)
        self._drops += drops
        self._marks += marks

    def _explained(self, error: BaseException) -> str:
        try:
            # The text of the exception may be computed by the user's code.
            with self._limited:
                return str(loading.explain_error(self._kind, error, type(self._discipline)))
        except (Exception, SystemExit):  # noqa: BLE001 - it is the user's code
            return f"{self._kind}.py: {type(error).__name__}"

    def _fall_back(self, error: BaseException, now: float) -> None:
        """Replace a discipline that failed by a FIFO, which receives all waiting packets."""
        if self._source:
            self.fault = self._explained(error)
        else:
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(last.filename).name}, line {last.lineno}"
            self.fault = f"{self._kind}: {type(error).__name__}: {error} ({where})"
        room = max(FALLBACK_PACKETS, 2 * len(self._waiting))
        self._kind, self._source = FALLBACK, ""
        self._stuck_since = 0.0
        # Drops that were decided but not carried out do not count: their packets still wait.
        self._drops -= _undone(self._discipline)
        self._replace(_fifo(room), now)


def _fifo(room: int) -> FirstInFirstOut:
    """Return a FIFO with room for this many packets."""
    return FirstInFirstOut(Options({"limit": room}))


def _decided(discipline: Discipline) -> tuple[int, int]:
    """Return how many packets a discipline has dropped and marked."""
    try:
        return discipline.drops.total(), int(discipline.marks)
    except Exception:  # noqa: BLE001 - a user's file may have put something else there
        return 0, 0


def _undone(discipline: Discipline) -> int:
    """Return how many drops of a discipline have not been carried out."""
    try:
        return len(discipline.dropped)
    except TypeError:
        return 0


# --- tries each of a user's disciplines first, in a process of its own ----------------------------
# So one that ends its process or computes for ever does no harm to packets that wait. The lab forks
# it before it has threads, so that a trial need not import anything. Its name is ``queue trial``.

TRIAL_NAME = b"queue trial"
"""Name of the process, which is its comm in proc(5)."""


def serve_trials() -> None:
    """Try disciplines until stdin ends, or the parent does."""
    introduce(TRIAL_NAME)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin.buffer:
        request = msgspec.json.decode(line, type=DisciplineRequest)
        failed = ""
        try:
            trial.rehearse(request.kind, request.source, request.options)
        except (CcplayError, OSError) as error:
            failed = str(error)
        reply = DisciplineReply(queue=request.queue, do=request.do, failed=failed)
        sys.stdout.buffer.write(msgspec.json.encode(reply) + b"\n")
        sys.stdout.buffer.flush()


# --- the process that runs disciplines: receives and sends packets, obeys requests ----------------
# Its name is ``software queue``.

NAME = b"software queue"
"""Name of the process, which is its comm in proc(5)."""

_BOARD = 3
"""Descriptor of the board in the process."""

_REST_S = 150e-6
"""Seconds before a packet is due in which arrivals do not wake the process."""

_PUBLISH_S = 1e-3
"""Seconds between two updates of the board while packets wait."""


class DisciplineLoop(PacketLoop[DisciplineRequest]):
    """All disciplines in software of a lab."""

    def __init__(self, board: SharedCounters) -> None:
        super().__init__(DisciplineRequest)
        self._board = board
        self._printed = Printed()
        self._served: dict[int, ServedQueue] = {}
        self._versions: dict[int, int] = {}
        """Versions of the disciplines, by queue."""
        self._confined = False
        self._published = 0.0
        self._due = 0.0

    def work(self) -> select.epoll:
        """Read arrivals, send what is due, and return what to wait for next."""
        try:
            return self._work()
        except MemoryError as error:
            # It is in ccplay's own code, because a user's discipline has left no memory.
            if not self._confined:
                raise
            for served in self._served.values():
                served.give_up(error, time.monotonic())
        gc.collect()
        return self._work()

    def _work(self) -> select.epoll:
        clock = time.monotonic
        earliest, more = 0.0, False
        for number, served in self._served.items():
            served.catch_up(clock(), self.lateness)
            more |= served.read(clock())
            served.send(clock(), self.lateness)
            if wake := served.wake:
                earliest = min(wake, earliest or wake)
            if served.fault:
                self._report_fault(number, served)
        now = clock()
        if printed := self._printed.due_lines(now):
            self.send(DisciplineReply(queue=next(iter(self._served), 1), printed=printed))
        if now - self._published >= _PUBLISH_S or not earliest:
            self._published = now
            for served in self._served.values():
                served.publish()
        due = now if more else earliest
        # A timer set to a moment that is past has expired, and must be set again.
        if due != self._due or 0 < due <= now:
            self._due = due
            self.timer.set(due)
        return self.busy if more or 0 < earliest < now + _REST_S else self.idle

    def _report_fault(self, number: int, served: ServedQueue) -> None:
        version = self._versions[number]
        self.send(
            DisciplineReply(
                queue=number, fault=served.fault, version=version, statistics=served.names
            )
        )
        served.fault = ""

    def obey(self, request: DisciplineRequest) -> None:
        """Carry out a request. Raises what a discipline raises if it refuses its parameters."""
        now = time.monotonic()
        served = self._served.get(request.queue)
        if request.do == "open" and request.queue:
            served = self._open(request)
        if served is None:
            self.send(DisciplineReply(queue=request.queue, do=request.do))
            return
        match request.do:
            case "open" | "change":
                if request.source:
                    self._confine()
                settings = request.kind, request.options, request.rate, request.seed
                served.change(*settings, now, source=request.source)
                served.move(request.course, request.rate, now)
                self._versions[request.queue] = request.version
                if served.fault:
                    # The lab must know before the answer that a FIFO serves.
                    self._report_fault(request.queue, served)
            case "begin":
                served.begin(now + request.busy_s)
            case "pass":
                served.read(now)
                served.pass_on()
            case "close":
                self._close(request.queue)
        self.send(DisciplineReply(queue=request.queue, do=request.do, statistics=served.names))

    def _confine(self) -> None:
        """Limit this process before it runs a user's discipline for the first time."""
        if self._confined:
            return
        self._confined = True
        # What the discipline prints must not mix with the replies on stdout.
        sys.stdout, sys.stdin = self._printed, io.StringIO()
        self.keep_replies_apart()
        limits.confine(self._board.last_words())
        limits.watch()

    def _open(self, request: DisciplineRequest) -> ServedQueue:
        queue = HeaderQueue(Namespace(f"queue {request.queue}", request.pid), request.queue)
        served = ServedQueue(queue, self._board.slot(request.queue - 1))
        self._served[request.queue] = served
        self.idle.register(queue.fileno(), select.EPOLLIN)
        return served

    def _close(self, number: int) -> None:
        """Close a queue whose rule is gone, after sending its last packets."""
        served = self._served.pop(number)
        served.read(time.monotonic())
        served.pass_on()
        self.idle.unregister(served.queue.fileno())
        served.queue.close()


def serve() -> None:
    """Run disciplines until stdin ends."""
    run_as(NAME, lambda: DisciplineLoop(SharedCounters(_BOARD)))
