"""What ``ccplay doctor`` reports: what works, what is missing, and what cures it."""

import io
import os

import pytest
from msgspec.structs import replace
from rich.console import Console

from ccplay.assets import algorithms
from ccplay.doctor import Way, cures, show, ways
from ccplay.guest import boot
from ccplay.lab.capabilities import problems
from ccplay.model.algorithms import CATALOGUE
from ccplay.model.disciplines import DISCIPLINES
from ccplay.model.values import Capabilities, Feature
from ccplay.session import launch

PACKAGES = "apt install clang bpftool"
VEGAS = "a kernel with CONFIG_TCP_CONG_VEGAS has it; or, for vegas.bpf: "


def lacking(cc_remedy: str = VEGAS + PACKAGES, bpf_remedy: str = PACKAGES) -> Capabilities:
    """Return what a kernel without modules and a machine without clang have."""

    def no(name: str, remedy: str) -> Feature:
        return Feature(name, available=False, reason="gone", remedy=remedy)

    return Capabilities(
        kernel="6.1",
        privilege="root",
        congestion_controls=[
            *(Feature("reno", available=True), Feature("cubic", available=True)),
            *(no("vegas", cc_remedy), no("lp", "a kernel with CONFIG_TCP_CONG_LP has it")),
            *(no("cubic.bpf", bpf_remedy), no("vegas.bpf", bpf_remedy)),
        ],
        qdiscs=[
            *(Feature("pfifo", available=True), Feature("codel", available=True)),
            *(Feature("codel.py", available=True), no("hhf", "as root: modprobe sch_hhf")),
            no("sfb", "as root: modprobe sch_sfb"),
        ],
        delay_engines=[no("netem", "a kernel with it"), Feature("delay line", available=True)],
        tools=[Feature("tcpdump", available=True), no("dumpcap", "apt install wireshark")],
        markers=[no("threshold", bpf_remedy)],
        tracepoints=[no("tcp_probe", bpf_remedy), no("tcp_cong_state_set", bpf_remedy)],
    )


GUEST_LACK = "no guest is installed in /x: run make guest, or ccplay guest"


@pytest.mark.parametrize(
    ("guest", "possible", "kernel"),
    [
        ("", True, "ccplay --guest"),
        (GUEST_LACK, True, "ccplay guest, then ccplay --guest"),
        (GUEST_LACK, False, "another kernel"),
        (None, True, "another kernel"),
    ],
)
def test_each_group_of_what_is_missing_has_one_cure(
    guest: str | None, possible: bool, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a second engine or program does, too, is not missing."""
    monkeypatch.setattr(boot, "is_possible", lambda: possible)
    chain = [] if guest is None else [Way("root", "", ""), Way("guest", guest, "")]
    found = cures(lacking(), chain)
    assert found.pop(kernel) == (["a guest"] if guest and possible else []) + ["lp"]
    bpf = ["vegas", "cubic.bpf", "ECN marks in front of any queue", "traces of every ACK"]
    assert list(found.items()) == [
        (PACKAGES, bpf),
        ("as root: modprobe -a sch_hhf sch_sfb", ["hhf", "sfb"]),
    ]


def test_an_ordinary_user_learns_what_root_has(monkeypatch: pytest.MonkeyPatch) -> None:
    root = "start the lab as root"
    forbidden = "user.max_user_namespaces is 0 (remedy: sysctl user.max_user_namespaces=9, or sudo)"
    chain = [Way("root", "you are not root", ""), Way("rootless", forbidden, "")]
    found = cures(lacking(VEGAS + root, root), chain)
    assert found["as root: sysctl user.max_user_namespaces=9"] == ["labs without root"]
    assert found["sudo ccplay"][:3] == ["labs as root", "vegas", "cubic.bpf"]


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
def test_it_is_one_screen(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """With every algorithm and discipline of ccplay, most of them missing."""
    names = [*CATALOGUE, *(each for each in algorithms())]
    algorithm = [
        Feature(name, name in ("reno", "cubic"), remedy=VEGAS + PACKAGES) for name in names
    ]
    every = [*DISCIPLINES, *(f"{each}.py" for each in DISCIPLINES)]
    discipline = [Feature(name, available=True) for name in every]
    found = replace(lacking(), congestion_controls=algorithm, qdiscs=discipline)
    text = io.StringIO()
    show(found, [Way("guest", GUEST_LACK, "")], Console(file=text, width=size[0]))
    assert len(text.getvalue().splitlines()) < size[1]
    assert text.getvalue().count(PACKAGES) == 1


def test_the_chain_reports_what_each_way_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(launch, "rootless_refusal", lambda: "forbidden")
    monkeypatch.setattr(launch, "root_refusal", lambda: None)
    monkeypatch.setattr(boot, "lack", lambda: None)
    monkeypatch.setattr(boot, "cost", lambda: "costs little")
    root, rootless, guest, replay = ways()
    assert (root.lack, rootless.lack, guest.lack, replay.lack) == (
        *("you are not root", "forbidden"),
        *("", ""),
    )
    assert guest.gives.endswith("costs little")


def test_the_first_start_and_the_doctor_name_one_line_that_installs_what_a_lab_needs() -> None:
    def needed(name: str, package: str, *, there: bool = False) -> Feature:
        return Feature(
            name, there, reason="not installed", remedy=f"apt install {package}", required=True
        )

    tools = [
        *(needed("iperf3", "iperf3"), needed("ping", "iputils-ping")),
        *(needed("mnexec", "mininet"), needed("nsenter", "util-linux", there=True)),
        Feature("dumpcap", available=False, remedy="apt install wireshark-common"),
    ]
    engines = [Feature("delay line", available=False, remedy="apt install iptables")]
    here = replace(lacking(), tools=tools, delay_engines=engines)
    line = "apt install iperf3 iptables iputils-ping mininet"
    assert problems(here) == [f"iperf3, ping, mnexec, delay line are not installed: {line}"]
    first, *others = cures(here, []).items()
    assert first == (line, ["iperf3", "ping", "mnexec", "delay line"])
    assert not any("iperf3" in cure for cure, _ in others)
