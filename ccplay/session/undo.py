"""Undo: the user's changes in order, and the commands that undo each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.model.commands import (
    AnyCommand,
    ChangeMark,
    Mark,
    RemoveMark,
    SetClasses,
    SetCongestionControl,
    SetLink,
    SetPath,
    SetQdisc,
    StartCapture,
    StopCapture,
    TraceFlow,
    UntraceFlow,
)
from ccplay.model.disciplines import is_software
from ccplay.model.events import Applied, Failed
from ccplay.model.network import Network
from ccplay.model.quantities import quote
from ccplay.model.traffic import started_by, stopped_by
from ccplay.model.traffic_commands import StartTraffic, StopTraffic
from ccplay.model.values import LINK_OFF, LinkSetting, Qdisc
from ccplay.model.wording import describe
from ccplay.session.timeline import DueStep
from ccplay.state.lab_state import Entry, LabState
from ccplay.state.routes import nodes_of
from ccplay.state.traffic import Routed
from ccplay.units import format_clock

# --- finds the commands that undo a command, from the settings in force before it -----------------


class Before(msgspec.Struct, frozen=True):
    """The settings in force just before the lab carried out a command."""

    network: Network
    links: Mapping[str, LinkSetting]
    """Settings of links by direction, of those that were ever set."""
    hosts: Mapping[str, str]
    """Default congestion control by host."""
    algorithms: Mapping[str, str]
    """Congestion control of each flow and download, by name."""
    starts: Mapping[str, StartTraffic]
    """Command that started each traffic, with the names that the lab chose, by traffic name."""
    marks: Mapping[str, Entry]
    """Marks by name."""
    paths: Mapping[str, list[str]] = msgspec.field(default_factory=dict)
    """Routers on the path of traffic, by its name; empty if no command chose the path."""


class Inverse(msgspec.Struct, frozen=True):
    """The commands that undo a command, or the reason why there are none."""

    commands: tuple[AnyCommand, ...] = ()
    text: str = ""
    """Line that describes the undoing: ``queue bottleneck back to pfifo 100 pkt``."""
    refusal: str = ""
    """Reason why the command can't be undone; empty if it can."""


def before(state: LabState, network: Network) -> Before:
    """Return the settings in force now."""
    started = (each.command for each in state.applied if isinstance(each.command, StartTraffic))
    return Before(
        network=network,
        links={name: changes[-1].setting for name, changes in state.links.items()},
        hosts=dict(state.hosts),
        algorithms={name: each.cc for name, each in state.flows.items()} | _switched(state),
        starts={_name(each): each for each in started},
        marks={each.name: each for each in state.log if each.kind == "mark" and each.name},
        paths={name: _pinned(state.flows.get(name, each)) for name, each in state.traffic.items()},
    )


def _pinned(traffic: object) -> list[str]:
    """Return the routers on the path that a command chose for traffic; empty if none did."""
    if not isinstance(traffic, Routed) or not traffic.paths or not traffic.paths[-1].pinned:
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


def inverse(done: Applied, was: Before) -> Inverse:
    """Return the inverse of a command that took effect."""
    command = done.command
    if isinstance(command, StartTraffic):
        return _stop(command)
    if isinstance(command, StopTraffic):
        return _start_again(command, was)
    return _INVERSES[type(command)](command, was)


def again(done: Applied, undo: Applied) -> AnyCommand:
    """Return the command that redoes ``done`` after ``undo`` has undone it."""
    command = done.command
    if (kind := started_by(command)) is not None:
        # A name stands for one thing per session, so this one needs a new name.
        return replace(command, **{kind.field: None})
    if (kind := stopped_by(command)) is not None:
        return kind.stopping(kind.name_of(undo.command) or "")
    if isinstance(command, StartCapture):
        return replace(command, capture=None)
    if isinstance(command, Mark) and command.at is None:
        return replace(command, at=done.t)
    return command


def obstacle(command: AnyCommand, state: LabState) -> str:
    """Return why a command can have no effect any more; empty if it can."""
    name = ""
    if (kind := stopped_by(command)) is not None:
        name = kind.name_of(command) or ""
    elif isinstance(command, SetCongestionControl | TraceFlow | UntraceFlow):
        name = command.flow or ""
    elif isinstance(command, SetPath):
        name = command.traffic
    traffic = state.traffic.get(name)
    if traffic is not None and traffic.ended is not None:
        return f"{traffic.kind} {name} has ended"
    if isinstance(command, StopCapture) and command.capture not in state.captures:
        return f"capture {command.capture} has ended"
    return ""


# --- traffic --------------------------------------------------------------------------------


def _name(command: StartTraffic) -> str:
    kind = started_by(command)
    return (kind.name_of(command) if kind else None) or ""


def _stop(command: StartTraffic) -> Inverse:
    if (kind := started_by(command)) is None:
        return Inverse(refusal="it did not start anything")
    stop = kind.stopping(kind.name_of(command) or "")
    return Inverse((stop,), describe(stop))


def _start_again(command: StopTraffic, was: Before) -> Inverse:
    kind = stopped_by(command)
    name = (kind.name_of(command) if kind else None) or ""
    start = was.starts.get(name)
    if kind is None or start is None:
        return Inverse(refusal=f"it is not known how {name} was started")
    changed: dict[str, Any] = {kind.field: None}
    if kind.connection and name in was.algorithms:
        changed["cc"] = was.algorithms[name]
    text = f"{kind.word} {name} starts again, under the next free name"
    return Inverse((replace(start, **changed),), text)


# --- settings -------------------------------------------------------------------------------


def _congestion_control(command: SetCongestionControl, was: Before) -> Inverse:
    if command.flow is not None:
        cc, what = was.algorithms.get(command.flow), f"flow {command.flow}"
    else:
        cc, what = was.hosts.get(command.host or ""), f"{command.host}: new connections"
    if cc is None:
        return Inverse(
            refusal=f"the earlier congestion control of {command.flow or command.host} is not known"
        )
    return Inverse((replace(command, cc=cc),), f"{what} back to {cc}")


def _path(command: SetPath, was: Before) -> Inverse:
    back = SetPath(traffic=command.traffic, via=was.paths.get(command.traffic, []))
    return Inverse((back,), _back(back))


def _queue(command: SetQdisc, was: Before) -> Inverse:
    def put(link: str, setting: LinkSetting) -> Iterator[AnyCommand]:
        qdisc = _qdisc(setting, command.traffic_class)
        if qdisc is not None:
            yield replace(command, link=link, qdisc=qdisc)
        elif not setting.rate:
            # Only an unlimited link has no queue; setting no limit removes the queue.
            yield SetLink(link=link, rate=0)

    return _of_links(command, was, put)


def _qdisc(setting: LinkSetting, traffic_class: str | None) -> Qdisc | None:
    if traffic_class is None:
        return setting.qdisc
    found = (each.qdisc for each in setting.classes or () if each.name == traffic_class)
    return next(found, None)


def _classes(command: SetClasses, was: Before) -> Inverse:
    def put(link: str, setting: LinkSetting) -> Iterator[AnyCommand]:
        yield SetClasses(link=link, classes=setting.classes or [])
        if setting.qdisc is not None and is_software(setting.qdisc.kind):
            # Without classes, the link has the kernel's queue that was behind it.
            yield SetQdisc(link=link, qdisc=setting.qdisc)

    return _of_links(command, was, put)


def _link(command: SetLink, was: Before) -> Inverse:
    changed = [each for each in LINK_FIELDS if getattr(command, each) is not None]

    def put(link: str, setting: LinkSetting) -> Iterator[AnyCommand]:
        yield SetLink(link=link, **{each: link_value(setting, each) for each in changed})
        if command.rate == 0 and setting.qdisc is not None:
            # Removing the rate has removed the queue, too.
            yield SetQdisc(link=link, qdisc=setting.qdisc)

    return _of_links(command, was, put)


LINK_FIELDS = tuple(each for each in SetLink.__struct_fields__ if each != "link")
"""Names of the settings of a link that ``SetLink`` can change."""

_OFF: dict[str, Any] = {"down": False, **LINK_OFF}
"""Values of ``SetLink`` that turn a setting off, for settings that 0 does not turn off."""


def link_value(setting: LinkSetting, field: str) -> Any:
    """Return the value of a field of ``SetLink`` that restores ``setting``.

    A setting that was never made is None in ``setting``; its value turns it off.
    """
    return getattr(setting, field) or _OFF.get(field, 0)


def _of_links(
    command: SetQdisc | SetClasses | SetLink,
    was: Before,
    put: Callable[[str, LinkSetting], Iterator[AnyCommand]],
) -> Inverse:
    """Return the inverse that ``put`` yields for each direction, or for the link if all agree."""
    try:
        links = was.network.resolve(command.link)
    except CommandError as error:
        return Inverse(refusal=str(error))
    # A link that was never set is unlimited and has no other effect.
    settings = {link.name: was.links.get(link.name, LinkSetting()) for link in links}
    # Under the name in the command, so that equal directions need only one command.
    alike = [list(put(command.link, setting)) for setting in settings.values()]
    if all(each == alike[0] for each in alike):
        commands = alike[0]
    else:
        commands = [each for name, setting in settings.items() for each in put(name, setting)]
    if not commands:
        return Inverse(refusal=f"link {command.link} had none before")
    return Inverse(tuple(commands), "; ".join(map(_back, commands)))


def _back(command: AnyCommand) -> str:
    """Return the description of a command that restores an earlier setting."""
    return describe(command).replace(" shared → ", " → ").replace(" → ", " back to ", 1)


# --- what only observes ---------------------------------------------------------------------


def _start_capture(command: StartCapture, _: Before) -> Inverse:
    stop = StopCapture(capture=command.capture or "")
    return Inverse((stop,), describe(stop))


def _stop_capture(command: StopCapture, _: Before) -> Inverse:
    return Inverse(refusal=f"the file of capture {command.capture} is complete: k starts another")


def _trace(command: TraceFlow, _: Before) -> Inverse:
    stop = UntraceFlow(flow=command.flow)
    return Inverse((stop,), describe(stop))


def _untrace(command: UntraceFlow, _: Before) -> Inverse:
    start = TraceFlow(flow=command.flow)
    return Inverse((start,), f"{describe(start)} again")


def _mark(command: Mark, _: Before) -> Inverse:
    return Inverse((RemoveMark(name=command.name or ""),), f"mark {command.text!r} is removed")


def _change_mark(command: ChangeMark, was: Before) -> Inverse:
    entry = was.marks.get(command.name)
    if entry is None:
        return _unknown_mark(command.name)
    back = ChangeMark(name=command.name, text=entry.text, at=entry.t)
    return Inverse((back,), f"mark {entry.text!r} back at {format_clock(entry.t)}")


def _remove_mark(command: RemoveMark, was: Before) -> Inverse:
    entry = was.marks.get(command.name)
    if entry is None:
        return _unknown_mark(command.name)
    back = Mark(name=command.name, text=entry.text, at=entry.t)
    return Inverse((back,), f"mark {entry.text!r} back at {format_clock(entry.t)}")


def _unknown_mark(name: str) -> Inverse:
    return Inverse(refusal=f"mark {name} is not known")


_INVERSES: dict[type, Callable[[Any, Before], Inverse]] = {
    SetCongestionControl: _congestion_control,
    SetPath: _path,
    SetQdisc: _queue,
    SetClasses: _classes,
    SetLink: _link,
    StartCapture: _start_capture,
    StopCapture: _stop_capture,
    TraceFlow: _trace,
    UntraceFlow: _untrace,
    Mark: _mark,
    ChangeMark: _change_mark,
    RemoveMark: _remove_mark,
}


# --- keeps the user's changes in a session, in order, to undo and redo them -----------------------


class Change(msgspec.Struct, frozen=True):
    """A change by the user that took effect."""

    asked: AnyCommand
    """Command as it was sent."""
    done: Applied
    inverse: Inverse


class _Sent(msgspec.Struct):
    """A command that the lab has not answered yet."""

    command: AnyCommand
    by_hand: bool
    undoes: Change | None = None
    """Change that is undone once the command has taken effect."""
    was: Before | None = None


class History:
    """The user's changes that can be undone, and the undone ones that can be redone.

    A lab carries out commands in order and answers each once, so the settings before a command
    are those in the state once the command before it was answered.
    """

    def __init__(self) -> None:
        self._sent: deque[_Sent] = deque()
        self._done: list[Change] = []
        self._undone: list[AnyCommand] = []

    @property
    def next(self) -> Change | None:
        """The last change, which is the next to be undone; None if there is none."""
        return self._done[-1] if self._done else None

    def send(
        self,
        command: AnyCommand,
        state: LabState,
        *,
        by_hand: bool,
        undoes: Change | None = None,
    ) -> None:
        """Record that a command was sent; ``undoes`` is the change that it undoes, if any."""
        self._sent.append(_Sent(command, by_hand, undoes))
        if len(self._sent) == 1:
            self._look(state)

    def answer(self, event: object, state: LabState) -> None:
        """Process an event of the lab that was already applied to ``state``."""
        answers = isinstance(event, Failed) or (isinstance(event, Applied) and not event.renewed)
        if not answers or not self._sent:
            return
        sent = self._sent.popleft()
        # An untrusted lab may report another command than the one that was sent.
        if isinstance(event, Applied) and type(event.command) is type(sent.command):
            if sent.was is not None:
                self._done.append(Change(sent.command, event, inverse(event, sent.was)))
            if sent.undoes is not None:
                self._undone.append(again(sent.undoes.done, event))
        self._look(state)

    def start_over(self) -> None:
        """Forget the undone changes, because the user has changed something else."""
        self._undone.clear()

    def undo(self, state: LabState) -> Change:
        """Remove and return the change to undo.

        Raises ``CommandError`` if there is none, or if it can't be undone any more.
        """
        self._wait("undo")
        if not self._done:
            raise CommandError("nothing to undo: you have not changed anything")
        change = self._done.pop()
        obstacles = (obstacle(each, state) for each in change.inverse.commands)
        reason = change.inverse.refusal or next(filter(None, obstacles), "")
        if reason:
            raise CommandError(f"can't undo {quote(describe(change.done.command))}: {reason}")
        return change

    def redo(self) -> AnyCommand:
        """Remove the change that was undone last; return the command that redoes it.

        Raises ``CommandError`` if there is none.
        """
        self._wait("redo")
        if not self._undone:
            raise CommandError("nothing to redo: nothing was undone")
        return self._undone.pop()

    def _wait(self, what: str) -> None:
        """Raise ``CommandError`` if the lab has not yet answered a command of the user."""
        for each in self._sent:
            if each.by_hand or each.undoes is not None:
                text = f"{quote(describe(each.command))} is still being carried out"
                raise CommandError(f"can't {what} yet: {text}")

    def _look(self, state: LabState) -> None:
        """Keep the settings in force before the next unanswered command, if it is the user's."""
        if self._sent and self._sent[0].by_hand and state.hello is not None:
            self._sent[0].was = before(state, state.hello.network)


# --- manual overrides: a timeline skips steps that would undo the user's settings -----------------

_Thing: TypeAlias = tuple[str, str]
"""A setting and its subject: ``("queue", "r1->r2")``, ``("traffic", "1")``."""

_OF_LINKS = tuple(field for field in SetLink.__struct_fields__ if field != "link")


class ByHand:
    """The user's own settings in a session, which the steps of a timeline must not undo.

    Steps that only add something, such as a flow, a ping or a mark, always run.
    """

    def __init__(self) -> None:
        self._asked: list[AnyCommand] = []

    def ask(self, command: AnyCommand) -> None:
        """Record a command of the user."""
        self._asked.append(command)

    def forget(self, command: AnyCommand) -> None:
        """Forget a command that failed or was undone; steps may set the same things again."""
        if command in self._asked:
            self._asked.remove(command)

    def _release(self, command: AnyCommand, network: Network) -> None:
        """Forget the user's commands that set any of the things that ``command`` sets."""
        things = _sets(command, network)
        self._asked = [each for each in self._asked if not _sets(each, network) & things]

    def spare(self, due: Iterable[DueStep], network: Network) -> tuple[list[DueStep], list[str]]:
        """Return the steps of a moment that may run, and messages about those that are skipped.

        If a step is skipped and only marks are left, the marks are skipped without a message.
        """
        due = list(due)
        for step in due:
            if step.overrides:
                self._release(step.command, network)
        taken = {thing for command in self._asked for thing in _sets(command, network)}
        kept: list[DueStep] = []
        skipped: list[str] = []
        for step in due:
            if step.overrides:
                kept.append(step)
                continue
            rest, undoing = _parted(step.command, taken, network)
            kept += [replace(step, command=each) for each in rest]
            why = "you stopped it" if _needs(step.command) & taken else "your setting stays"
            skipped += [f"skipped, {why}: {describe(each)}" for each in undoing]
        if skipped and all(isinstance(each.command, Mark) for each in kept):
            kept.clear()
        return kept, skipped


def _parted(
    command: AnyCommand, taken: set[_Thing], network: Network
) -> tuple[list[AnyCommand], list[AnyCommand]]:
    """Split a command into a part that leaves ``taken`` settings alone, and one that does not."""
    undone = (_sets(command, network) | _needs(command)) & taken
    if not undone:
        return [command], []
    if not isinstance(command, SetLink):
        return [], [command]
    fields = {field for field, _ in undone}
    rest = replace(command, **dict.fromkeys(fields))
    undoing = replace(command, **dict.fromkeys({*_OF_LINKS} - fields))
    return ([] if rest == SetLink(link=command.link) else [rest]), [undoing]


def _sets(command: AnyCommand, network: Network) -> set[_Thing]:
    """Return the settings that a command makes or ends."""
    from ccplay.scenario.keys import directions  # noqa: PLC0415 - paint first

    match command:
        case SetCongestionControl(flow=None, host=host):
            return {("host", host or "")}
        case SetCongestionControl(flow=flow):
            return {("algorithm", flow or "")}
        case SetQdisc() | SetClasses():
            return {("queue", each) for each in directions(network, command.link)}
        case SetLink():
            changed = [field for field in _OF_LINKS if getattr(command, field) is not None]
            return {
                (field, each) for field in changed for each in directions(network, command.link)
            }
        case SetPath():
            return {("path", command.traffic)}
        case TraceFlow() | UntraceFlow():
            return {("trace", command.flow)}
        case StopCapture():
            return {("capture", command.capture)}
    # All other commands stop traffic, or only add something.
    return _needs(command)


def _needs(command: AnyCommand) -> set[_Thing]:
    """Return the traffic that must be running for a command to make sense."""
    if isinstance(command, SetCongestionControl | TraceFlow | UntraceFlow):
        return {("traffic", command.flow)} if command.flow else set()
    if isinstance(command, SetPath):
        return {("traffic", command.traffic)}
    kind = stopped_by(command)
    return set() if kind is None else {("traffic", kind.name_of(command) or "")}
