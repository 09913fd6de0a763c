"""A flow over several paths is shown as a connection and its subflows, each counted once."""

from collections.abc import Iterator

from msgspec.structs import replace

from ccplay.model.base import Event
from ccplay.model.samples import Sweep
from ccplay.traffic.flow import FlowEnded, FlowStarted, StopFlow, SubflowStarted
from ccplay.ui import lineup
from tests.ui.synthetic import stream
from tests.ui.test_main import live, playing, until
from tests.ui.view import text_of


def events() -> Iterator[Event]:
    """Yield a session with an MPTCP flow, its two subflows, and a TCP flow between them."""
    names = {"1": "1", "2": "1/1", "3": "3", "4": "1/2"}
    for event in stream(pairs=4, flows=4, seconds=20):
        if isinstance(event, FlowStarted) and event.flow in ("2", "4"):
            yield SubflowStarted(
                t=event.t,
                flow="1",
                subflow=names[event.flow],
                src="10.0.0.1",
                dst="10.0.1.1",
                sport=10_000,
            )
        elif isinstance(event, FlowStarted):
            yield replace(event, mptcp=event.flow == "1", cc="cubic")
        elif isinstance(event, Sweep) and event.tcp is not None:
            tcp = replace(event.tcp, flow=[names[each] for each in event.tcp.flow])
            yield replace(event, tcp=tcp)
        elif not isinstance(event, FlowEnded) or event.flow in ("1", "3"):
            yield event


async def test_subflows_have_rows_and_lines_and_their_flow_is_what_keys_stop() -> None:
    source = live(events())
    async with playing(source, (120, 40)) as (app, pilot):
        await until(pilot, lambda: "1/2" in text_of(app, "flows"))
        rows = text_of(app, "flows").splitlines()
        names = [each.name for each in lineup.listed(app.main.view)]
        assert names == ["1", "1/1", "1/2", "3"]
        assert [row.split()[1] for row in rows if "1/" in row] == ["1/1", "1/2"]
        await pilot.press("down", "down")
        await until(pilot, lambda: app.main.shown.selected == "1/2")
        chosen = lineup.selection(app.main.view)
        assert chosen is not None
        assert lineup.stop(chosen) == StopFlow(flow="1")


async def test_a_group_counts_the_connection_and_not_its_subflows_again() -> None:
    async with playing(live(events()), (120, 40)) as (app, pilot):
        await until(pilot, lambda: "1/2" in text_of(app, "flows"))
        view = app.main.view
        assert [each.name for each in lineup.drawn(view)][-1] == "1"
        groups = lineup.groups(view, lineup.drawn(view))
        assert sorted(each.name for group in groups for each in group.flows) == ["1", "3"]
