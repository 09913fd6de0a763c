"""What algorithms say of themselves on a real path agrees with what the path is."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import structs

from ccplay.analysis.summary import summarise
from ccplay.assets import ALGORITHMS, algorithms
from ccplay.bpf.support import lack
from ccplay.model.commands import Build, SetCongestionControl
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.session import launch
from ccplay.state.lab_state import LabState
from ccplay.traffic.flow import StartFlow, StopFlow
from tests.lab.conftest import RunningLab, running
from tests.lab.trust import physical

BUILD = Build(
    topology=Topology(kind="linear"),
    links={
        "bottleneck": LinkSetting(
            rate=10_000_000, delay_us=10_000, qdisc=Qdisc(kind="pfifo", options={"limit": 100})
        )
    },
)


@physical
async def test_bbr_tells_the_bottleneck_and_stops_when_it_is_left() -> None:
    """Alone for 4 s: start-up ends after some ten round trips of 20 ms."""
    async with running(BUILD) as lab:
        hello = lab.state.hello
        assert hello is not None
        offered = hello.capabilities.congestion_controls
        if not any(each.name == "bbr" and each.available for each in offered):
            pytest.skip("this kernel has no bbr")
        lab.send(StartFlow(flow="1", cc="bbr"))
        await lab.until(lambda state: "1" in state.flows)
        await lab.run_for(4.0)
        flow = lab.state.flows["1"]
        last = {name: series.last for name, series in flow.own.items()}
        assert set(last) == {"bbr_bw_bps", "bbr_min_rtt_us", "bbr_pacing_gain", "bbr_cwnd_gain"}
        # Payload is 1448 of 1514 bytes: 9.56 Mbit/s. The filter takes the greatest of ten round
        # trips, and bursts of ACKs on a busy machine make it greater; never less than is sent.
        assert last["bbr_bw_bps"] == pytest.approx(10.5e6, rel=0.2)
        # 20 ms; the delay line may be some microseconds early, and a busy machine is late.
        assert 19_500 <= (last["bbr_min_rtt_us"] or 0) < 30_000
        # Start-up has 2.89 = 739/256, draining 88/256, the cycle then 1.25, 0.75 and 1.
        gains = flow.own["bbr_pacing_gain"]
        assert set(gains.values(gains.first, gains.end)) <= {739, 88, 320, 192, 256}
        assert 739 in gains.values(gains.first, gains.end)
        assert last["bbr_cwnd_gain"] == 512

        lab.send(SetCongestionControl(flow="1", cc="reno"))
        await lab.until(lambda state: state.flows["1"].cc == "reno")
        end = gains.end
        await lab.run_for(0.5)
        assert gains.end == end


@pytest.mark.skipif(lack() is not None, reason=f"{lack()}")
@physical
async def test_cubic_as_a_bpf_program_shows_the_curve_it_is_on() -> None:
    """W_max is cwnd at the loss, and K follows from it by RFC 9438, figure 2."""
    async with running(BUILD) as lab:
        lab.send(StartFlow(flow="1", cc="cubic.bpf"))
        await lab.until(lambda state: "1" in state.flows)
        await lab.until(lambda state: shown(state, "cubic_k_us"))
        flow = lab.state.flows["1"]
        w_max, k_us = shown(lab.state, "cubic_w_max_segments"), shown(lab.state, "cubic_k_us")
        most = flow.series["cwnd"].extremes(0, 1 << 30)
        assert most is not None
        # The path takes 116 packets; slow start overshoots, and cwnd is read 50 times a second.
        assert 100 <= w_max <= most[1] * 1.5
        # cwnd fell to 0.7 W_max, or to a little less in slow start's many losses.
        assert k_us / 1e6 == pytest.approx((w_max * 0.3 / 0.4) ** (1 / 3), rel=0.15)


def shown(state: LabState, name: str) -> float:
    """Return the exported values of flow 1; 0 if there is none."""
    series = state.flows["1"].own.get(name)
    return (series.last or 0.0) if series else 0.0


BASE = (19_500, 30_000)
"""Bounds of the base RTT around 20 ms: the delay line may be some µs early, and a busy machine is
late."""
RHO = (1000, 1200)
"""Bounds of rho, of 1000: BASE over 25 ms, but at least 1."""
RTT, WINDOW = (0, 500_000), (0, 500)
"""Bounds for a queue of 30 packets, with room for a machine that stalls for a while."""
RANGES = {
    "bic_w_max_segments": WINDOW,
    "bic_step_1000": (200, 16_000),  # S_min to S_max
    "cubic_w_max_segments": WINDOW,
    "cubic_k_us": (0, 8_000_000),  # the cube root of 0.3 W_max / 0.4
    "cubic_w_est_segments": WINDOW,
    "highspeed_a_1000": (1000, 4000),  # a(38) = 1, a(221) = 3
    "highspeed_b_1024": (380, 512),
    "htcp_alpha_1000": (1000, 500_000),  # some seconds after a loss
    "htcp_beta_1000": (500, 800),
    "htcp_rtt_min_us": BASE,
    "htcp_rtt_max_us": RTT,
    "hybla_rho_1000": RHO,
    "hybla_base_rtt_us": BASE,
    "illinois_alpha_1000": (300, 10_000),
    "illinois_beta_1000": (125, 500),
    "illinois_da_us": RTT,
    "illinois_dm_us": RTT,
    "ledbat_base_us": BASE,
    "ledbat_queuing_us": RTT,
    "lia_needed_segments": WINDOW,
    "lia_total_segments": WINDOW,
    "prague_alpha_1024": (0, 1024),
    "prague_rtt_us": RTT,
    "reno_acked_segments": WINDOW,
    "reno_needed_segments": WINDOW,
    "scalable_acked_segments": WINDOW,
    "scalable_needed_segments": (1, 100),
    "vegas_minrtt_us": BASE,
    "vegas_rtt_us": RTT,
    "vegas_queued_segments": WINDOW,
    "veno_base_rtt_us": BASE,
    "veno_queued_segments": WINDOW,
    "westwood_bandwidth_bps": (0, 100_000_000),  # ACKs come bunched
    "westwood_rtt_min_us": BASE,
    "westwood_holds_segments": WINDOW,
    "yeah_queued_segments": WINDOW,
    "yeah_base_rtt_us": BASE,
    "yeah_slow_rounds": (0, 1000),
}
"""Bounds of each variable on a path of 20 ms with a short queue."""


@pytest.mark.skipif(lack() is not None, reason=f"{lack()}")
async def test_every_algorithm_shows_what_it_must_be() -> None:
    """Each flow in turn has the path alone until its algorithm has reported all variables."""
    short = Qdisc(kind="pfifo", options={"limit": 30})
    links = {"bottleneck": LinkSetting(rate=10_000_000, delay_us=10_000, qdisc=short)}
    told: set[str] = set()
    async with running(structs.replace(BUILD, links=links)) as lab:
        for cc, source in algorithms().items():
            names = set(re.search(r'SHOWN\("(.*)"\)', source.read_text())[1].split())  # type: ignore[index]
            if cc == "dctcp.bpf":
                # Without ECN it is Reno.
                continue
            lab.send(StartFlow(flow=cc, cc=cc))
            await lab.until(lambda state: cc in state.flows)  # noqa: B023 - awaited at once
            flow = lab.state.flows[cc]
            await lab.until(lambda _: names <= set(flow.own))  # noqa: B023 - as above
            await lab.run_for(0.5)
            assert set(flow.own) == names
            for name, series in flow.own.items():
                low, high = series.extremes(series.first, series.end) or (-1, -1)
                if RANGES[name] in (BASE, RHO):
                    # It comes down to this from what the flow before has left in the queue.
                    high = low
                assert RANGES[name][0] <= low <= high <= RANGES[name][1], (cc, name, low, high)
            told |= names
            lab.send(StopFlow(flow=cc))
            await lab.until(lambda _: not flow.running)  # noqa: B023 - as above
    assert told == set(RANGES)


TEMPLATE = (ALGORITHMS / "template.bpf.c").read_text()
GROWTH = "tcp_cong_avoid_ai(tp, max(tp->snd_cwnd / INCREASE, 1U), acked);"
BROKEN = GROWTH.replace(";", " /* no semicolon */")
ENDLESS = "for (u32 i = 0; i < ack; i++)\n\t\tset_cwnd(tp, i);"
"""Source with a loop that the verifier refuses, because it can't see the end."""


@asynccontextmanager
async def under(source: Path) -> AsyncIterator[RunningLab]:
    """Run flow 1 with ``mine.bpf.c``."""
    async with running(BUILD, argv=launch.lab_argv(custom=[source])) as lab:
        lab.send(StartFlow(flow="1", cc="mine"))
        await lab.until(lambda state: "1" in state.flows)
        yield lab


@pytest.mark.skipif(lack() is not None, reason=f"{lack()}")
async def test_a_copy_of_the_template_shows_its_base_rtt(tmp_path: Path) -> None:
    """Variables of a user's file are sampled too, and after a hot swap those of the new version."""
    source = tmp_path / "mine.bpf.c"
    source.write_text(TEMPLATE)
    async with under(source) as lab:
        # 20 ms; the delay line may be some microseconds early, and a busy machine is late at first.
        await lab.until(lambda state: 0 < shown(state, "my_base_rtt_us") < 30_000)
        assert shown(lab.state, "my_base_rtt_us") >= 19_500
        source.write_text(TEMPLATE.replace("my_base_rtt_us", "other_us"))
        await lab.until(lambda state: shown(state, "other_us"))


@pytest.mark.skipif(lack() is not None, reason=f"{lack()}")
async def test_what_can_not_be_built_or_loaded_leaves_the_flow_as_it_was(tmp_path: Path) -> None:
    """Messages of clang and the verifier name the line; the next save is loaded again."""
    source = tmp_path / "mine.bpf.c"
    source.write_text(TEMPLATE)
    async with under(source) as lab:
        flow = lab.state.flows["1"]
        line = TEMPLATE[: TEMPLATE.index(GROWTH)].count("\n") + 1
        for text in (BROKEN, ENDLESS):
            told, acked = len(lab.state.log), flow.acked
            source.write_text(TEMPLATE.replace(GROWTH, text))
            await lab.until(lambda state: errors(state, told))  # noqa: B023 - awaited at once
            (said,) = errors(lab.state, told)
            assert said.startswith("mine keeps the old version: ")
            assert f"mine.bpf.c:{line}" in said
            await lab.until(lambda _: flow.acked > acked)  # noqa: B023 - as above
            assert (flow.cc, flow.running) == ("mine", True)
        source.write_text(TEMPLATE.replace("my_base_rtt_us", "other_us"))
        await lab.until(lambda state: shown(state, "other_us"))


PACED = """\
#include "ccplay_cc.h"

SHOWN("paced_arrives_bps");

CONG_CONTROL(sk, rate)
{
	struct tcp_sock *tp = tcp_sk(sk);

	set_cwnd(tp, 60);
	set_pacing_rate(sk, 4000000);
	if (rate->delivered > 0 && rate->interval_us > 0)
		SHOW(sk, rate->delivered * 8000000ULL * tp->mss_cache / (u64)rate->interval_us);
}

SSTHRESH(sk)
{
	return tcp_sk(sk)->snd_ssthresh;
}

UNDO_CWND(sk)
{
	return reno_undo_cwnd(sk);
}

CONGESTION_CONTROL paced = {
	.cong_control = (void *)cc_cong_control,
	.ssthresh = (void *)cc_ssthresh,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.name = NAME,
};
"""


@pytest.mark.skipif(lack() is not None, reason=f"{lack()}")
async def test_cong_control_rules_cwnd_and_pacing_rate(tmp_path: Path) -> None:
    """The kernel changes neither; the link could carry more than twice as much."""
    source = tmp_path / "mine.bpf.c"
    source.write_text(PACED)
    async with under(source) as lab:
        flow = lab.state.flows["1"]
        await lab.until(lambda _: flow.series["pacing_rate"].last == 4_000_000)
        await lab.until(lambda _: flow.series["cwnd"].last == 60)
        await lab.until(lambda state: shown(state, "paced_arrives_bps"))
        await lab.swept()
        begun, acked = lab.state.sweeps.time(lab.state.sweeps.end - 1), flow.acked
        await lab.run_for(1.0)
        await lab.swept()
        passed = lab.state.sweeps.time(lab.state.sweeps.end - 1) - begun
        # 60 segments at the most, 0.7 Mbit, may be acknowledged at once.
        assert 8 * (flow.acked - acked) < 4e6 * passed + 1e6


def errors(state: LabState, since: int) -> list[str]:
    """Return the errors after a number of entries of the log."""
    return [entry.text for entry in state.log[since:] if entry.kind == "error"]


@pytest.mark.skipif(lack() is not None, reason=f"{lack()}")
@pytest.mark.parametrize(
    ("growth", "kept", "wrong"),
    [
        ("set_cwnd(tp, 1);", "return 1;", "keeps cwnd at 1"),
        # Slow start makes cwnd far too large, and then it does not come down any more.
        (
            "set_cwnd(tp, tp->snd_cwnd + 1000);",
            "return cwnd;",
            "keeps cwnd above 8 times what is in flight",
        ),
    ],
)
async def test_what_does_no_good_is_reported_and_is_over_when_it_is_mended(
    tmp_path: Path, growth: str, kept: str, wrong: str
) -> None:
    """The lab continues: the same file, saved again, is used at once."""
    source = tmp_path / "mine.bpf.c"
    bad = TEMPLATE.replace(GROWTH, growth).replace("return max(cwnd * KEPT / 1024, 2U);", kept)
    bad = bad.replace("acked = tcp_slow_start(tp, acked);", growth + "\n\t\tacked = 0;")
    source.write_text(bad)
    async with under(source) as lab:
        flow = lab.state.flows["1"]
        await lab.until(lambda _: flow.wrong_at(lab.state.now))
        assert flow.wrong_at(lab.state.now) == wrong
        source.write_text(TEMPLATE)
        await lab.until(lambda _: not flow.wrong_at(lab.state.now))
        assert [each.wrong for each in flow.misbehaved] == [wrong, ""]
        acked = flow.acked
        await lab.until(lambda _: flow.acked > acked + 100_000)
        (told,) = summarise(lab.state, "mine").flows[0].misbehaved
        assert (told.cc, told.wrong) == ("mine", wrong)
        assert told.until is not None
