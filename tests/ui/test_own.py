"""What algorithms say of themselves on the screen: below the selected flow, as of the playhead."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ccplay.model import AnyEvent, Sweep
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import playing
from tests.ui.view import text_of


def telling() -> Iterator[AnyEvent]:
    """Yield a session in which flow 1 says from 5 s on what BBR says; its bandwidth is the time."""
    for event in stream(flows=2, pairs=2, seconds=20.0):
        if isinstance(event, Sweep) and event.tcp is not None and event.t > 5:
            own: dict[str, list[int | None]] = {
                "bbr_bw_bps": [int(event.t) * 1_000_000],
                "bbr_min_rtt_us": [20_140],
                "bbr_pacing_gain": [320],
                "bbr_cwnd_gain": [512],
            }
            others: list[None] = [None] * (len(event.tcp.flow) - 1)
            own = {name: [*value, *others] for name, value in own.items()}
            yield replace(event, own=own)
        else:
            yield event


async def test_the_selected_flow_tells_as_of_the_moment_shown() -> None:
    async with playing(SyntheticSource(telling()), start_at=20.0) as (app, pilot):
        for t, bandwidth in ((9.5, "9"), (12.5, "12")):
            app.main.playhead.jump(t, 20.0)
            app.main.redraw()
            table = text_of(app, "flows")
            assert f"bw {bandwidth} Mbit/s  min rtt 20.1 ms" in table
            assert "pacing gain 1.25  cwnd gain 2.00" in table
        app.main.playhead.jump(4.0, 20.0)
        app.main.redraw()
        assert "gain" not in text_of(app, "flows")
        app.main.playhead.jump(12.0, 20.0)
        await pilot.press("down")
        assert "gain" not in text_of(app, "flows")
