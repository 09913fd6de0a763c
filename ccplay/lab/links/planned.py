"""The settings of each link when the network is built: defaults, changed by requested ones."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.model.commands import SetLink
from ccplay.model.network import Link, Network
from ccplay.model.values import LinkSetting, Qdisc

DEFAULT_BOTTLENECK = LinkSetting(
    rate=10_000_000, delay_us=10_000, qdisc=Qdisc(kind="pfifo", options={"limit": 100})
)
"""Default rate, delay and queue of each observed link. Links that a topology's ``observed`` names
have no default delay; the others keep the one that they had before that key existed."""


def planned(network: Network, wanted: Mapping[str, LinkSetting]) -> list[tuple[Link, LinkSetting]]:
    """Return every link that has settings, and its defaults changed by all that are ``wanted``.

    Raises ``CommandError`` for an MTU of one direction only.
    """
    default = DEFAULT_BOTTLENECK
    if network.topology.observed:
        default = replace(default, delay_us=0)
    settings = dict.fromkeys(network.observed, default)
    for name, change in wanted.items():
        if change.mtu is not None and "->" in name:
            both = name.replace("->", "-")
            raise CommandError(f"link {name}: an MTU applies to both directions: name {both}")
        for link in network.resolve(name):
            settings[link.name] = settings.get(link.name, LinkSetting()).changed_by(change)
    return [(network.link(name), setting) for name, setting in settings.items()]


def requested(command: SetLink) -> LinkSetting:
    """Return the settings of a link that a command changes."""
    return LinkSetting().changed_by(command)
