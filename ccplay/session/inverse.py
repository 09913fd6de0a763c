"""Finds the commands that undo a command, from the settings in force before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

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
from ccplay.model.events import Applied
from ccplay.model.network import Network
from ccplay.model.traffic import started_by, stopped_by
from ccplay.model.traffic_commands import StartTraffic, StopTraffic
from ccplay.model.values import LINK_OFF, LinkSetting, Qdisc
from ccplay.model.wording import describe
from ccplay.state.lab_state import Entry, LabState
from ccplay.state.routes import nodes_of
from ccplay.state.traffic import Routed
from ccplay.units import format_clock


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
