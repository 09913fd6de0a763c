"""A key traces a flow: its row shows the trace, plots draw it when zoomed in, or it is refused."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from ccplay.model import blocks
from ccplay.model.base import Event
from ccplay.model.commands import TraceFlow, UntraceFlow
from ccplay.model.events import Hello, TraceEnded, TraceStarted
from ccplay.model.samples import CaStateChanged, TraceSamples
from ccplay.model.values import Feature
from ccplay.ui.cells import UNICODE
from ccplay.ui.palette import entries
from ccplay.ui.ribbon import states
from tests.events import folded
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import live, playing, until
from tests.ui.view import text_of

PROBE = Feature(name="tcp_probe", available=True)
FORBIDDEN = Feature(
    name="tcp_probe", available=False, reason="not permitted", remedy="start ccplay as root"
)


def on_a_machine_with(*points: Feature) -> Iterator[Event]:
    for event in stream(seconds=20):
        if isinstance(event, Hello):
            capabilities = replace(event.capabilities, tracepoints=list(points))
            yield replace(event, capabilities=capabilities)
        else:
            yield event


def segments(t: float, count: int) -> TraceSamples:
    """Return a trace of ACKs 1 ms apart, each of which increases cwnd by one."""
    return TraceSamples(
        t=t,
        flow="1",
        after_us=[1000] * (count - 1),
        cwnd=blocks.row(range(20, 20 + count)),
        ssthresh=17,
        srtt_us=30_000,
        snd_wnd=65_536,
    )


async def test_h_asks_and_h_ends() -> None:
    async with playing(source := live(on_a_machine_with(PROBE))) as (app, pilot):
        state = app.session.state
        await pilot.press("h")
        assert source.sent == [TraceFlow(flow="1")]
        assert UNICODE.traced not in text_of(app, "flows")
        state.apply(TraceStarted(t=state.now, flow="1"))
        state.apply(segments(state.now - 0.1, 90))
        await until(pilot, lambda: f"●{UNICODE.traced}1" in text_of(app, "flows"))
        await pilot.press("h")
        assert source.sent == [TraceFlow(flow="1"), UntraceFlow(flow="1")]
        state.apply(TraceEnded(t=state.now, flow="1", segments=90))
        await until(pilot, lambda: "flow 1 was traced: 90 segments" in text_of(app, "events"))


@pytest.mark.parametrize(
    ("points", "why"),
    [
        ([FORBIDDEN], "flow 1 is sampled, not traced: tcp_probe: not permitted (start ccplay as"),
        ([], "this lab does not support tracing"),
    ],
)
async def test_what_is_forbidden_is_reported_and_sampling_continues(
    points: list[Feature], why: str
) -> None:
    async with playing(source := live(on_a_machine_with(*points))) as (app, pilot):
        await pilot.press("h")
        await until(pilot, lambda: any(why in each.message for each in app._notifications))
        assert source.sent == []


async def test_zooming_in_draws_every_ack() -> None:
    """Zoomed in, plots of a traced flow draw each ACK instead of samples 20 ms apart."""
    async with playing(live(on_a_machine_with(PROBE))) as (app, pilot):
        state = app.session.state
        state.apply(segments(state.now - 0.1, 100))
        await until(pilot, lambda: "per ACK" not in text_of(app, "cwnd"))
        await pilot.press("space", *["plus"] * 12)
        await until(pilot, lambda: "per ACK" in text_of(app, "cwnd"))
        assert "per ACK" in text_of(app, "rtt")
        assert "per ACK" not in text_of(app, "queue")


async def test_the_ribbon_shows_states_shorter_than_a_sample() -> None:
    async with playing(live(on_a_machine_with(PROBE))) as (app, pilot):
        state = app.session.state
        await pilot.press("space", *["plus"] * 12)
        view = app.main.view
        end = view.shown.playhead.until
        before = states(view, state.flows["1"], 50)
        assert None not in before
        state.apply(segments(end - 0.05, 49))
        state.apply(CaStateChanged(t=end - 0.020, flow="1", ca_state=0))
        state.apply(CaStateChanged(t=end - 0.010, flow="1", ca_state=4))
        state.apply(CaStateChanged(t=end - 0.005, flow="1", ca_state=0))
        found = states(view, state.flows["1"], 50)
        assert 4 in found
        assert found[-1] == 0


async def test_a_recording_is_traced_no_more() -> None:
    async with playing(source := SyntheticSource(on_a_machine_with(PROBE))) as (_, pilot):
        await pilot.press("h")
        assert source.sent == []


def test_the_palette_offers_it_for_every_running_flow() -> None:
    state = folded(*on_a_machine_with(PROBE))
    offered = {entry.text: entry.command for entry in entries(state)}
    assert offered["trace flow 1"] == TraceFlow(flow="1")
    state.apply(TraceStarted(t=state.now, flow="1"))
    offered = {entry.text: entry.command for entry in entries(state)}
    assert offered["stop tracing flow 1"] == UntraceFlow(flow="1")
    assert "trace flow 1" not in offered
