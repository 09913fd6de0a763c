"""Queues, links and classes are expressed as commands of tc(8)."""

from typing import Any

import pytest
from msgspec.structs import replace

from ccplay.model import tc
from ccplay.model.base import Option
from ccplay.model.commands import SetLink, SetQdisc
from ccplay.model.disciplines import DISCIPLINES, validate
from ccplay.model.events import Applied
from ccplay.model.network import Topology
from ccplay.model.topologies import plan
from ccplay.model.values import LinkSetting, Qdisc, TrafficClass
from tests.ui.hand_made import lab
from tests.unit.test_qdiscs import EXAMPLES

WORDS = {
    "pfifo": "limit 100",
    "bfifo": "limit 150000",
    "pfifo_fast": "",
    "tbf": "rate 1Mbit burst 15000 limit 60000 peakrate 2Mbit mtu 1600",
    "codel": "limit 500 target 5ms interval 100ms ecn ce_threshold 900us",
    "fq_codel": "limit 10240 target 6ms interval 90ms noecn ce_threshold 2ms flows 64 quantum 300"
    " memory_limit 4000000 drop_batch 8 ce_threshold_selector 0x1/0x3",
    "cake": "bandwidth 8Mbit rtt 50ms dual-srchost besteffort ack-filter-aggressive memlimit"
    " 4000000 nonat wash ingress no-split-gso overhead 18 mpu 64 ptm fwmark 255",
    "sfq": "limit 64 flows 32 quantum 1514 perturb 10 divisor 512 depth 20 headdrop"
    " redflowlimit 60000 min 4000 max 15000 probability 0.1 avpkt 900 burst 12 ecn harddrop",
    "choke": "limit 100 bandwidth 8Mbit min 10 max 30 ecn burst 20 probability 0.05",
    "red": "limit 150000 min 12500 max 37500 bandwidth 10Mbit ecn burst 30 probability 0.1"
    " avpkt 900 harddrop nodrop",
    "sfb": "limit 500 max 30 target 22 increment 0.002 decrement 0.0002 penalty_rate 20"
    " penalty_burst 40 rehash 300000 db 30000",
    "pie": "limit 500 target 10ms alpha 2 beta 20 ecn tupdate 20ms bytemode dq_rate_estimator",
    "fq_pie": "limit 500 target 10ms alpha 3 beta 18 ecn tupdate 20ms bytemode dq_rate_estimator"
    " flows 64 quantum 300 memory_limit 4000000 ecn_prob 20",
    "fq": "limit 500 flow_limit 50 quantum 3000 ce_threshold 2ms initial_quantum 9000 maxrate"
    " 8Mbit nopacing buckets 256 refill_delay 60ms low_rate_threshold 800kbit orphan_mask 255"
    " timer_slack 50us horizon 5s horizon_cap",
    "hhf": "limit 500 quantum 3000 hh_limit 100 reset_timeout 80ms admit_bytes 65536"
    " evict_timeout 2s non_hh_weight 3",
    "prio": "bands 4 priomap 1 2 2 2 1 2 0 0 3 1 1 1 1 1 1 1",
    "dualpi2": "limit 500 target 20ms tupdate 20ms max_rtt 80ms step_thresh 800us"
    " coupling_factor 3 classic_protection 20% memlimit 4000000 min_qlen_step 2 overflow"
    " drop_enqueue any_ect no_split_gso",
}
"""Arguments of tc(8) by kind, for the options of ``EXAMPLES``; a test in the guest runs them."""


@pytest.mark.parametrize("kind", EXAMPLES)
def test_every_parameter_has_its_words(kind: str) -> None:
    queue = validate(Qdisc(kind=kind, options=EXAMPLES[kind]))
    line = f"tc qdisc replace dev r1-eth1 parent 1:1 {kind} {WORDS[kind]}".rstrip()
    assert tc.queue_line(queue, "r1-eth1") == line


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("codel.py", {"target": 2_500}, "codel target 2500us"),
        ("prio.py", {"limit": 20}, "prio"),
        ("red", {"limit": 60_000, "bandwidth": 10_000_000}, None),
        (
            "cake",
            {"ack_filter": True, "autorate_ingress": True},
            "cake ack-filter autorate-ingress",
        ),
        (
            "cake",
            {"bandwidth": 2_500_000, "ack_filter": False},
            "cake bandwidth 2500kbit no-ack-filter",
        ),
    ],
)
def test_software_is_called_what_the_kernel_calls_it(
    kind: str, options: dict[str, Option], words: str | None
) -> None:
    """Options that only ccplay's own discipline has are omitted; red always gets ``avpkt``."""
    said = tc.queue_words(validate(Qdisc(kind=kind, options=options)))
    assert said is not None
    assert " ".join(said) == (words or "red limit 60000 bandwidth 10Mbit avpkt 1000")


def test_what_has_no_line_of_its_own_has_none() -> None:
    assert DISCIPLINES.keys() - EXAMPLES.keys() == {"drr"}
    for kind, options in (("drr", {}), ("new", {}), ("pfifo", {"limit": "?"})):
        assert tc.queue_line(Qdisc(kind=kind, options=dict(options)), "eth0") is None


def test_the_event_of_a_queue_has_its_lines() -> None:
    state = lab()
    state.apply(Applied(t=1.0, command=SetQdisc(qdisc=Qdisc(kind="codel.py"))))
    lines = state.log[-1].detail.splitlines()
    assert len(lines) == 2
    assert all(each.endswith("parent 1:1 codel") for each in lines)
    state.apply(Applied(t=2.0, command=SetQdisc(qdisc=Qdisc(kind="drr.py"))))
    assert not state.log[-1].detail


def test_a_link_of_two_directions_has_two_lines_and_a_class_its_own_parent() -> None:
    network = plan(Topology(kind="dumbbell"))
    codel = Qdisc(kind="codel")
    both = SetQdisc(qdisc=codel).as_tc(network, lambda _: LinkSetting())
    assert len(both) == len(network.observed)
    one = SetQdisc(qdisc=codel, link=network.observed[0], traffic_class="web")
    bulk, web = (TrafficClass(name=name, share=0.5) for name in ("bulk", "web"))
    (line,) = one.as_tc(network, lambda _: LinkSetting(classes=[bulk, web]))
    assert "parent 1:11 codel" in line
    assert one.as_tc(network, lambda _: LinkSetting(classes=[bulk])) == []


def test_a_link_is_changed_at_its_class_and_where_it_ends() -> None:
    """A rate changes the link's class, and other settings change netem at the link's other end.

    A test in the guest runs these lines.
    """
    network = plan(Topology(kind="linear"))
    first, link = network.observed[0], network.link(network.observed[0])
    now = LinkSetting(delay_us=10_000, loss=0.1, distribution="normal")

    def lines(**change: Any) -> list[str]:
        return SetLink(link=first, **change).as_tc(network, lambda _: now)

    (rated,) = lines(rate=8_000_000)
    assert rated == (
        f"tc class replace dev {link.interface} parent 1: classid 1:1 htb rate 8Mbit burst 3028"
        " cburst 3028 quantum 1514"
    )
    *device, netem = lines(jitter_us=2_500)
    assert len(device) == 4
    assert network.opposite(link).interface in device[-1]
    assert netem.endswith(
        "root netem limit 131072 rate 34Gbit delay 10ms 2500us distribution normal loss 10%"
    )
    assert lines(delay_us=0, loss=0, gemodel=[0.01, 0.3, 1, 0], reorder=0.25)[-1].endswith(
        "rate 34Gbit loss gemodel 1% 30% 100% 0% reorder 25%"
    )
    assert lines(down=True) == []
    assert SetLink(link="nowhere").as_tc(network, lambda _: now) == []
    both = SetLink(rate=1_000_000).as_tc(network, lambda _: now)
    assert len(both) == len(network.observed)


def test_the_event_of_a_changed_link_has_its_lines() -> None:
    state = lab()
    state.apply(Applied(t=2.0, command=SetLink(delay_us=20_000)))
    assert "netem limit 131072" in state.log[-1].detail
    assert "delay 20ms" in state.log[-1].detail
    state.apply(Applied(t=3.0, command=SetLink(down=True)))
    assert not state.log[-1].detail


@pytest.mark.parametrize("word", ["normal;reboot", "normal reboot\n", "$(reboot)", "a|b"])
def test_no_line_from_a_stranger_s_recording_does_more_in_a_shell(word: str) -> None:
    network = plan(Topology(kind="linear"))
    change = SetLink(link=network.observed[0], jitter_us=1000, distribution=word)
    assert change.as_tc(network, lambda _: LinkSetting()) == []
    links = [replace(each, interface=word) for each in network.links]
    strange = replace(network, links=links)
    assert SetQdisc(qdisc=Qdisc(kind="codel")).as_tc(strange, lambda _: LinkSetting()) == []
    assert SetLink(delay_us=1000).as_tc(strange, lambda _: LinkSetting()) == []
