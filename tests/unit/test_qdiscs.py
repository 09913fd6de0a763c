"""Queue disciplines between our words and the kernel's attributes."""

from __future__ import annotations

from typing import Any

import pytest
from pyroute2.netlink.rtnl import RTM_NEWQDISC
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from ccplay.errors import CommandError
from ccplay.lab.network.rtnl import traffic_control
from ccplay.lab.queues.qdiscs import changed, decode, encode, validate
from ccplay.model.base import Option
from ccplay.model.disciplines import DISCIPLINES
from ccplay.model.fields import check
from ccplay.model.values import LinkSetting, Qdisc

EXAMPLES: dict[str, dict[str, Option]] = {
    "pfifo": {"limit": 100},
    "bfifo": {"limit": 150_000},
    "tbf": {"rate": 1_000_000, "burst": 15_000, "limit": 60_000},
    "codel": {"limit": 500, "target": 5_000, "interval": 100_000, "ecn": True},
    "fq_codel": {"limit": 10_240, "flows": 64, "quantum": 300, "memory_limit": 4_000_000},
    "cake": {
        "bandwidth": 8_000_000,
        "rtt": 50_000,
        "flow_mode": "dual-srchost",
        "diffserv_mode": "besteffort",
        "ack_filter": True,
    },
    "sfq": {"limit": 64, "flows": 127, "quantum": 1514, "perturb": 10},
    "choke": {"limit": 100, "bandwidth": 8_000_000, "min": 10, "max": 30, "ecn": True},
    "red": {
        "limit": 150_000,
        "min": 12_500,
        "max": 37_500,
        "bandwidth": 10_000_000,
        "ecn": True,
        "adaptive": True,
    },
    "pie": {"limit": 500, "target": 10_000, "alpha": 2, "beta": 20, "ecn": True},
    "fq_pie": {"limit": 500, "flows": 64, "target": 10_000, "quantum": 300, "ecn": True},
    "fq": {"limit": 500, "flow_limit": 50, "quantum": 3000, "ce_threshold": 2_000},
}


def test_every_discipline_has_an_example() -> None:
    assert EXAMPLES.keys() == {each.kind for each in DISCIPLINES.values() if each.in_kernel}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_options_survive_the_way_through_netlink(kind: str) -> None:
    """What is encoded for the kernel decodes to what was asked, the kernel's rounding aside."""
    asked = validate(Qdisc(kind=kind, options=EXAMPLES[kind]))
    request = traffic_control(
        RTM_NEWQDISC, 0, 1, (("TCA_KIND", kind), ("TCA_OPTIONS", encode(asked)))
    )
    request.encode()
    received = tcmsg(request.data)
    received.decode()
    held = decode(kind, received.get_attr("TCA_OPTIONS"))
    for name, value in asked.options.items():
        if kind in ("choke", "red") and name == "bandwidth":
            continue  # the kernel gets a table made of it
        if isinstance(value, int) and not isinstance(value, bool):
            assert held[name] == pytest.approx(value, rel=0.001)
        else:
            assert held[name] == value


def test_an_option_misspelt_is_corrected() -> None:
    with pytest.raises(CommandError, match='"limt"; did you mean "limit"'):
        validate(Qdisc(kind="pfifo", options={"limt": 3}))


AS_TC: dict[str, tuple[dict[str, Option], str]] = {
    "red": (
        {"limit": 150_000, "min": 12_500, "max": 37_500, "bandwidth": 10_000_000},
        # struct tc_red_qopt, and the beginning of the table of what idle times count for.
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
"""Of what pyroute2 can't encode: options, and the attributes that iproute2's tc sends for them."""


@pytest.mark.parametrize("kind", AS_TC)
def test_our_own_encoders_send_what_tc_sends(kind: str) -> None:
    """Attribute by attribute, in whatever order."""
    options, sent = AS_TC[kind]
    wanted = validate(Qdisc(kind=kind, options=options))
    ours = _options(kind, encode(wanted))
    if kind == "red":
        assert ours.startswith(bytes.fromhex(sent))
        assert ours.endswith(bytes.fromhex("08000300 51b81e05"))  # 2 % of 2^32
    else:
        assert sorted(_split(ours)) == sorted(_split(bytes.fromhex(sent)))


def _options(kind: str, encoded: Any) -> bytes:
    request = traffic_control(RTM_NEWQDISC, 0, 1, (("TCA_KIND", kind), ("TCA_OPTIONS", encoded)))
    request.encode()
    # struct nlmsghdr, struct tcmsg, TCA_KIND with its padding, and the head of TCA_OPTIONS.
    return bytes(request.data)[16 + 20 + 4 + (len(kind) + 1 + 3) // 4 * 4 + 4 :]


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


def test_pfifo_holds_100_packets_by_default() -> None:
    assert validate(Qdisc(kind="pfifo")).options == {"limit": 100}


@pytest.mark.parametrize("rate", [99_999, 1_000_000_001])
def test_rates_out_of_range_are_refused(rate: int) -> None:
    with pytest.raises(CommandError, match="100 kbit/s to 1 Gbit/s"):
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
    """What is left out goes back to its default, and never stays by accident."""
    asked = changed(Qdisc(kind=kind, options=before), Qdisc(kind=kind, options=wanted))
    assert (asked.options if asked is not None else None) == request_


def test_another_kind_is_a_new_queue() -> None:
    assert changed(Qdisc(kind="codel"), Qdisc(kind="fq_codel")) is None
