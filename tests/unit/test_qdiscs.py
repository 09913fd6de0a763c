"""Queue disciplines between our words and the kernel's attributes."""

from __future__ import annotations

import pytest
from pyroute2.netlink.rtnl import RTM_NEWQDISC
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from ccplay.disciplines import DISCIPLINES
from ccplay.errors import CommandError
from ccplay.lab.htb import check_rate
from ccplay.lab.qdiscs import changed, decode, encode, validate
from ccplay.lab.rtnl import traffic_control
from ccplay.model import Option, Qdisc

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
}


def test_every_discipline_has_an_example() -> None:
    assert EXAMPLES.keys() == DISCIPLINES.keys()


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
        if kind == "choke" and name == "bandwidth":
            continue  # the kernel gets a table made of it
        if isinstance(value, int) and not isinstance(value, bool):
            assert held[name] == pytest.approx(value, rel=0.001)
        else:
            assert held[name] == value


def test_an_option_misspelt_is_corrected() -> None:
    with pytest.raises(CommandError, match="'limt'; did you mean 'limit'"):
        validate(Qdisc(kind="pfifo", options={"limt": 3}))


@pytest.mark.parametrize("kind", ["red", "fq", "pie", "fq_pie"])
def test_known_disciplines_without_encoder_say_so(kind: str) -> None:
    with pytest.raises(CommandError, match="not among the disciplines"):
        validate(Qdisc(kind=kind))


def test_pfifo_holds_100_packets_by_default() -> None:
    assert validate(Qdisc(kind="pfifo")).options == {"limit": 100}


@pytest.mark.parametrize("rate", [99_999, 1_000_000_001])
def test_rates_out_of_range_are_refused(rate: int) -> None:
    with pytest.raises(CommandError, match="100 kbit/s to 1 Gbit/s"):
        check_rate(rate)


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
