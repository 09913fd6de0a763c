"""What the lab says of this machine is what the machine does, as root and rootless."""

import os
from pathlib import Path

import pytest

from ccplay.assets import algorithms
from ccplay.bpf.loaded import is_ours
from ccplay.model.algorithms import CATALOGUE
from ccplay.model.commands import Build
from ccplay.model.network import Topology
from tests.lab.conftest import running
from tests.lab.namespaced import call

CASES = "tests.lab.traffic_cases"

anyone = pytest.mark.parametrize("rootless", [False, True], ids=["root", "rootless"])


@anyone
def test_capabilities_name_everything_known_and_why_it_is_missing(rootless: bool) -> None:
    found, problems = call(f"{CASES}:survey", rootless=rootless)
    assert problems == []
    assert found["privilege"] == ("rootless" if rootless else "root")
    there = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    features = {each["name"]: each for each in found["congestion_controls"]}
    own = {name for name in there if not is_ours(name)}
    assert set(features) == set(CATALOGUE) | own | set(algorithms())
    assert all(features[name]["available"] for name in own)
    for section in ("congestion_controls", "qdiscs", "delay_engines", "tools"):
        for feature in found[section]:
            assert feature["summary"]
            assert feature["available"] != bool(feature.get("reason") and feature.get("remedy"))
    qdiscs = {each["name"]: each["available"] for each in found["qdiscs"]}
    assert qdiscs["pfifo"]
    assert qdiscs["bfifo"]


@anyone
def test_algorithms_switch_on_running_flows_and_on_hosts(rootless: bool) -> None:
    """Restricted ones too: the lab's root has the privilege for its own namespaces."""
    said = call(f"{CASES}:switch", "reno", "cubic", "bbr", rootless=rootless)
    assert said == ["reno", "cubic", "bbr", "bbr", "bbr"]


async def test_a_lab_runs_where_the_path_has_no_system_directories(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As for Debian's ordinary users; iptables is in one of the missing directories."""
    there = os.environ["PATH"].split(":")
    monkeypatch.setenv("PATH", ":".join(each for each in there if not each.endswith("sbin")))
    async with running(Build(topology=Topology(kind="linear"))) as lab:
        assert lab.state.links["r->h2"][-1].setting.delay_us == 10_000
