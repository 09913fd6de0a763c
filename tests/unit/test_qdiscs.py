"""Queue disciplines are translated between ccplay's options and the kernel's attributes."""

import pytest

from ccplay.errors import CommandError
from ccplay.lab.qdisc_options import decode, encode
from ccplay.lab.qdiscs import _IN_TICKS, _UNREPORTED, _as_asked, changed_options, validate
from ccplay.model.base import Option
from ccplay.model.disciplines import DISCIPLINES
from ccplay.model.qdiscs import KERNEL
from ccplay.model.quantities import check
from ccplay.model.values import LinkSetting, Qdisc

EXAMPLES: dict[str, dict[str, Option]] = {
    "pfifo": {"limit": 100},
    "bfifo": {"limit": 150_000},
    "pfifo_fast": {},
    "tbf": {
        "rate": 1_000_000, "burst": 15_000, "limit": 60_000, "peakrate": 2_000_000, "mtu": 1600,
    },
    "codel": {"limit": 500, "target": 5_000, "interval": 100_000, "ecn": True, "ce_threshold": 900},
    "fq_codel": {
        "limit": 10_240, "flows": 64, "quantum": 300, "memory_limit": 4_000_000, "target": 6_000,
        "interval": 90_000, "ecn": False, "ce_threshold": 2_000, "drop_batch": 8,
        "ce_threshold_selector": 1, "ce_threshold_mask": 3,
    },
    "cake": {
        "bandwidth": 8_000_000, "rtt": 50_000, "flow_mode": "dual-srchost",
        "diffserv_mode": "besteffort", "ack_filter": True, "ack_filter_aggressive": True,
        "memlimit": 4_000_000, "nat": False, "wash": True, "ingress": True,
        "autorate_ingress": False, "split_gso": False, "overhead": 18, "mpu": 64, "atm": "ptm",
        "fwmark": 255,
    },
    "sfq": {
        "limit": 64, "flows": 32, "quantum": 1514, "perturb": 10, "divisor": 512, "depth": 20,
        "headdrop": True, "redflowlimit": 60_000, "min": 4_000, "max": 15_000, "probability": 0.1,
        "avpkt": 900, "burst": 12, "ecn": True, "harddrop": True,
    },
    "choke": {
        "limit": 100, "bandwidth": 8_000_000, "min": 10, "max": 30, "ecn": True, "burst": 20,
        "probability": 0.05,
    },
    "red": {
        "limit": 150_000, "min": 12_500, "max": 37_500, "bandwidth": 10_000_000, "ecn": True,
        "adaptive": False, "burst": 30, "probability": 0.1, "avpkt": 900, "harddrop": True,
        "nodrop": True,
    },
    "sfb": {
        "limit": 500, "max": 30, "target": 22, "increment": 0.002, "decrement": 0.0002,
        "penalty_rate": 20, "penalty_burst": 40, "rehash": 300_000_000, "db": 30_000_000,
    },
    "pie": {
        "limit": 500, "target": 10_000, "alpha": 2, "beta": 20, "ecn": True, "tupdate": 20_000,
        "bytemode": True, "dq_rate_estimator": True,
    },
    "fq_pie": {
        "limit": 500, "flows": 64, "target": 10_000, "quantum": 300, "ecn": True, "alpha": 3,
        "beta": 18, "tupdate": 20_000, "memory_limit": 4_000_000, "bytemode": True,
        "dq_rate_estimator": True, "ecn_prob": 20,
    },
    "fq": {
        "limit": 500, "flow_limit": 50, "quantum": 3000, "ce_threshold": 2_000,
        "initial_quantum": 9000, "maxrate": 8_000_000, "pacing": False, "buckets": 256,
        "refill_delay": 60_000, "low_rate_threshold": 800_000, "orphan_mask": 255,
        "timer_slack": 50, "horizon": 5_000_000, "horizon_drop": False,
    },
    "hhf": {
        "limit": 500, "quantum": 3000, "hh_limit": 100, "reset_timeout": 80_000,
        "admit_bytes": 65_536, "evict_timeout": 2_000_000, "non_hh_weight": 3,
    },
    "prio": {"bands": 4, "priomap": "1 2 2 2 1 2 0 0 3 1 1 1 1 1 1 1"},
    "dualpi2": {
        "limit": 500, "target": 20_000, "tupdate": 20_000, "max_rtt": 80_000, "step_thresh": 800,
        "coupling_factor": 3, "classic_protection": 20, "memlimit": 4_000_000, "min_qlen_step": 2,
        "drop_on_overload": False, "drop_enqueue": True, "any_ect": True, "split_gso": False,
    },
}  # fmt: skip
"""Options of each kind of the kernel: a value for every parameter, none of them its default."""


def test_every_parameter_has_an_example() -> None:
    known = {each.kind: {p.name for p in each.of(KERNEL)} for each in DISCIPLINES.values()}
    kernels = {each.kind for each in DISCIPLINES.values() if each.in_kernel}
    assert {kind: set(said) for kind, said in EXAMPLES.items()} == {k: known[k] for k in kernels}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_options_survive_the_way_through_netlink(kind: str) -> None:
    """Encoded options decode to the requested ones, except for the kernel's rounding."""
    asked = validate(Qdisc(kind=kind, options=EXAMPLES[kind]))
    image, _ = encode(asked)
    held = decode(kind, image)
    lost = asked.options.keys() - held.keys()
    assert lost == set(_UNREPORTED.get(kind, ())) - {"probability"}
    for name, value in held.items():
        if not isinstance(value, bool | str):
            assert value == pytest.approx(asked.options[name], rel=0.001, abs=2e-5)
        else:
            assert value == asked.options[name]


@pytest.mark.parametrize(
    ("name", "held", "asked"),
    [
        ("limit", 90, 100),
        ("ecn", False, True),
        ("target", 5_200, 5_000),
        ("tupdate", 40_000, 15_000),
    ],
)
def test_a_value_that_the_kernel_did_not_take_is_an_error_that_names_it(
    name: str, held: Option, asked: Option
) -> None:
    with pytest.raises(CommandError, match=f"pie: {name}: the kernel changed"):
        _as_asked("pie", name, held, asked)


def test_rounding_is_no_error() -> None:
    """Values rounded to CoDel's 1.024 us or to a jiffy of 4 ms count as the requested ones."""
    assert _as_asked("codel", "target", 4_999, 5_000) == 5_000
    assert "tupdate" in _IN_TICKS
    assert _as_asked("pie", "tupdate", 16_000, 15_000) == 15_000
    assert _as_asked("sfb", "increment", 33 / 65535, 0.0005) == 0.0005


AS_TC: dict[str, tuple[dict[str, Option], str]] = {
    "red": (
        {"limit": 150_000, "min": 12_500, "max": 37_500, "bandwidth": 10_000_000},
        # struct tc_red_qopt, and the beginning of TCA_RED_STAB, the table for idle times.
        "14000100f04902 00d43000007c920000 04150e00 04010200 000000000000000000000000 01010101",
    ),
    "pie": (
        {"limit": 500, "target": 10_000, "alpha": 2, "beta": 20, "ecn": True},
        "08000200f4010000 0800010010270000 0800040002000000 0800050014000000 0800060001000000",
    ),
    "fq_pie": (
        {"limit": 500, "flows": 64, "target": 10_000, "quantum": 300, "ecn": True},
        "08000100f4010000 0800020040000000 0800030010270000 080007002c010000 08000a0001000000",
    ),
    "fq": (
        {"limit": 500, "flow_limit": 50, "quantum": 3000, "ce_threshold": 2_000},
        "08000100f4010000 0800020032000000 08000300b80b0000 08000c00d0070000",
    ),
}
"""Options by kind, with the attributes that iproute2's tc sends for them."""


@pytest.mark.parametrize("kind", AS_TC)
def test_our_own_encoders_send_what_tc_sends(kind: str) -> None:
    """The attributes are those of iproute2's tc, in any order."""
    options, sent = AS_TC[kind]
    ours, _ = encode(validate(Qdisc(kind=kind, options=options)))
    if kind == "red":
        assert ours.startswith(bytes.fromhex(sent))
        assert ours.endswith(bytes.fromhex("08000300 51b81e05"))  # 2 % of 2^32
    else:
        assert sorted(_split(ours)) == sorted(_split(bytes.fromhex(sent)))


def _split(attributes: bytes) -> list[bytes]:
    return [attributes[at : at + 8] for at in range(0, len(attributes), 8)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"min": 40_000}, "red: min must be smaller than max, 40000 is not smaller than 37500"),
        ({"max": 200_000}, "red: max must not be larger than the limit"),
    ],
)
def test_averages_that_do_not_fit_are_refused(options: dict[str, Option], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        validate(Qdisc(kind="red", options=options))


@pytest.mark.parametrize("rate", [7_999, 1_000_000_001])
def test_rates_out_of_range_are_refused(rate: int) -> None:
    with pytest.raises(CommandError, match="8 kbit/s to 1 Gbit/s"):
        check(LinkSetting(rate=rate), "link r->h2")


@pytest.mark.parametrize(
    ("kind", "before", "wanted", "request_"),
    [
        ("pfifo", {"limit": 100}, {"limit": 20}, {"limit": 20}),
        ("codel", {}, {"target": 2_000}, {"target": 2_000}),
        ("codel", {"target": 2_000, "ecn": True}, {}, {"target": 5_000, "ecn": False}),
        ("codel", {"ce_threshold": 1_000}, {}, None),
        ("fq_codel", {"flows": 64}, {"flows": 64, "limit": 50}, {"limit": 50}),
        ("fq_codel", {}, {"flows": 1024}, {}),
        ("fq_codel", {"flows": 64}, {}, None),
        ("fq_codel", {"flows": 64}, {"flows": 32}, None),
        ("cake", {"bandwidth": 5_000_000}, {}, None),
        ("sfq", {"limit": 60}, {"limit": 30}, None),
    ],
)
def test_a_queue_changes_in_place_only_where_all_that_is_asked_comes_true(
    kind: str,
    before: dict[str, Option],
    wanted: dict[str, Option],
    request_: dict[str, Option] | None,
) -> None:
    """An option that is left out returns to its default, in a new queue (None) if need be."""
    asked = changed_options(Qdisc(kind=kind, options=before), Qdisc(kind=kind, options=wanted))
    assert (asked.options if asked is not None else None) == request_


def test_another_kind_is_a_new_queue() -> None:
    assert changed_options(Qdisc(kind="codel"), Qdisc(kind="fq_codel")) is None
