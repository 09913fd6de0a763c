"""A network listed in a scenario: ``hosts``, ``routers`` and ``links`` of its topology."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ccplay.model.network import Topology, Written
from ccplay.model.quoting import MisfitError, quote
from ccplay.model.texts import LINE
from ccplay.model.topologies.written import Where, apart, mistakes, observing
from ccplay.model.values import LinkSetting
from ccplay.scenario.fields.links import read_link
from ccplay.scenario.file.tree import Node, Reader

KEYS = ("hosts", "routers", "links", "observed", "name", "remarks")
"""Keys of a written topology. Others have ``observed`` too."""

_NO_ENDS = ("", "")
"""Placeholder for the ends of a link that could not be read."""


def read_written(
    node: Node, table: dict[str, Node], reader: Reader
) -> tuple[Topology, dict[str, LinkSetting]]:
    """Read a listed topology, and the settings of its links by name.

    Unless ``observed`` names them, links with a rate are observed where a router sends; if none has
    a rate, all are. A link has no delay and no loss unless its entry sets them.
    """
    before = reader.mistakes.count
    for key, example in (("hosts", '["h1", "h2"]'), ("links", '[{ ends = ["h1", "r1"] }]')):
        if key not in table:
            text = f"{key} is missing, such as {key} = {example}"
            reader.mistakes.add(node.place, text)
    links: list[tuple[tuple[str, str], LinkSetting]] = []
    for each in reader.members(table.get("links")):
        setting = read_link(each, reader, ("ends",))
        ends = each.value.get("ends") if isinstance(each.value, dict) else None
        if ends is None:
            reader.mistakes.add(each.place, 'ends is missing, such as ends = ["h1", "r1"]')
        links.append((reader.value(ends, _ends, _NO_ENDS), setting))
    hosts = read_names(table.get("hosts"), reader)
    routers = read_names(table.get("routers"), reader)
    written = Written(
        hosts=hosts,
        routers=routers,
        cables=[ends for ends, _ in links],
        observed=read_names(table.get("observed"), reader),
        name=reader.value(table.get("name"), LINE.read, ""),
        remarks=[
            reader.value(each, LINE.read, "")
            for each in reader.members(table.get("remarks"), "lines")
        ],
    )
    for where, text in mistakes(written):
        # What could not be read has been reported.
        if not _is_unread(written, where):
            reader.mistakes.add((*node.place, *where), text)
    if reader.mistakes.count == before:
        for where, text in apart(written):
            reader.mistakes.add((*node.place, *where), text)
    if reader.mistakes.count == before and "observed" not in table:
        written = observing(written, _limited(links))
    settings = {"-".join(ends): _whole(each) for ends, each in links if each != LinkSetting()}
    return Topology(kind="written", written=written), settings


def _limited(links: list[tuple[tuple[str, str], LinkSetting]]) -> list[str]:
    """Return both directions of the links that have a rate."""
    return [f"{a}->{b}" for ends, setting in links for a, b in (ends, ends[::-1]) if setting.rate]


def _whole(setting: LinkSetting) -> LinkSetting:
    """Return a setting in which a missing delay is none rather than the default."""
    return setting if setting.delay_us is not None else replace(setting, delay_us=0)


def read_names(node: Node | None, reader: Reader) -> list[str]:
    """Read a list of names; one that is no text is a mistake."""
    return [reader.value(each, _text, "") for each in reader.members(node, "names")]


def _is_unread(written: Written, where: Where) -> bool:
    match where:
        case ("hosts", int(number), *_):
            return not written.hosts[number]
        case ("routers", int(number), *_):
            return not written.routers[number]
        case ("observed", int(number), *_):
            return not written.observed[number]
        case ("links", int(number), *_):
            return written.cables[number] == _NO_ENDS
    return False


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise MisfitError(f'a node\'s name is text in quotes, such as "h1", not {quote(value)}')
    return value


def _ends(value: Any) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise MisfitError(f'two names of nodes, such as ["h1", "r1"], not {quote(value)}')
    return _text(value[0]), _text(value[1])
