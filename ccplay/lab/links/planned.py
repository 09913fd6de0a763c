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
            settings[link.name] = settings.get(link.name, LinkSetting()).changed_by(said)
    return [(network.link(name), setting) for name, setting in settings.items()]


def requested(command: SetLink) -> LinkSetting:
    """Return what a command sets of a link."""
    return LinkSetting().changed_by(command)
