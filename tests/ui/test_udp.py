"""A key starts cross traffic, the table shows it, and it can be selected and stopped."""

from collections.abc import Iterator
from heapq import merge

import pytest

from ccplay.model.base import Event
from ccplay.model.events import Applied
from ccplay.traffic.ping import StopPing
from ccplay.traffic.udp import StartUdp, StopUdp, UdpEnded, UdpSample, UdpStarted
from ccplay.ui.plot_pane import title_row
from ccplay.ui.plot_row import PANES
from tests.events import monitored
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import live, playing, until
from tests.ui.test_snapshots import SnapCompare, app_on, at
from tests.ui.view import seek, text_of

SIZES = [(120, 40), (80, 24)]
DELAYS = {"size": 1024, "delay_min_us": 10_000, "delay_max_us": 99_000}
FATE = monitored(12_345, 12_193, 55_123.0, **DELAYS)


def crossed(*, ends: float = 15.0) -> Iterator[Event]:
    """Return 20 s of a session with cross traffic from 8 s on; no arrivals from 10 s on."""
    start = StartUdp(udp="u1", src="s1", dst="d1", rate_bps=4_000_000, monitor=True)
    news: list[Event] = [
        Applied(t=7.9, command=start),
        UdpStarted(
            t=8.0, udp="u1", src="s1", dst="d1", rate_bps=4_000_000, packet_bytes=1024, port=1
        ),
        UdpSample(t=9.0, udp="u1", monitored=monitored(450, 450, 30_000.0, **DELAYS)),
        UdpSample(t=10.0, udp="u1", monitored=monitored(950, 825, 50_000.0, **DELAYS)),
        UdpSample(t=13.0, udp="u1", monitored=monitored(950, 825, 50_000.0, **DELAYS)),
        Applied(t=14.0, command=StopUdp(udp="u1")),
        UdpEnded(
            t=ends,
            udp="u1",
            sent=12_345,
            received=12_193,
            jitter_us=100.0,
            duration_s=ends - 8.0,
            monitored=FATE,
        ),
    ]
    news = [each for each in news if each.t <= 20.0]
    return merge(news, stream(flows=2, pairs=2, seconds=20.0), key=lambda each: each.t)


async def test_u_starts_it_and_asks_how_fast() -> None:
    source = live(stream(busy=False))
    async with playing(source) as (_, pilot):
        await pilot.press("u", *"3Mbit", "enter")
        assert source.sent == [StartUdp(src="s1", dst="d1", rate_bps=3_000_000)]


@pytest.mark.parametrize(
    ("size", "rows"),
    [
        (
            (120, 40),
            {
                8.5: "u1  UDP 4 Mbit/s in 1024 byte packets, s1 → d1",
                9.5: "u1  UDP 3.69 of 4 Mbit/s, 0 % lost, 30 ms one way",
                12.0: "u1  UDP 3.07 of 4 Mbit/s, 25 % lost, 74 ms one way",
                13.5: "u1  UDP 4 Mbit/s, nothing arrives",
                14.5: "u1  UDP stopping, its last packets under way",
                17.0: "u1  UDP: 12,345 sent, 1.23 % lost, 55.1 ms one way",
            },
        ),
        (
            (80, 24),
            {
                8.5: "u1 UDP 4 Mbit/s, s1 → d1",
                9.5: "u1 UDP 3.69M, 0 % lost, 30 ms",
                12.0: "u1 UDP 3.07M, 25 % lost, 74 ms",
                13.5: "u1 UDP 4 Mbit/s, nothing arrives",
                14.5: "u1 UDP stopping, packets under way",
                17.0: "u1 UDP 1.23 % lost, 55.1 ms one way",
            },
        ),
    ],
)
async def test_the_table_shows_it_as_of_the_moment_shown(
    size: tuple[int, int], rows: dict[float, str]
) -> None:
    async with playing(SyntheticSource(crossed()), size, start_at=20.0) as (app, pilot):
        # Parts get their widths some messages after the network is known.
        await until(pilot, lambda: rows[8.5] in seek(app, 8.5))
        assert "UDP" not in seek(app, 7.0)
        for t, row in rows.items():
            assert row in seek(app, t)


async def test_the_log_keeps_what_became_of_it() -> None:
    async with playing(SyntheticSource(crossed()), start_at=20.0) as (app, _):
        seek(app, 19.0)
        assert "UDP u1 ended: 12,345 sent, 1.23 % lost, 55.1 ms one way" in text_of(app, "events")


async def test_what_is_not_a_flow_is_selected_and_stopped_too() -> None:
    """Arrow keys select any row of the table: flows, cross traffic and pings."""
    async with playing(source := live(crossed(ends=99.0)), start_at=20.0) as (app, pilot):
        await pilot.press("down", "down", "x")
        assert source.sent == [StopUdp(udp="u1")]
        assert "▸· u1" in text_of(app, "flows")
        await pilot.press("down", "x", "down")
        assert source.sent[1:] == [StopPing(ping="p1")]
        assert "▸●" in text_of(app, "flows")


async def test_a_flow_is_selected_where_there_is_one() -> None:
    """A flow is selected by default, since plots and most keys apply to flows."""
    async with playing(SyntheticSource(crossed()), start_at=20.0) as (app, pilot):
        assert "▸" not in seek(app, 0.5)
        assert "▸●" in seek(app, 1.5)
        seek(app, 9.0)
        await pilot.press("up", "up")
        assert "▸· u1" in text_of(app, "flows")
        assert "▸●" in seek(app, 7.0), "before it began"


@pytest.mark.parametrize("size", SIZES)
def test_how_it_looks(snap_compare: SnapCompare, size: tuple[int, int]) -> None:
    app = app_on(SyntheticSource(crossed()))
    assert snap_compare(app, terminal_size=size, run_before=at(app, 12.0))


async def test_what_arrives_is_a_plot_with_what_is_sent_above_it() -> None:
    """The palette offers the plots of cross traffic; a value is that of the sample at the cursor.

    There is none after the traffic has ended.
    """
    async with playing(SyntheticSource(crossed()), size=(160, 40)) as (app, pilot):
        band = app.main.plots
        offers = {text: (what, run) for text, what, run in band.offers(app.main.view)}
        assert {"plot: UDP", "plot: UDP loss", "plot: UDP delay"} <= {*offers}
        offers["plot: UDP"][1]()
        await until(pilot, lambda: text_of(app, "udp"))
        for t, arrives in ((9.5, "u1 3.7"), (10.5, "u1 3.1"), (16.0, "")):
            seek(app, t)
            title = text_of(app, "udp").splitlines()[0]
            assert title.startswith("UDP Mbit/s")
            assert arrives in title
            assert ("u1" in title) == bool(arrives)
        app.main.shown.playhead.jump(10.5, 20.0)
        arrived, sent = PANES["udp"].traces(app.main.view)[::-1]
        assert sent.spans([8.5, 9.0, 11.0]) == [(4.0, 4.0)] * 2
        assert arrived.spans([9.2, 9.8]) == [pytest.approx((3.686, 3.686), rel=0.01)]
        loss = title_row(PANES["udp-loss"], app.main.view, 40)
        assert "u1 25.0" in "".join(text for text, _ in loss[1])
        assert "".join(text for text, _ in loss[0]) == "UDP loss %"
