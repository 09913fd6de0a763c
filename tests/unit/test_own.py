"""Algorithms' own values are read in the kernel's layout, and recorded and packed unchanged."""

import struct
from pathlib import Path

import pytest

from ccplay.bpf.libbpf import LoadError, names_in
from ccplay.cli import main
from ccplay.errors import WireError
from ccplay.lab.inet_diag import variable_columns
from ccplay.model import blocks
from ccplay.model.events import Ended
from ccplay.model.samples import Sweep
from ccplay.model.values import MOST_VARIABLES
from ccplay.model.variables import describe, variable
from ccplay.state.lab_state import LabState
from ccplay.stream import wire
from ccplay.traffic.flow import FlowStarted
from tests.events import PLAYGROUND, tcp
from tests.unit.test_probe import attribute

BBR = attribute(16, struct.pack("=IIIII", 1_250_000, 0, 20_100, 739, 512))
VEGAS = attribute(3, struct.pack("=IIII", 1, 7, 25_000, 20_000))
DCTCP = attribute(9, struct.pack("=HHIII", 1, 0, 512, 3, 9))


def test_bbr_vegas_and_dctcp_are_read_beside_flows_that_say_nothing() -> None:
    """A flow without an own value has None; BBR's bandwidth is converted from bytes/s to bit/s."""
    assert variable_columns([BBR, b"", VEGAS, BBR, DCTCP]) == {
        "bbr_bw_bps": [10_000_000, None, None, 10_000_000, None],
        "bbr_min_rtt_us": [20_100, None, None, 20_100, None],
        "bbr_pacing_gain": [739, None, None, 739, None],
        "bbr_cwnd_gain": [512, None, None, 512, None],
        "vegas_enabled": [None, None, 1, None, None],
        "vegas_rttcnt": [None, None, 7, None, None],
        "vegas_rtt_us": [None, None, 25_000, None, None],
        "vegas_minrtt_us": [None, None, 20_000, None, None],
        "dctcp_enabled": [None, None, None, None, 1],
        "dctcp_ce_state": [None, None, None, None, 0],
        "dctcp_alpha": [None, None, None, None, 512],
        "dctcp_ab_ecn": [None, None, None, None, 3],
        "dctcp_ab_tot": [None, None, None, None, 9],
    }


def test_a_bandwidth_above_32_bits_is_read_whole() -> None:
    fast = attribute(16, struct.pack("=IIIII", 5, 1, 1, 256, 512))
    assert variable_columns([fast])["bbr_bw_bps"] == [((1 << 32) + 5) * 8]


def test_what_has_not_been_measured_is_not_known() -> None:
    unmeasured = attribute(3, struct.pack("=IIII", 1, 0, 0x7FFFFFFF, 0x7FFFFFFF))
    assert variable_columns([unmeasured])["vegas_minrtt_us"] == [None]


def test_a_socket_between_getting_bbr_and_its_start_tells_no_gains() -> None:
    found = variable_columns([attribute(16, bytes(20))])
    for name in ("bbr_min_rtt_us", "bbr_pacing_gain", "bbr_cwnd_gain"):
        assert found[name] == [None]


@pytest.mark.parametrize(
    ("attributes", "bandwidth"),
    [
        (attribute(21, bytes(8)) + BBR, [10_000_000]),
        # Later versions of BBR append more fields.
        (attribute(16, BBR[4:] + bytes(8)), [10_000_000]),
        (attribute(16, BBR[4:16]), None),
        (attribute(21, bytes(8)), None),
        (b"\0\0\0\0\0", None),
    ],
)
def test_others_before_it_and_more_behind_it_are_passed_over(
    attributes: bytes, bandwidth: list[int] | None
) -> None:
    assert variable_columns([attributes]).get("bbr_bw_bps") == bandwidth


def sweep(t: float, own: dict[str, list[int | None]], *flows: str) -> Sweep:
    return Sweep(t=t, tcp=tcp(flows, cc="bbr"), own=own)


def started() -> LabState:
    state = LabState()
    for flow in ("1", "2"):
        state.apply(FlowStarted(t=0.0, flow=flow, src="s1", dst="d1", cc="bbr", port=5201))
    return state


SWEEPS = [
    sweep(1.0, {}, "1", "2"),
    sweep(1.1, {"bbr_bw_bps": [100, None]}, "1", "2"),
    sweep(1.2, {"bbr_bw_bps": [200, None]}, "1", "2"),
    sweep(1.3, {"bbr_bw_bps": [None, 50]}, "1", "2"),
    sweep(1.4, {}, "1", "2"),
]


def check(state: LabState) -> None:
    first, second = (state.flows[name].own["bbr_bw_bps"] for name in ("1", "2"))
    assert [first.at(tick) for tick in range(5)] == [None, 100, 200, None, None]
    assert [second.at(tick) for tick in range(5)] == [None, None, None, 50, None]


def test_variables_become_series_of_the_flows_that_have_them() -> None:
    state = started()
    for each in SWEEPS:
        state.apply(each)
    check(state)


def test_a_recording_keeps_them() -> None:
    """Sweeps with other variables begin another block; unpacked, the blocks give the same state."""
    assert not blocks.fits(SWEEPS[1], SWEEPS[:1])
    assert blocks.fits(SWEEPS[2], SWEEPS[1:2])
    state = started()
    for part in (SWEEPS[:1], SWEEPS[1:4], SWEEPS[4:]):
        state.apply(wire.decode_event(wire.encode(blocks.pack(part))))
    check(state)


def test_a_sweep_without_them_is_written_as_ever() -> None:
    assert b"own" not in wire.encode(SWEEPS[0])
    assert b"own" not in wire.encode(blocks.pack(SWEEPS[:1]))


MANY: dict[str, list[int | None]] = {f"v{n}": [1] for n in range(MOST_VARIABLES + 1)}


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        ({"bbr_bw_bps": [1, 2]}, "not one for each of 1"),
        (MANY, f"the limit is {MOST_VARIABLES}"),
        ({"Any Name": [1]}, "own"),
        ({"bbr_bw_bps": [-1]}, "own"),
    ],
)
def test_what_does_not_fit_or_is_too_much_is_refused(
    own: dict[str, list[int | None]], reason: str
) -> None:
    for event in (sweep(1.0, own, "1"), blocks.pack([sweep(1.0, own, "1")])):
        with pytest.raises(WireError, match=reason):
            wire.decode_event(wire.encode(event))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("bbr_bw_bps", 9_560_000, "bw 9.56 Mbit/s"),
        ("bbr_min_rtt_us", 20_140, "min rtt 20.1 ms"),
        ("bbr_pacing_gain", 320, "pacing gain 1.25"),
        ("dctcp_alpha", 512, "alpha 0.50"),
        ("vegas_rttcnt", 7, "rttcnt 7"),
        ("cubic_k_us", 2_714_000, "k 2714 ms"),
        ("cubic_w_max_segments", 87, "w max 87"),
        ("htcp_beta_1000", 625, "beta 0.62"),
        ("my_p_10", 7, "p 10 7"),
        ("my_1000", 7, "1000 7"),
        ("k", 7, "k 7"),
        ("us", 7, "us 7"),
    ],
)
def test_variables_are_written_with_scale_and_unit(name: str, value: float, said: str) -> None:
    assert describe(name, value) == said


@pytest.mark.parametrize(
    ("name", "peak", "drawn"),
    [
        ("bbr_bw_bps", 9e6, ("Mbit/s", 1e-6)),
        ("bbr_bw_bps", 9e5, ("kbit/s", 1e-3)),
        ("bbr_min_rtt_us", 2e4, ("ms", 1e-3)),
        ("cubic_w_max_segments", 87, ("segments", 1)),
        ("bbr_cwnd_gain", 739, ("", 1 / 256)),
        ("yeah_slow_rounds", 9, ("", 1)),
    ],
)
def test_the_unit_of_a_plot_follows_from_the_name(
    name: str, peak: float, drawn: tuple[str, float]
) -> None:
    assert variable(name).axis(peak) == drawn


def test_they_are_exported_a_row_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.ccplay"
    said = PLAYGROUND.read_bytes().splitlines(keepends=True)
    last = max(wire.decode_event(line).t for line in said)
    start = FlowStarted(t=last, flow="o", src="s1", dst="d1", cc="bbr", port=5201)
    told = [
        sweep(last + 0.5, {"bbr_pacing_gain": [320], "my_gain_1000": [625]}, "o"),
        sweep(last + 0.6, {"bbr_pacing_gain": [None], "my_gain_1000": [1000]}, "o"),
    ]
    kept = [line for line in said if not isinstance(wire.decode_event(line), Ended)]
    added = [wire.encode(start), wire.encode(blocks.pack(told))]
    path.write_bytes(b"".join([*kept, *added]))
    assert main(["export", str(path), "--table", "variables"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split(",")[-4:] == ["flow", "cc", "variable", "value"]
    assert [row.split(",")[-4:] for row in rows] == [
        ["o", "bbr", "bbr_pacing_gain", "1.25"],
        ["o", "bbr", "my_gain", "0.625"],
        ["o", "bbr", "my_gain", "1.0"],
    ]


def test_a_flow_has_no_more_than_so_many_over_its_life() -> None:
    """A recording that names other variables in every sweep cannot fill the memory."""
    state = started()
    for n in range(MOST_VARIABLES + 5):
        state.apply(sweep(float(n), {f"v{n}": [1]}, "1"))
    assert len(state.flows["1"].own) == MOST_VARIABLES


def image(names: str) -> bytes:
    return b"\x7fELF...\0ccplay.shown:" + names.encode() + b"\0more"


def test_a_file_names_the_values_it_shows() -> None:
    assert names_in(image("cubic_w_max cubic_k_us")) == ["cubic_w_max", "cubic_k_us"]
    assert names_in(b"\x7fELF") == []


@pytest.mark.parametrize("names", ["W_max", "a a", "a b c d e f g h i", "a-b", "1st"])
def test_names_that_no_recording_could_keep_are_refused(names: str) -> None:
    with pytest.raises(LoadError, match="SHOWN takes up to eight"):
        names_in(image(names))
