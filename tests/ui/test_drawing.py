"""The large drawing of the network, and the dialog that requests another network."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from ccplay.model.base import Event
from ccplay.model.events import FlowPath, Hello, Ready
from ccplay.model.network import Network, Topology
from ccplay.model.samples import QdiscSamples, Sweep
from ccplay.model.topologies import plan
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.session.archive import Unsaved
from ccplay.traffic.flow import FlowStarted
from ccplay.ui.cells import Sheet
from ccplay.ui.dialogs_links import NetworkDialog
from ccplay.ui.dialogs_session import LeaveDialog
from tests.events import link_changed
from tests.ui.synthetic import stream
from tests.ui.test_main import live, playing, until
from tests.ui.view import text_of

RATE = 8_000_000
PATH = ["h1->edge1", "edge1->agg2", "agg2->core4", "core4->agg6", "agg6->edge5", "edge5->h9"]


def fabric(network: Network, *more: Event) -> Iterator[Event]:
    """Yield 2 s in which agg2->core4 sends at its full rate and its queue is 7/10 full."""
    hello = next(stream())
    assert isinstance(hello, Hello)
    yield replace(hello, network=network)
    queue = Qdisc(kind="pfifo", options={"limit": 50})
    for link in network.links:
        setting = LinkSetting(rate=RATE, qdisc=queue)
        yield link_changed(0.05, link.name, setting)
    yield Ready(t=0.1)
    yield FlowStarted(t=0.1, flow="1", src="h1", dst="h9", cc="cubic", port=5000)
    yield FlowPath(t=0.1, flow="1", links=PATH)
    links = network.observed
    for number in range(20):
        t = 0.2 + number / 10
        busy = [link == "agg2->core4" for link in links]
        nothing = [0] * len(links)
        yield Sweep(
            t=t,
            qdisc=QdiscSamples(
                link=links,
                kind=["pfifo"] * len(links),
                backlog=nothing,
                qlen=[35 * each for each in busy],
                drops=nothing,
                ecn_marks=[None] * len(links),
                overlimits=nothing,
                requeues=nothing,
                bytes=[int(RATE / 8 * t) * each for each in busy],
                packets=nothing,
            ),
        )
    yield from more


def fat_tree(*more: Event) -> Iterator[Event]:
    return fabric(plan(Topology(kind="fat-tree")), *more)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_fat_tree_is_drawn_with_its_busy_links_and_the_path(size: tuple[int, int]) -> None:
    async with playing(live(fat_tree()), size) as (app, pilot):
        assert app.main.query_one("#plots").display
        await pilot.press("N")
        await until(pilot, lambda: "h16" in text_of(app, "map"))
        shown = text_of(app, "map")
        assert not app.main.query_one("#plots").display
        for node in plan(Topology(kind="fat-tree")).nodes:
            assert node.name in shown
        assert "● h1 → edge1 → agg2 → core4 → agg6 → edge5 → h9" in shown
        for name in ("core4", "agg2", "edge5", "h9"):
            assert f"▸{name}" in shown
        assert "▸core3" not in shown
        # At its full rate, 35 of 50 packets in the queue.
        assert shown.count("█7") == 1
        # The thick lines of busy links have cells with many dots.
        assert any(char in shown for char in "⣤⣶⠶⠿⣿")
        await pilot.press("1")
        await until(pilot, lambda: app.main.query_one("#plots").display)
        assert not app.main.query_one("#map", Sheet).display


async def test_a_cable_that_is_down_is_crossed_out() -> None:
    change = link_changed(2.3, "core4->agg6", rate=RATE, down=True)
    async with playing(live(fat_tree(change))) as (app, pilot):
        await pilot.press("N")
        await until(pilot, lambda: "×" in text_of(app, "map"))


async def test_in_ascii_it_is_ascii() -> None:
    async with playing(live(fat_tree()), (80, 24), ascii=True) as (app, pilot):
        await pilot.press("N")
        await until(pilot, lambda: "h16" in text_of(app, "map"))
        shown = text_of(app, "map")
        assert shown.isascii()
        assert "#7" in shown
        assert "***" in shown
        assert ">core4" in shown


async def test_what_can_t_be_drawn_is_a_table() -> None:
    network = plan(Topology(kind="star", parameters={"hosts": 64}))
    hello = next(stream())
    assert isinstance(hello, Hello)
    events: list[Event] = [replace(hello, network=network), Ready(t=0.1)]
    async with playing(live(iter(events)), (80, 24)) as (app, pilot):
        await pilot.press("N")
        await until(pilot, lambda: "queues, fullest first" in text_of(app, "map"))


def quiet(network: Network, delays_us: dict[str, int]) -> Iterator[Event]:
    """Yield a network without traffic, whose links have these delays."""
    hello = next(stream())
    assert isinstance(hello, Hello)
    yield replace(hello, network=network)
    for link, delay_us in delays_us.items():
        setting = LinkSetting(rate=RATE, delay_us=delay_us)
        yield link_changed(0.05, link, setting)
    yield Ready(t=0.1)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_delay_elsewhere_on_the_path_is_shown(size: tuple[int, int]) -> None:
    """With 10 ms for r->h2 and h2->r alone, r->h1 keeps the default of linear networks."""
    linear = plan(Topology(kind="linear"))
    delays_us = dict.fromkeys(("r->h2", "h2->r"), 10_000)
    async with playing(live(quiet(linear, delays_us)), size) as (app, _):
        assert "h1 10 ms" not in text_of(app, "network")
    async with playing(live(quiet(linear, delays_us | {"r->h1": 10_000})), size) as (app, _):
        assert "r→h1 10 ms" in text_of(app, "network")
        assert ("base RTT 30 ms" in text_of(app, "network")) == (size[0] > 80)
        (line,) = (row for row in text_of(app, "network").splitlines() if "▶" in row)
        assert "h1 ───" in line, "the host's line leads to the link"


async def test_b_goes_through_the_queues_that_are_observed() -> None:
    network = plan(Topology(kind="linear", observed=["h2->r", "r->h2"]))
    async with playing(live(quiet(network, {}))) as (app, pilot):
        shown = []
        for _ in range(3):
            shown.append(app.main.view.link)
            await pilot.press("b")
        assert shown == ["h2->r", "r->h2", "h2->r"]


async def test_a_frame_without_news_changes_no_cell() -> None:
    async with playing(live(fat_tree())) as (app, pilot):
        await pilot.press("N")
        await until(pilot, lambda: "h16" in text_of(app, "map"))
        sheet = app.main.query_one("#map", Sheet)
        repainted: list[object] = []
        sheet.repaint = repainted.append  # type: ignore[assignment, method-assign]
        app.main.redraw()
        assert all(not each for each in repainted)


async def test_another_network_is_asked_for_and_left_for() -> None:
    async with playing(live(), (80, 24), starts=True) as (app, pilot):
        await pilot.press("ctrl+n")
        await until(pilot, lambda: isinstance(app.screen, NetworkDialog))
        dialog = app.screen
        assert isinstance(dialog, NetworkDialog)
        assert dialog.kind.value == "dumbbell"
        await until(pilot, lambda: dialog.focused is dialog.kind)
        dialog.kind.value = "leaf-spine"
        form = dialog._forms["leaf-spine"]
        await until(pilot, lambda: form.display and form.region.height > 0)
        form.numbers["leaves"].input.value = "3"
        form.numbers["spines"].input.value = "4"
        form.numbers["hosts"].input.value = "99"
        await pilot.press("enter")
        assert app.screen is dialog
        assert app.wanted is None
        form.numbers["hosts"].input.value = "2"
        form.tiers["edge"].input.value = "5 Mbit/s, 3 ms, 20"
        await pilot.press("enter")
        await until(pilot, lambda: app.wanted is not None)
    assert app.wanted is not None
    build = app.wanted.case().build
    assert build.topology.parameters == {"leaves": 3, "spines": 4, "hosts": 2}
    assert build.links["edge"].rate == 5_000_000
    assert build.links["edge"].delay_us == 3_000
    assert build.links["core"].rate == 10_000_000
    flows = [step.command for step in app.wanted.case().timeline]
    assert len(flows) == 3


async def test_what_is_recorded_nowhere_is_asked_about_before_another_network() -> None:
    async with playing(live(), starts=True, sinks=[Unsaved()]) as (app, pilot):
        await pilot.press("ctrl+n")
        await until(pilot, lambda: isinstance(app.screen, NetworkDialog))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LeaveDialog))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.main)
        assert app.wanted is None


async def test_a_replay_has_no_lab_to_replace() -> None:
    async with playing(live()) as (app, pilot):
        await pilot.press("ctrl+n")
        assert app.screen is app.main
