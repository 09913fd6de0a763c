"""Commands that restore the network as the lesson's file describes it, for a page that opens."""

from __future__ import annotations

from collections.abc import Iterator

from ccplay.model.commands import AnyCommand, SetClasses, SetCongestionControl, SetLink, SetQdisc
from ccplay.model.traffic import KINDS, TRAFFIC
from ccplay.model.values import LinkSetting
from ccplay.session.inverse import LINK_FIELDS, link_value
from ccplay.state.lab_state import LabState


def is_setting(command: AnyCommand) -> bool:
    """Return whether a command only changes a link, a queue or the default of a host."""
    if isinstance(command, SetCongestionControl):
        return command.flow is None
    return isinstance(command, SetLink | SetQdisc | SetClasses)


def restoring(state: LabState) -> list[AnyCommand]:
    """Return the commands that stop all traffic and undo every change of links and hosts."""
    return [*_stops(state), *_links(state), *_hosts(state)]


def is_clear(state: LabState) -> bool:
    """Return whether no traffic runs and the observed queues are empty."""
    if any(each.ended is None for each in state.traffic.values()):
        return False
    return not any(queue.series["qlen"].last for queue in state.queues.values())


def _stops(state: LabState) -> Iterator[AnyCommand]:
    running = [each for each in state.traffic.values() if each.ended is None]
    running.sort(key=lambda each: TRAFFIC.index(KINDS[each.kind]))
    for each in running:
        if each.kind != "subflow":
            yield KINDS[each.kind].stopping(each.name)


def _links(state: LabState) -> Iterator[AnyCommand]:
    for link, changes in state.links.items():
        was, now = changes[0].setting, changes[-1].setting
        if was != now:
            yield from _link(link, was, now)


def _link(link: str, was: LinkSetting, now: LinkSetting) -> Iterator[AnyCommand]:
    changed = {
        each: link_value(was, each)
        for each in LINK_FIELDS
        if link_value(was, each) != link_value(now, each)
    }
    if changed:
        yield SetLink(link=link, **changed)
    if (was.classes or []) != (now.classes or []):
        yield SetClasses(link=link, classes=was.classes or [])
    if was.qdisc is not None and was.qdisc != now.qdisc and not was.classes:
        yield SetQdisc(link=link, qdisc=was.qdisc)


def _hosts(state: LabState) -> Iterator[AnyCommand]:
    first: dict[str, str] = {}
    for change in state.host_changes:
        first.setdefault(change.host, change.cc)
    for host, cc in first.items():
        if state.hosts.get(host) != cc:
            yield SetCongestionControl(cc=cc, host=host)
