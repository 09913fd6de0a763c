"""One key puts CAKE on both directions of a line and takes it off; a mark says what that did."""

from msgspec.structs import replace

from ccplay.model.commands import SetQdisc
from ccplay.model.events import Ready
from ccplay.model.values import Feature
from ccplay.traffic.ping import PingSample, PingStarted
from ccplay.ui.lab_actions import delays_around
from tests.events import folded
from tests.fake_lab import PFIFO
from tests.ui.test_main import until
from tests.ui.test_undo import changed


async def test_j_puts_fair_queues_on_the_line_and_takes_them_off() -> None:
    async with changed() as (app, lab, pilot):
        observed = lab.network.observed
        await pilot.press("j")
        await until(
            pilot,
            lambda: all((lab.links[each].qdisc or PFIFO).kind == "fq_codel" for each in observed),
        )
        await pilot.press("j")
        await until(pilot, lambda: all(lab.links[each].qdisc == PFIFO for each in observed))
        assert app.session.state.phase == "ready"


async def test_cake_is_taken_where_there_is_one() -> None:
    async with changed() as (app, _, pilot):
        hello = app.session.state.hello
        assert hello is not None
        # A list of its own: other tests share the lab's.
        qdiscs = [*hello.capabilities.qdiscs, Feature("cake.py", True, "", "")]
        known = replace(hello.capabilities, qdiscs=qdiscs)
        app.session.state.hello = replace(hello, capabilities=known)
        await pilot.press("j")
        await until(pilot, lambda: bool(app.session.state.applied))
        command = app.session.state.applied[0].command
        assert isinstance(command, SetQdisc)
        assert command.qdisc.kind == "cake"


def test_the_change_of_a_delay_is_said_in_words() -> None:
    state = folded(Ready(t=0.0), PingStarted(t=0.0, ping="p1", src="h1", dst="h2", interval_s=0.2))
    for tick in range(60):
        t = tick / 5
        state.apply(PingSample(t=t, ping="p1", seq=tick, rtt_us=250_000 if t < 6 else 21_000))
    assert [*delays_around(state, 6.0)] == ["p1 returns in 21 ms, before 250 ms"]
    assert [*delays_around(state, 0.0)] == []
