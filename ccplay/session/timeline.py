"""Plays a timeline: finds the commands that are due, and matches the lab's replies."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import chain, islice, takewhile
from typing import TypeVar, cast

import msgspec
from msgspec.structs import replace

from ccplay.model.base import Command, StartTraffic
from ccplay.model.commands import Build, Mark, StartTogether, TraceFlow
from ccplay.model.events import Applied, Failed
from ccplay.scenario.values import Step
from ccplay.state.lab_state import LabState
from ccplay.traffic import ends_of, started_by, stopped_by

# --- matches the commands of a timeline that were sent with the lab's replies ---------------------

Answer = TypeVar("Answer")


class DueStep(msgspec.Struct, frozen=True):
    """A command of a timeline and the moment at which it is due."""

    at: float
    """Lab time in seconds at which the step is due, as ``Event.t``."""
    command: Command
    place: str = ""
    """Place of the step in the scenario file; empty if it is in none."""
    together: bool = False
    """Whether the lab prepares the command and starts it together with others of its moment."""
    overrides: bool = False
    """Whether the step runs even if it undoes a setting of the user."""


def moment_of(step: DueStep) -> float:
    """Return the moment of a step in seconds, rounded as in ``Applied.due``."""
    return round(max(step.at, 0.0), 6)


def answers_apart(event: object) -> bool:
    """Whether an event answers a start that was prepared, so it is out of the commands' order."""
    return isinstance(event, Applied | Failed) and event.due is not None


class Outbox:
    """Commands sent to a lab, which carries them out in order and answers each once."""

    def __init__(self) -> None:
        self._unanswered: deque[DueStep | None] = deque()
        self._together: dict[float, deque[DueStep]] = {}
        """Steps that start together, by their moment; the lab answers them only at that moment,
        out of order."""

    @property
    def unanswered(self) -> tuple[DueStep, ...]:
        """Steps that were sent, but are not yet carried out or refused."""
        preparing = chain.from_iterable(self._together.values())
        return (*(step for step in self._unanswered if step is not None), *preparing)

    def note(self, step: DueStep | None) -> None:
        """Record that a step was sent; None stands for a command from no timeline."""
        if step is not None and step.together:
            self._together.setdefault(moment_of(step), deque()).append(step)
        else:
            self._unanswered.append(step)

    def match(self, event: Answer) -> Answer:
        """Return an event of the lab; if it answers a step, with the step's moment in ``due``."""
        answers = isinstance(event, Failed) or (isinstance(event, Applied) and not event.renewed)
        if not answers:
            return event
        if isinstance(event, Applied | Failed) and event.due is not None:
            if waiting := self._together.get(event.due):
                waiting.popleft()
            return event
        if not self._unanswered:
            return event
        step = self._unanswered.popleft()
        if step is None or not isinstance(event, Applied):
            return event
        return replace(event, due=moment_of(step))


# --- plays a timeline: finds the commands that are due in a given state ---------------------------

_MOST_EARLY = 1000
"""Greatest number of steps prepared before the network is ready; others are prepared after it."""

_SOON_S = 1.0
"""Seconds after the network is ready; what starts within them is prepared before it is ready."""

_LEAD_S, _LEAD_EACH_S, _LEAD_RTTS = 0.3, 0.03, 3
"""Time that a lab has to prepare the traffic of one moment: seconds, seconds per traffic, and RTTs
to open connections: three times what programs take on an idle machine; two RTTs and a queue."""

_LONGEST_LEAD_S = 3.0
"""Greatest number of seconds before its moment at which traffic is prepared."""


class Script:
    """The steps of a timeline that are not due yet; time counts from when the network is ready.

    What is due depends only on the state, so a timeline plays the same without a screen.
    """

    def __init__(self, timeline: Sequence[Step]) -> None:
        self._waiting = list(timeline)
        self._began = False
        self._rtts_s: dict[float, float] = {}
        """Longest base RTT in seconds of the traffic that starts at a moment, by that moment; kept
        because paths take long to find."""
        commands = [step.command for step in timeline]
        stopped = {kind.name_of(each) for each in commands if (kind := stopped_by(each))}
        self._ending = [
            name
            for each in commands
            if (kind := started_by(each)) is not None
            and (name := kind.name_of(each)) is not None
            and (kind.ends(each) or name in stopped)
        ]

    @property
    def names(self) -> list[str]:
        """The names of all traffic that is yet to start, in the order of the file."""
        in_order = sorted(self._waiting, key=lambda step: step.number)
        commands = [step.command for step in in_order]
        started = [kind.name_of(each) for each in commands if (kind := started_by(each))]
        return [name for name in started if name is not None]

    def prepare(self, build: Build) -> Build:
        """Return ``build`` with all that the lab must know of the timeline beforehand.

        For example, traffic started by the user must not get a name that the timeline uses.
        """
        commands = [step.command for step in self._waiting]
        named = {cc: None for each in commands if (cc := getattr(each, "cc", None)) is not None}
        moments: dict[float, list[StartTraffic]] = {}
        for step in self._early():
            moments.setdefault(step.at_s, []).append(cast("StartTraffic", step.command))
        return msgspec.structs.replace(
            build,
            reserved=self.names,
            traces=any(isinstance(each, TraceFlow) for each in commands),
            first=moments.pop(0.0, []),
            soon=[StartTogether(at=at, commands=each) for at, each in moments.items()],
            prepared=list(named),
        )

    def _early(self) -> list[Step]:
        """Return the first starts of traffic, in order, until another command or ``_SOON_S``."""
        known = [each for each in self._waiting if each.after is None]
        # A mark changes nothing.
        others = (each for each in known if not isinstance(each.command, Mark))
        # A stable sort: steps of one moment keep the order of the file.
        in_order = sorted(others, key=lambda step: step.at_s)
        early = takewhile(
            lambda step: step.at_s < _SOON_S and started_by(step.command) is not None, in_order
        )
        return list(islice(early, _MOST_EARLY))

    @property
    def waiting(self) -> tuple[Step, ...]:
        """Steps that are not due yet."""
        return tuple(self._waiting)

    def due(self, state: LabState) -> list[DueStep]:
        """Return the steps that are due, the earliest first, each once."""
        if state.ready_at is None or not self._waiting:
            return []
        if not self._began:
            self._began = True
            if state.hello is not None and state.hello.build is not None:
                # The lab starts these by itself; a lab of 0.1 has none.
                build = state.hello.build
                count = len(build.first) + sum(len(each.commands) for each in build.soon)
                self._take(self._early()[:count])
        moments = ((self._moment(step, state), step) for step in self._waiting)
        known = [(moment, step) for moment, step in moments if moment is not None]
        # A stable sort: steps of one moment keep the order of the file.
        known.sort(key=lambda pair: pair[0])
        together = state.hello is not None and state.hello.starts_together
        horizon = state.now + (self._lead_s(known, state) if together else 0.0)
        due, taken = list[DueStep](), list[Step]()
        for moment, step in known:
            starts = together and started_by(step.command) is not None
            if moment > (horizon if starts else state.now):
                # No step may overtake an earlier one.
                break
            due.append(DueStep(moment, step.command, step.place, together=starts))
            taken.append(step)
        self._take(taken)
        return due

    def _take(self, steps: Sequence[Step]) -> None:
        """Remove steps from those that wait."""
        if steps:
            taken = {id(each) for each in steps}
            self._waiting = [each for each in self._waiting if id(each) not in taken]

    def _lead_s(self, known: Sequence[tuple[float, Step]], state: LabState) -> float:
        """Return how many seconds before its moment the next traffic must be prepared."""
        starts = [(at, each.command) for at, each in known if started_by(each.command) is not None]
        moment = min((at for at, _ in starts if at > state.now), default=None)
        # Links may change before that.
        if moment is None or moment > state.now + _LONGEST_LEAD_S:
            return 0.0
        commands = [command for at, command in starts if at == moment]
        if moment not in self._rtts_s:
            self._rtts_s[moment] = max(_rtt_s(each, state) for each in commands)
        lead_s = _LEAD_S + _LEAD_EACH_S * len(commands) + _LEAD_RTTS * self._rtts_s[moment]
        return min(lead_s, _LONGEST_LEAD_S)

    def next_at(self, state: LabState) -> float | None:
        """Return the lab time of the next known step; None if there is none."""
        moments = (self._moment(step, state) for step in self._waiting)
        return min((moment for moment in moments if moment is not None), default=None)

    def idle(self, state: LabState) -> bool:
        """Return whether no step can be due, or have to be prepared, within the next second."""
        if not self._waiting:
            return True
        moments = [self._moment(step, state) for step in self._waiting]
        # Any step may have to be prepared; one that follows the end of traffic may come any time.
        lead_s = _LONGEST_LEAD_S + 1.0
        return all(moment is not None and moment > state.now + lead_s for moment in moments)

    def finished(self, state: LabState) -> bool:
        """Whether all steps are done, and all traffic with a size, duration or stop has ended."""
        return not self._waiting and all(ended_at(state, name) is not None for name in self._ending)

    def _moment(self, step: Step, state: LabState) -> float | None:
        since = state.ready_at if step.after is None else ended_at(state, step.after)
        return None if since is None else since + step.at_s


def ended_at(state: LabState, name: str) -> float | None:
    """Return when traffic of this name ended; None if it runs or was never started."""
    found = state.traffic.get(name)
    return None if found is None else found.ended


def _rtt_s(command: Command, state: LabState) -> float:
    """Return the base RTT in seconds between the hosts of a start, with the present delays."""
    network = state.hello.network if state.hello is not None else None
    if network is None:
        return 0.0
    src, dst = ends_of(command, network)
    if src is None or dst is None:
        return 0.0

    def delay_us(name: str) -> float:
        change = state.link_at(name, state.now)
        return 0.0 if change is None else change.setting.delay_us or 0.0

    return network.base_rtt(src, dst, delay_us) * 1e-6
