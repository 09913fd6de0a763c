"""Cross traffic without a network: iperf3's words, and what a file and a state make of it."""

from pathlib import Path
from typing import Any

import pytest

from ccplay.analysis.metrics import metric_problem, metrics_of
from ccplay.analysis.summary import summarise
from ccplay.errors import ScenarioError
from ccplay.lab.traffic.iperf import looks_after_each_packet
from ccplay.model.events import InterfaceCounters
from ccplay.report.data.curves import cross_traffic
from ccplay.scenario.reading import parse
from ccplay.session.steps import ended_at
from ccplay.state.lab_state import LabState
from ccplay.traffic.udp import StartUdp, StopUdp, Udp, UdpEnded, UdpStarted
from ccplay.traffic.udp.run import Lines, _sending_s, client_argv, keys_of

HEAD = 'title = "x"\nduration = "20 s"\ntopology = { kind = "linear" }\n'

SENDER = (
    "[  5]   0.00-0.70   sec  85.0 KBytes   999 Kbits/sec  0.000 ms  0/85 (0%)  sender",
    "[  5]   0.00-0.70   sec  0.00 Bytes  0.00 Kbits/sec  0.000 ms  0/0 (0%)  receiver",
)
RECEIVER = (
    "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams",
    "[  5]   0.00-1.00   sec   122 KBytes   999 Kbits/sec  0.014 ms  0/122 (0%)  ",
    # What a receiver says of its time when the sender was interrupted.
    "[  5]   0.00-15615.16 sec  70.0 KBytes  44.6 bits/sec  0.021 ms  15/85 (18%)  receiver",
)


def test_each_end_is_asked_for_what_it_alone_knows() -> None:
    account = Lines()
    for line in SENDER:
        account.read(line, "sender")
    for line in RECEIVER:
        account.read(line, "receiver")
    assert (account.sent, account.received, account.sending_s) == (85, 70, 0.7)
    assert account.reached == 85
    assert account.jitter_us == 21.0


def test_what_has_arrived_is_counted_while_it_runs() -> None:
    account = Lines()
    told = [account.read(line, "receiver") for line in RECEIVER]
    # Neither the head nor the sum of all is an interval.
    assert told == [False, True, False]
    account.read(
        "[  5]   1.00-1.10   sec  9.8 KBytes   799 Kbits/sec  0.1 ms  2/12 (17%)", "receiver"
    )
    assert (account.reached_so_far, account.received_so_far) == (134, 132)
    idle = Lines()
    # Before its first packet.
    line = "[  5]   0.00-0.10   sec  0.00 Bytes  0.00 bits/sec  0.000 ms  0/0 (0%)  "
    assert not idle.read(line, "receiver")


def test_iperf3_sends_the_rate_in_packets_of_the_size() -> None:
    command = StartUdp(rate_bps=1_000_000, duration_s=3.0)
    line = " ".join(client_argv(command, "10.0.1.2", 5202, 10_007, itself=True))
    assert "iperf3 -c 10.0.1.2 -p 5202 --cport 10007 -u" in line
    # 366 packets take 3 s; its own -t knows whole seconds only.
    assert "-b 1000000 -l 1024 -n 374784" in line
    for endless, itself in ((StartUdp(), True), (command, False)):
        argv = client_argv(endless, "10.0.1.2", 5202, 10_007, itself=itself)
        assert argv[-2:] == ["-t", "0"]


@pytest.mark.parametrize(
    ("said", "looks"),
    [
        ("iperf 3.12 (cJSON 1.7.15)", True),
        ("iperf 3.9 (cJSON 1.7.13)", True),
        ("iperf 3.16 (cJSON 1.7.15)", False),
        ("iperf 3.18 (cJSON 1.7.15)", False),
        ("iperf 4.0", False),
        ("what?", False),
    ],
)
def test_an_iperf3_with_threads_is_ended_by_the_labs_own_clock(said: str, looks: bool) -> None:
    assert looks_after_each_packet(said) is looks


def test_filters_know_its_packets_and_the_connection_that_steers_it() -> None:
    protocols = [keys[1] for keys in keys_of("10.0.1.2", 5202)]
    assert protocols == ["0x11/0xff+9"] * 2 + ["0x6/0xff+9"] * 2


def test_a_file_says_it_with_units() -> None:
    text = HEAD + (
        'timeline = [ { at = "7 s", do = "start-udp", rate = "1 Mbit/s", packet = "1024 bytes" },'
        '{ at = "10 s", do = "stop-udp", udp = "u1" },'
        '{ at = "8 s", do = "start-udp", duration = "2 s" },'
        '{ after = "u2", do = "start-ping", count = 1 } ]'
    )
    (case,) = parse(text, Path("x.toml")).cases
    commands = [step.command for step in case.timeline]
    assert commands[:3] == [
        StartUdp(udp="u1", rate_bps=1_000_000, packet_bytes=1024),
        StopUdp(udp="u1"),
        StartUdp(udp="u2", duration_s=2.0),
    ]
    assert not metric_problem("udp.u1.loss", case)


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ('do = "start-udp", rate = "unlimited"', "is not a rate"),
        ('do = "start-udp", rate = 1000000', "has no unit"),
        ('do = "start-udp", packet = "8 bytes"', "must be from 16 B"),
        ('do = "stop-udp", udp = "u1"', 'no udp "u1" is ever started'),
        ('do = "start-udp", dst = "r"', "is a router"),
    ],
)
def test_mistakes_are_reported(step: str, problem: str) -> None:
    with pytest.raises(ScenarioError, match=problem):
        parse(f'{HEAD}timeline = [ {{ at = "1 s", {step} }} ]', Path("x.toml"))


def test_names_of_flows_and_udp_are_never_the_same() -> None:
    flow = '{ at = "0 s", do = "start-flow", flow = "u1" }'
    steps = f'{flow}, {{ at = "0 s", do = "start-udp", udp = "u1" }}'
    with pytest.raises(ScenarioError, match='"u1" is taken'):
        parse(f"{HEAD}timeline = [ {steps} ]", Path("x.toml"))


def test_what_endless_udp_waits_for_never_comes() -> None:
    steps = '{ at = "0 s", do = "start-udp" }, { after = "u1", do = "start-flow" }'
    with pytest.raises(ScenarioError, match="never ends: give it a duration or a stop"):
        parse(f"{HEAD}timeline = [ {steps} ]", Path("x.toml"))


def test_the_state_and_the_result_report_what_became_of_its_packets() -> None:
    state = LabState()
    where = {"src": "h1", "dst": "h2", "rate_bps": 1_000_000, "packet_bytes": 1000, "port": 5201}
    state.apply(UdpStarted(t=7.0, udp="u1", **where))  # type: ignore[arg-type]
    before = summarise(state, "x").udp[0]
    assert (before.sent, before.loss, before.duration_s) == (None, None, None)
    assert ended_at(state, "u1") is None
    ended = UdpEnded(t=10.2, udp="u1", sent=400, received=300, jitter_us=1500.0, duration_s=3.2)
    state.apply(ended)
    assert ended_at(state, "u1") == 10.2
    assert state.log[-1].text == "UDP u1 ended: 400 sent, 25 % lost"
    found = metrics_of(summarise(state, "x"))
    assert found["udp.u1.loss"] == 0.25
    assert found["udp.u1.tx_bps"] == 1_000_000
    assert found["udp.u1.rx_bps"] == 750_000
    assert found["udp.u1.jitter_ms"] == 1.5


def test_its_rate_is_drawn_while_it_sends_and_the_mean_of_what_arrives() -> None:
    one: dict[str, Any] = {"name": "u1", "src": "h1", "dst": "h2", "rate_bps": 1_000_000}
    first = Udp(**one, packet_bytes=1000, started=7.0, sent=400, received=100, duration_s=3.0)
    other = {**one, "name": "u2", "rate_bps": 2_000_000}
    second = Udp(**other, packet_bytes=1000, started=8.0)
    moments, sent, received = cross_traffic([first, second], 5.0, 12.0)
    assert moments == [2.0, 3.0, 5.0, 7.0]
    assert sent == [1_000_000, 3_000_000, 2_000_000]
    # The second has not ended, so nobody knows what arrived.
    assert received == [250_000, None, None]


def test_words() -> None:
    command = StartUdp(udp="u1", src="h1", dst="h2")
    assert command.describe() == "UDP u1 starts: 1 Mbit/s, h1 → h2"
    assert StopUdp(udp="u1").describe() == "UDP u1 stops"


def test_what_interfaces_counted_are_figures_too() -> None:
    state = LabState()
    assert summarise(state, "x").interfaces == []
    counts = {"sent": [7], "sent_bytes": [7000], "received": [5], "received_bytes": [500]}
    where = {"interface": ["r-eth1"], "node": ["r"], "link": ["r->h2"]}
    state.apply(InterfaceCounters(t=9.0, dropped=[2], lost=[None], **where, **counts))  # type: ignore[arg-type]
    result = summarise(state, "x")
    assert result.interfaces[0].node == "r"
    assert result.interfaces[0].lost is None
    assert metrics_of(result)["interfaces.r-eth1.dropped"] == 2


@pytest.mark.parametrize(
    ("rate_bps", "size", "duration_s", "last_s", "next_s"),
    [(1_000_000, 500, 1.0, 0.996, 1.0), (200_000, 200, 1.0, 0.992, 1.0), (8_000, 1000, 0.1, 0, 1)],
)
def test_a_sender_without_a_limit_is_stopped_between_two_packets(
    rate_bps: int, size: int, duration_s: float, last_s: float, next_s: float
) -> None:
    """Behind the last packet that is due, and before the one at the end of the duration."""
    command = StartUdp(rate_bps=rate_bps, packet_bytes=size)
    assert _sending_s(command, duration_s) == pytest.approx((last_s + next_s) / 2)
