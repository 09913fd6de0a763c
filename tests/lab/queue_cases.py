"""What tests of queue disciplines do inside their namespaces; each case returns plain JSON."""

import asyncio
from statistics import median
from typing import Any

from ccplay.lab import qdisc_options, qdiscs
from ccplay.lab.htb import CLASS
from ccplay.lab.qdisc_counters import QdiscCounters, QdiscSocket
from ccplay.lab.rtnl import NetlinkSocket
from ccplay.model.base import Option
from ccplay.model.values import LinkSetting, Qdisc
from tests.lab.network_cases import Bench, bench


async def replacements(wanted: dict[str, list[dict[str, Option]]]) -> dict[str, Any]:
    """Install every kind with each of its options, under load, and return what the kernel has.

    For each: the reported setting, the whole setting in the kernel, and what the probe reads.
    """
    seen: dict[str, Any] = {}
    async with bench() as made, made.flood(12_000_000):
        await made.until(lambda: made.leaf()["qlen"] >= 50)
        for kind, choices in wanted.items():
            seen[kind] = [await _replace(made, Qdisc(kind=kind, options=each)) for each in choices]
    return seen


async def _replace(made: Bench, qdisc: Qdisc) -> dict[str, Any]:
    (changed,) = await made.shaper.apply(made.there, LinkSetting(qdisc=qdisc))
    assert changed.setting.qdisc is not None
    await made.until(lambda: _read(made).packets > 50 and _read(made).qlen > 0)
    namespace = made.built.namespace(made.there.src)
    with NetlinkSocket(namespace) as routes:
        index = namespace.interface_index(made.there.interface)
        _, image = qdiscs.find_qdisc(routes, index, CLASS)
    sampled = _read(made)
    return {
        "told": changed.setting.qdisc.options,
        "held": qdisc_options.decode(qdisc.kind, image),
        "sampled": sampled.kind,
        "frame": sampled.backlog / sampled.qlen if sampled.qlen else None,
        "marks": sampled.ecn_marks,
    }


def _read(made: Bench) -> QdiscCounters:
    namespace = made.built.namespace(made.there.src)
    index = namespace.interface_index(made.there.interface)
    probe = QdiscSocket(namespace.socket)
    try:
        return probe.dump([index])[index][CLASS]
    finally:
        probe.close()


async def rtts_under_load(engine: str, kinds: list[str]) -> dict[str, float]:
    """Return the median RTT in ms beside a CUBIC flow for every kind with its defaults."""
    rtts = {}
    async with bench(engine=engine, delay_us=10_000) as made, made.traffic("-C", "cubic"):
        for kind in kinds:
            await made.both(qdisc=qdiscs.validate(Qdisc(kind=kind)))
            # CUBIC's window settles to the new queue within some of its epochs.
            await asyncio.sleep(3.0)
            rtts[kind] = median(await made.rtts_ms(40, "-i", "0.05"))
    return rtts
