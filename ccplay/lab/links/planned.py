"""Settings of each link when the network is built: the defaults and the requested ones."""

from __future__ import annotations

from collections.abc import Mapping

from ccplay.errors import CommandError
from ccplay.model.commands import SetLink
from ccplay.model.network import Link, Network
from ccplay.model.values import LinkSetting, Qdisc

DEFAULT_BOTTLENECK = LinkSetting(
    rate=10_000_000, delay_us=10_000, qdisc=Qdisc(kind="pfifo", options={"limit": 100})
)
"""Default delay each way of the link under study."""


def planned(network: Network, wanted: Mapping[str, LinkSetting]) -> list[tuple[Link, LinkSetting]]:
    """Return every link with settings, merged from all that are ``wanted``.

    Raises ``CommandError`` for an MTU of one direction.
    """
    settings = dict.fromkeys(network.observed, DEFAULT_BOTTLENECK)
    for name, said in wanted.items():
        if said.mtu is not None and "->" in name:
            both = name.replace("->", "-")
            raise CommandError(f"link {name}: an MTU holds for both directions: {both}")
        for link in network.resolve(name):
            settings[link.name] = merge(settings.get(link.name, LinkSetting()), said)
    return [(network.link(name), setting) for name, setting in settings.items()]


def merge(before: LinkSetting, said: LinkSetting) -> LinkSetting:
    """Return ``before`` with every field that ``said`` sets."""
    fields = {name: getattr(before, name) for name in LinkSetting.__struct_fields__}
    fields |= {
        name: value
        for name in LinkSetting.__struct_fields__
        if (value := getattr(said, name)) is not None
    }
    return LinkSetting(**fields)


def requested(command: SetLink) -> LinkSetting:
    """Return what a command sets of a link."""
    asked = set(SetLink.__struct_fields__) & set(LinkSetting.__struct_fields__)
    return LinkSetting(**{name: getattr(command, name) for name in asked})
