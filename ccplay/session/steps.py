"""The commands of a session: due by its timeline, sent, answered, overridden, undone and redone."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain, islice, takewhile
from typing import Any, TypeGuard, cast

import msgspec
from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.model.base import Command, Event, StartTraffic
from ccplay.model.commands import (
    Build,
    Change,
    InForce,
    Inverse,
    Mark,
    SetCongestionControl,
    StartTogether,
    StopCapture,
    Thing,
    TraceFlow,
)
from ccplay.model.events import Applied, Failed
from ccplay.model.network import Network
from ccplay.model.quantities import quote
from ccplay.scenario.values import Step
from ccplay.state.lab_state import LabState
from ccplay.stream.wire import UnknownEvent
from ccplay.traffic import ends_of, started_by, stopped_by
from ccplay.traffic.base import Traffic
from ccplay.traffic.routes import nodes_of

# --- the steps of a timeline ----------------------------------------------------------------------


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


def is_separate_answer(event: object) -> bool:
    """Whether an event answers a start that was prepared, so it is out of the commands' order."""
    return isinstance(event, Applied | Failed) and event.due is not None


# --- plays a timeline: finds the commands that are due in a given state ---------------------------

_MOST_EARLY = 1000
"""Greatest number of steps prepared before the network is ready; others are prepared after it."""

_SOON_S = 1.0
"""Seconds after the network is ready; what starts within them is prepared before it is ready."""

_LEAD_S, _LEAD_EACH_S, _LEAD_RTTS = 1.3, 0.03, 3
"""Time that a lab has to prepare the traffic of one moment: seconds, seconds per traffic, and RTTs
to open connections: three times what programs take on an idle machine; two RTTs and a queue; and
the second after which a SYN that a full queue dropped is repeated (RFC 6298, 2.1)."""

_LONGEST_LEAD_S = 4.0
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

    def prepare(self, build: Build) -> Build:
        """Return ``build`` with all that the lab must know of the timeline beforehand.

        For example, traffic started by the user must not get a name that the timeline uses.
        """
        commands = [step.command for step in self._waiting]
        as_in_file = sorted(self._waiting, key=lambda step: step.number)
        starts = ((started_by(each.command), each.command) for each in as_in_file)
        names = (kind.name_of(command) for kind, command in starts if kind is not None)
        named = {cc: None for each in commands if (cc := getattr(each, "cc", None)) is not None}
        moments: dict[float, list[StartTraffic]] = {}
        for step in self._early():
            moments.setdefault(step.at_s, []).append(cast("StartTraffic", step.command))
        return replace(
            build,
            reserved=[name for name in names if name is not None],
            traces=any(isinstance(each, TraceFlow) for each in commands),
            traced=self._traced_from_start(),
            first=moments.pop(0.0, []),
            soon=[StartTogether(at=at, commands=each) for at, each in moments.items()],
            prepared=list(named),
        )

    def _traced_from_start(self) -> list[str]:
        """Return the names of the traffic whose trace begins at the moment of its start."""
        begins = {
            (kind.name_of(each.command), each.after, each.at_s)
            for each in self._waiting
            if (kind := started_by(each.command)) is not None
        }
        return [
            each.command.flow
            for each in self._waiting
            if isinstance(each.command, TraceFlow)
            and (each.command.flow, each.after, each.at_s) in begins
        ]

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
                self._remove(self._early()[:count])
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
                if isinstance(step.command, Mark):
                    # It changes nothing, so traffic may be prepared before it.
                    continue
                # No step may overtake an earlier one.
                break
            due.append(DueStep(moment, step.command, step.place, together=starts))
            taken.append(step)
        self._remove(taken)
        return due

    def _remove(self, steps: Sequence[Step]) -> None:
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


# --- finds the commands that undo a command, from the settings in force before it -----------------


def in_force(state: LabState, network: Network) -> InForce:
    """Return the settings in force now."""
    started = (each.command for each in state.applied if isinstance(each.command, StartTraffic))
    marks = (each for each in state.log if each.kind == "mark" and each.name)
    return InForce(
        network=network,
        links={name: changes[-1].setting for name, changes in state.links.items()},
        hosts=dict(state.hosts),
        algorithms={name: each.cc for name, each in state.flows.items()} | _switched(state),
        starts={each.name or "": each for each in started},
        marks={each.name: Mark(name=each.name, text=each.text, at=each.t) for each in marks},
        paths={name: _pinned(state.flows.get(name, each)) for name, each in state.traffic.items()},
    )


def _pinned(traffic: Traffic | None) -> list[str]:
    """Return the routers on the path that a command chose for traffic; empty if none did."""
    if traffic is None or not traffic.paths or not traffic.paths[-1].pinned:
        return []
    return list(nodes_of(traffic.paths[-1])[1:-1])


def _switched(state: LabState) -> dict[str, str]:
    """Return the algorithms of flows that were switched after their last sweep."""
    found = {}
    for done in state.applied:
        command = done.command
        if isinstance(command, SetCongestionControl) and command.flow in state.flows:
            changes = state.flows[command.flow].cc_changes
            if not changes or changes[-1][0] < done.t:
                found[command.flow] = command.cc
    return found


def inverse(command: Command, was: InForce) -> Inverse:
    """Return the inverse of a command that took effect."""
    if (kind := started_by(command)) is not None:
        stop = kind.stopping(kind.name_of(command) or "")
        return Inverse((stop,), stop.describe())
    if (kind := stopped_by(command)) is not None:
        name = kind.name_of(command) or ""
        start = was.starts.get(name)
        if start is None:
            return Inverse(refusal=f"it is not known how {name} was started")
        changed: dict[str, Any] = {kind.field: None}
        if kind.connection and name in was.algorithms:
            changed["cc"] = was.algorithms[name]
        text = f"{kind.word} {name} starts again under the next free name"
        return Inverse((replace(start, **changed),), text)
    if isinstance(command, Change):
        return command.inverse(was)
    return Inverse(refusal="it built the network")


def redo_of(done: Applied, undo: Applied) -> Command:
    """Return the command that redoes ``done`` after ``undo`` has undone it."""
    command = done.command
    if (kind := started_by(command)) is not None:
        # A name stands for one thing per session, so this one needs a new name.
        return replace(command, **{kind.field: None})
    if (kind := stopped_by(command)) is not None:
        return kind.stopping(kind.name_of(undo.command) or "")
    return command.redo(done.t) if isinstance(command, Change) else command


def find_obstacle(command: Command, state: LabState) -> str:
    """Return why a command can have no effect any more; empty if it can."""
    name = command.needs()
    traffic = state.traffic.get(name)
    if traffic is not None and traffic.ended is not None:
        return f"{traffic.kind} {name} has ended"
    if isinstance(command, StopCapture) and command.capture not in state.captures:
        return f"capture {command.capture} has ended"
    return ""


# --- the commands sent to a lab, and the user's changes among them, to undo and redo them ---------


class UserChange(msgspec.Struct, frozen=True):
    """A change by the user that took effect."""

    asked: Command
    """Command as it was sent."""
    done: Applied
    inverse: Inverse


class _Sent(msgspec.Struct):
    """A command that the lab has not answered yet."""

    command: Command
    step: DueStep | None = None
    """Step of the timeline; None for another command."""
    by_hand: bool = False
    undoes: UserChange | None = None
    """Change that is undone once the command has taken effect."""
    was: InForce | None = None
    """Settings before the command, if it is the user's."""


def _is_answer(event: object) -> TypeGuard[Applied | Failed]:
    """Return whether an event answers a command that was sent."""
    return isinstance(event, Failed) or (isinstance(event, Applied) and not event.renewed)


class History:
    """The commands sent to a lab, and the user's changes that can be undone and redone.

    A lab carries out commands in order and answers each once, so the settings before a command
    are those in the state once the command before it was answered.
    """

    def __init__(self) -> None:
        self._sent: deque[_Sent] = deque()
        self._together: dict[float, deque[DueStep]] = {}
        """Steps that start together, by their moment; the lab answers them only at that moment,
        out of order."""
        self._done: list[UserChange] = []
        self._undone: list[Command] = []

    @property
    def unanswered(self) -> tuple[DueStep, ...]:
        """Steps that were sent, but are not yet carried out or refused."""
        preparing = chain.from_iterable(self._together.values())
        return (*(each.step for each in self._sent if each.step is not None), *preparing)

    def awaits(self, command: Command) -> bool:
        """Return whether the user has sent the same command and the lab has not answered it."""
        return any(each.by_hand and each.command == command for each in self._sent)

    @property
    def next(self) -> UserChange | None:
        """The last change, which is the next to be undone; None if there is none."""
        return self._done[-1] if self._done else None

    def send(
        self,
        command: Command,
        state: LabState,
        *,
        step: DueStep | None = None,
        by_hand: bool = False,
        undoes: UserChange | None = None,
    ) -> None:
        """Record that a command was sent: a step's, the user's, or one that undoes a change."""
        self._sent.append(_Sent(command, step, by_hand, undoes))
        if len(self._sent) == 1:
            self._record_settings(state)

    def prepare(self, at: float, steps: Sequence[DueStep]) -> None:
        """Record that steps were sent which start together at this moment."""
        self._together.setdefault(at, deque()).extend(steps)

    def match(self, event: Event | UnknownEvent) -> Event | UnknownEvent:
        """Return an event of the lab; if it answers a step, with the step's moment in ``due``."""
        if not _is_answer(event):
            return event
        if event.due is not None:
            if waiting := self._together.get(event.due):
                waiting.popleft()
        elif isinstance(event, Applied) and self._sent and (step := self._sent[0].step) is not None:
            return replace(event, due=moment_of(step))
        return event

    def answer(self, event: object, state: LabState) -> None:
        """Process an event of the lab that was already applied to ``state``."""
        if not _is_answer(event) or not self._sent:
            return
        sent = self._sent.popleft()
        # An untrusted lab may report another command than the one that was sent.
        if isinstance(event, Applied) and type(event.command) is type(sent.command):
            if sent.was is not None:
                self._done.append(UserChange(sent.command, event, inverse(event.command, sent.was)))
            if sent.undoes is not None:
                self._undone.append(redo_of(sent.undoes.done, event))
        self._record_settings(state)

    def forget_undone(self) -> None:
        """Forget the undone changes, because the user has changed something else."""
        self._undone.clear()

    def undo(self, state: LabState) -> UserChange:
        """Remove and return the change to undo.

        Raises ``CommandError`` if there is none, or if it can't be undone any more.
        """
        self._require_answers("undo")
        if not self._done:
            raise CommandError("nothing to undo: you have not changed anything")
        change = self._done.pop()
        obstacles = (find_obstacle(each, state) for each in change.inverse.commands)
        reason = change.inverse.refusal or next(filter(None, obstacles), "")
        if reason:
            raise CommandError(f"can't undo {quote(change.done.command.describe())}: {reason}")
        return change

    def redo(self) -> Command:
        """Remove the change that was undone last; return the command that redoes it.

        Raises ``CommandError`` if there is none.
        """
        self._require_answers("redo")
        if not self._undone:
            raise CommandError("nothing to redo: nothing was undone")
        return self._undone.pop()

    def _require_answers(self, what: str) -> None:
        """Raise ``CommandError`` if the lab has not yet answered a command of the user."""
        for each in self._sent:
            if each.by_hand or each.undoes is not None:
                text = f"{quote(each.command.describe())} is still being carried out"
                raise CommandError(f"can't {what} yet: {text}")

    def _record_settings(self, state: LabState) -> None:
        """Keep the settings in force before the next unanswered command, if it is the user's."""
        if self._sent and self._sent[0].by_hand and state.hello is not None:
            self._sent[0].was = in_force(state, state.hello.network)


# --- manual overrides: a timeline skips steps that would undo the user's settings -----------------


class ByHand:
    """The user's own settings in a session, which the steps of a timeline must not undo.

    Steps that only add something, such as a flow, a ping or a mark, always run.
    """

    def __init__(self) -> None:
        self.asked: list[Command] = []
        """Commands of the user that took effect or are under way."""

    def forget(self, command: Command) -> None:
        """Forget a command that failed or was undone; steps may set the same things again."""
        if command in self.asked:
            self.asked.remove(command)

    def _release(self, command: Command, network: Network) -> None:
        """Forget the user's commands that set any of the things that ``command`` sets."""
        things = _sets(command, network)
        self.asked = [each for each in self.asked if not _sets(each, network) & things]

    def separate_overridden(
        self, due: Iterable[DueStep], network: Network
    ) -> tuple[list[DueStep], list[str]]:
        """Return the steps of a moment that may run, and messages about those that are skipped.

        If a step is skipped and only marks are left, the marks are skipped without a message.
        """
        due = list(due)
        for step in due:
            if step.overrides:
                self._release(step.command, network)
        taken = {thing for command in self.asked for thing in _sets(command, network)}
        kept: list[DueStep] = []
        skipped: list[str] = []
        for step in due:
            if step.overrides:
                kept.append(step)
                continue
            rest, undoing = _parted(step.command, taken, network)
            kept += [replace(step, command=each) for each in rest]
            why = "you stopped it" if _needed(step.command) & taken else "your setting stays"
            skipped += [f"skipped, {why}: {each.describe()}" for each in undoing]
        if skipped and all(isinstance(each.command, Mark) for each in kept):
            kept.clear()
        return kept, skipped


def _parted(
    command: Command, taken: set[Thing], network: Network
) -> tuple[list[Command], list[Command]]:
    """Split a command into a part that leaves ``taken`` settings alone, and one that does not."""
    undone = (_sets(command, network) | _needed(command)) & taken
    if not undone:
        return [command], []
    if not isinstance(command, Change):
        return [], [command]
    rest, undoing = command.split_off(undone)
    return ([] if rest is None else [rest]), [undoing]


def _sets(command: Command, network: Network) -> set[Thing]:
    """Return the settings that a command makes or ends; the traffic that it stops."""
    made = command.sets(network) if isinstance(command, Change) else set()
    return made or _needed(command)


def _needed(command: Command) -> set[Thing]:
    name = command.needs()
    return {("traffic", name)} if name else set()
