"""Moves a link's queue between the kernel and a discipline in software without losing a packet.

Into software: a class is created for packets that have waited, then packets are directed into the
process. Those that still wait in the kernel leave at the link's rate, and the process begins to
send when they are gone. Back: the kernel's new queue, empty until then, receives all packets that
wait in software at once and in order, and sends them at the link's rate.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ccplay.lab.links.egress import Egress
from ccplay.lab.links.filters import Packets
from ccplay.lab.queues.choosing import check_software
from ccplay.lab.software.client import Software
from ccplay.model.disciplines import is_software
from ccplay.model.values import LinkSetting, Qdisc


async def shape(
    software: Software | None, interface: Egress, setting: LinkSetting, running: Iterable[Packets]
) -> None:
    """Set rate, queue and classes of a link; the kind of queue decides where packets wait.

    ``running`` is the traffic to direct into classes. Raises ``LabError``.
    """
    qdisc = setting.qdisc
    own = qdisc if qdisc is not None and is_software(qdisc.kind) else None
    if own is not None:
        setting = msgspec.structs.replace(setting, qdisc=None)
    interface.shape(setting, running)
    if software is None or (own is None and interface.software is None):
        return
    wanted = own or _kept(interface, setting)
    if wanted is None:
        await software.end(interface.place)
        interface.software = None
        # If the rate was removed, so was the class.
        if setting.rate != 0:
            interface.close_passage()
        return
    is_new = interface.software is None
    try:
        if is_new:
            interface.open_passage()
        await software.put(interface.place, wanted, interface.rate, interface.kernel_backlog)
    except BaseException:
        if is_new:
            interface.close_passage()
        raise
    interface.software = wanted


def check(interface: Egress, setting: LinkSetting) -> None:
    """Check the discipline in software that a setting requests or keeps, if there is one.

    Raises ``CommandError`` if the link can't have it.
    """
    wanted = setting.qdisc or _kept(interface, setting)
    if wanted is None or not is_software(wanted.kind):
        return
    rate = interface.rate if setting.rate is None else setting.rate
    mark = interface.mark if setting.mark is None else setting.mark
    check_software(interface.link.name, wanted, rate, mark)


def _kept(interface: Egress, setting: LinkSetting) -> Qdisc | None:
    """Return the discipline in software that a setting leaves in place."""
    if setting.qdisc is not None or setting.classes or setting.rate == 0:
        return None
    return interface.software
