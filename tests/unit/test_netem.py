"""Delay, jitter and loss between our units and netem's."""

from __future__ import annotations

import struct

import pytest
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from ccplay.lab.delay.engines import Impairment
from ccplay.lab.delay.netem import netem_request, path_of


@pytest.mark.parametrize(
    "path",
    [
        Impairment(),
        Impairment(delay_us=10_000),
        Impairment(delay_us=20_001, jitter_us=5_000),
        Impairment(loss=0.02),
    ],
)
def test_a_path_survives_the_way_through_netlink(path: Impairment) -> None:
    request = netem_request(1, path, seed=2**63 + 5)
    request.encode()
    received = tcmsg(request.data)
    received.decode()
    options = received.get_attr("TCA_OPTIONS")
    assert path_of(options) == path
    # With a rate, netem keeps the order that jitter or a shorter delay would break.
    assert options.get_attr("TCA_NETEM_RATE") is not None
    # Attribute 14 of include/uapi/linux/pkt_sched.h.
    assert options.get_attr("TCA_NETEM_PRNG_SEED") == 2**63 + 5
    assert struct.pack("=HHQ", 12, 14, 2**63 + 5) in request.data
