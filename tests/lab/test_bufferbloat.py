"""The published bufferbloat lab, on this machine: its shape, held by what the physics allows."""

from typing import Any

import msgspec
import pytest

from ccplay.analysis.trust import HealthResult
from tests.lab.commands import run
from tests.lab.trust import Measured, physical

pytestmark = pytest.mark.xdist_group("bufferbloat")

BASE_RTT_MS = 20.0
RATE_BPS = 1.5e6
FRAME_BITS = 1514 * 8
FRAMING = 1448 / 1514
PAGE_BYTES = 177_669


def wait_ms(packets: float) -> float:
    """Return the milliseconds that a full-sized packet waits behind this number of others."""
    return packets * FRAME_BITS / RATE_BPS * 1000


async def measure(case: str) -> Any:
    """Run a case by a command of its own: one command for all would repeat runs."""
    code, result, talk = await run("run", "bufferbloat", "--json", "--case", case)
    # The scenario's own expectations are not judged here: the tests know how busy the machine was.
    assert code in (0, 1), talk
    (found,) = result["cases"]
    return found


@pytest.fixture(scope="module")
def measured() -> Measured[Any]:
    found = Measured(measure, lambda case: msgspec.convert(case["health"], HealthResult))
    found.measure(("idle", "reno, 100 packets", "reno, 20 packets"), 3)
    return found


@physical
def test_the_idle_rtt_is_the_links_own(measured: Measured[Any]) -> None:
    """Without a queue only the delay counts; 1 ms is allowed for the stacks and the processes."""
    (ping,) = measured["idle"]["pings"]
    assert ping["lost"] == 0
    assert ping["p50_ms"] == pytest.approx(BASE_RTT_MS, abs=1.0)


@pytest.mark.parametrize("limit", [20, 100])
@physical
def test_under_reno_the_rtt_is_what_the_queue_explains(measured: Measured[Any], limit: int) -> None:
    """Reno's sawtooth swings cwnd between half of (BDP + limit) and all of it.

    The queue holds cwnd less the BDP of 2.5 packets. The bounds allow for half a sawtooth below the
    lowest and one packet in transmission above the highest value, and 5 % for clocks.
    """
    (ping,) = measured[f"reno, {limit} packets"]["pings"]
    full = BASE_RTT_MS + wait_ms(limit + 1)
    assert ping["max_ms"] <= full * 1.05
    bdp = BASE_RTT_MS / wait_ms(1)
    trough = max(0.0, (limit + bdp) / 2 - bdp)
    assert ping["p50_ms"] >= BASE_RTT_MS + wait_ms(trough) / 2


@pytest.mark.parametrize("limit", [20, 100])
@physical
def test_the_queue_fills_to_its_limit_and_never_beyond(measured: Measured[Any], limit: int) -> None:
    queue = next(q for q in measured[f"reno, {limit} packets"]["queues"] if q["link"] == "r->h2")
    assert queue["qlen_max"] == limit
    assert queue["drops"] > 0


@pytest.mark.parametrize("limit", [20, 100])
@physical
def test_reno_uses_the_link(measured: Measured[Any], limit: int) -> None:
    """Goodput is what framing allows, less a tenth for the page and the pings beside it."""
    case = measured[f"reno, {limit} packets"]
    (flow,) = case["flows"]
    shared = PAGE_BYTES * 8 / flow["duration_s"]
    possible = RATE_BPS * FRAMING
    assert 0.9 * possible - shared <= flow["goodput_bps"] <= possible


@physical
def test_the_page_is_several_times_slower_behind_a_long_queue(measured: Measured[Any]) -> None:
    """On an idle link it takes its bytes over the rate, and little more.

    Its 123 segments need a handshake and four rounds of slow start from 10 (RFC 6928): five round
    trips, each behind a queue that is at least half full.
    """
    idle, long, short = (
        measured[name]["downloads"][0]["seconds"]
        for name in ("idle", "reno, 100 packets", "reno, 20 packets")
    )
    assert idle == pytest.approx(PAGE_BYTES * 8 / (RATE_BPS * FRAMING), rel=0.15)
    assert long >= 5 * (BASE_RTT_MS + wait_ms(48)) / 1000
    assert idle < short < long


@physical
def test_the_short_queue_is_between_idle_and_long(measured: Measured[Any]) -> None:
    idle, long, short = (
        measured[name]["pings"][0]["p50_ms"]
        for name in ("idle", "reno, 100 packets", "reno, 20 packets")
    )
    assert 2 * idle < short < long / 2


@physical
def test_the_emulation_was_trustworthy(measured: Measured[Any]) -> None:
    for name in measured:
        assert measured[name]["health"]["trustworthy"], measured[name]["health"]["reasons"]
