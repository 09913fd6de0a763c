"""What tests of classes do inside their namespaces; each case returns plain JSON."""

from typing import Any

from ccplay.lab import htb
from ccplay.lab.htb import Selection, filter_priorities, port_keys, protocol_keys
from ccplay.lab.paths import STREAMS
from ccplay.lab.rtnl import NetlinkSocket
from ccplay.model.values import LinkSetting, Qdisc, TrafficClass
from tests.lab.network_cases import Bench, bench


def _streams(kind: str, name: str, port: int) -> Selection:
    return Selection(kind, name, port_keys(STREAMS, "10.0.0.1", port))


def _read(made: Bench) -> tuple[set[int], list[int]]:
    namespace = made.built.namespace(made.there.src)
    with NetlinkSocket(namespace) as routes:
        index = namespace.interface_index(made.there.interface)
        return filter_priorities(routes, index), sorted(htb.read_rates(routes, index))


async def filters() -> dict[str, Any]:
    classes = [
        TrafficClass(name="a", share=0.5, traffic=["flows", "pings"]),
        TrafficClass(name="b", share=0.5, qdisc=Qdisc(kind="bfifo", options={"limit": 30_000})),
    ]
    found: dict[str, Any] = {}
    async with bench() as made:
        await made.shaper.apply(made.there, LinkSetting(classes=classes))
        found["before"] = len(_read(made)[0])
        made.shaper.admit(_streams("flows", "1", 5201))
        echoes = (*protocol_keys(1), "0x7/0xffff+24")
        made.shaper.admit(Selection("pings", "p1", (echoes,)))
        made.shaper.admit(_streams("downloads", "w1", 80))
        found["running"] = len(_read(made)[0])
        for kind, name in (("flows", "1"), ("pings", "p1"), ("downloads", "w1")):
            made.shaper.dismiss(kind, name)
        found["after"] = len(_read(made)[0])
        made.shaper.admit(_streams("flows", "2", 5202))
        await made.shaper.apply(made.there, LinkSetting(classes=[]))
        left, handles = _read(made)
        found["one queue"], found["classes"] = len(left), handles
    return found
