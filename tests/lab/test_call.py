"""A real video call: it adapts to its link, in both directions, and leaves room where it must."""

from ccplay.model.commands import Build
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.traffic import results
from ccplay.traffic.call import Call, StartCall, StopCall
from tests.lab.conftest import running
from tests.lab.trust import physical

SLOW = Build(
    topology=Topology(kind="linear"),
    links={
        "bottleneck": LinkSetting(
            rate=700_000, delay_us=20_000, qdisc=Qdisc(kind="pfifo", options={"limit": 50})
        )
    },
)


@physical
async def test_each_direction_fills_its_link_without_filling_the_queue() -> None:
    async with running(SLOW) as lab:
        lab.send(StartCall(src="h1", dst="h2"))
        await lab.until(lambda state: len(state.of(Call)) == 2 and state.now > 0)
        started = max(each.started for each in lab.state.of(Call).values())
        await lab.until(lambda state: state.now > started + 15, within_s=40)
        for call in [*lab.state.of(Call).values()]:
            lab.send(StopCall(call=call.name))
        await lab.until(lambda state: all(e.ended is not None for e in state.of(Call).values()))
        there, back = results(lab.state)["calls"]
    assert (there.path, back.path) == ("h1 → h2", "h2 → h1")
    for each in (there, back):
        assert each.error is None
        # 700 kbit/s with headers of 42 of 1200 bytes; the ramp from 150 kbit/s takes some seconds.
        assert 250_000 < each.rate_bps < 700_000
        # The link's 20 ms and at most the queue's 50 packets of 14 ms; NADA aims at some 20 ms.
        assert 20 <= each.delay_min_ms < 40
        assert each.delay_mean_ms < 250
        # A queue of 50 packets takes 0.7 s; who fills it loses and freezes often.
        assert each.loss < 0.1
