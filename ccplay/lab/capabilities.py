"""Finds by trial which features of this kernel and machine a lab can use, and why others can't be.

Runs in the lab's own network namespace, before it carries traffic.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

from ccplay.assets import SUFFIX, find_tool, kernel_modules, module_remedy
from ccplay.bpf.loaded import library, offers
from ccplay.bpf.support import feature, is_root, lack
from ccplay.lab import captures as capture_tools
from ccplay.lab import htb, qdiscs, software
from ccplay.lab.delay import try_delay_line, try_netem
from ccplay.lab.egress import lack_of_marking
from ccplay.lab.tracing import PROBE, STATE_SET, lack_of
from ccplay.lab.traffic import congestion
from ccplay.lab.traffic import path_manager as mptcp
from ccplay.model.algorithms import CATALOGUE
from ccplay.model.disciplines import DISCIPLINES, MOST_RATE, custom, is_software
from ccplay.model.disciplines import SUFFIX as PY
from ccplay.model.values import Capabilities, Feature, install_line
from ccplay.traffic import TRAFFIC
from ccplay.traffic.base import Tool
from ccplay.units import format_rate

_TOOLS = (
    *(tool for kind in TRAFFIC for tool in kind.tools),
    Tool("mnexec", "mininet", "starts Mininet's nodes"),
    Tool("nsenter", "util-linux", "starts programs in a node"),
    Tool("unshare", "util-linux", "starts labs"),
    Tool(
        "iptables-legacy",
        "iptables",
        "directs packets to the delay line and our disciplines",
        required=False,
    ),
)

_IN_SOFTWARE = f"in software, up to {format_rate(MOST_RATE)}"
_FILTER = "directs traffic into classes that share a link's rate"
_MARKER = "marks packets of ECN flows above a queue's threshold (links.NAME.mark)"
_MONITOR = "one-way delay and loss of a flow's packets (its monitor)"
_TRACEPOINTS = {
    PROBE: "cwnd, ssthresh and srtt of a flow at every ACK",
    STATE_SET: "the moment of each change of a flow's congestion state",
}


def discover() -> Capabilities:
    """Return the capabilities of this kernel and machine; this takes about ten milliseconds."""
    root = is_root()
    # Start these programs first: they run while the kernel is examined.
    version = _ask_iperf3()
    capture_tools.begin_trial()
    rules_trial = software.begin_rules_trial()
    engines = [try_netem(), try_delay_line()]
    return Capabilities(
        kernel=os.uname().release,
        privilege="root" if root else "rootless",
        congestion_controls=list(_congestion_controls(root=root)),
        qdiscs=list(_qdiscs(*software.rules_refusal(rules_trial, engines[-1]))),
        delay_engines=engines,
        tools=[*_tools(version), *_capture_programs()],
        # Tried on the lab's own loopback device.
        classifiers=[
            feature("u32", _FILTER, (htb.filter_refusal(), module_remedy("cls_u32", "NET_CLS_U32")))
        ],
        markers=[feature("threshold", _MARKER, lack_of_marking())],
        monitors=[feature("packets", _MONITOR, lack())],
        tracepoints=[feature(*each, lack_of(each[0])) for each in _TRACEPOINTS.items()],
        mptcp=[mptcp.connections()],
        schedulers=list(mptcp.schedulers()),
        cpus=len(os.sched_getaffinity(0)),
        python=sys.version.partition(" ")[0],
    )


def problems(capabilities: Capabilities) -> list[str]:
    """Return the problems that keep a lab from running, with their remedies; empty if none.

    One command installs all packages that are missing.
    """
    features = [
        *capabilities.congestion_controls,
        *capabilities.qdiscs,
        *capabilities.delay_engines,
        *capabilities.tools,
    ]
    missing = [each for each in features if each.required and not each.available]
    if not any(each.available for each in capabilities.delay_engines):
        missing += capabilities.delay_engines
    absent = [each for each in missing if each.packages]
    others = [
        f"{each.name}: {each.reason} ({each.remedy})" for each in missing if not each.packages
    ]
    if not absent:
        return others
    verb = "is" if len(absent) == 1 else "are"
    names = ", ".join(each.name for each in absent)
    return [f"{names} {verb} not installed: {install_line(absent)}", *others]


def _congestion_controls(*, root: bool) -> Iterator[Feature]:
    there, programs = congestion.available(), {each.name: each for each in offers()}
    # The user's own come first, because they were named in order to be chosen.
    yield from (programs.pop(name) for name in library.custom)
    for name in [*CATALOGUE, *(set(there) - set(CATALOGUE))]:
        known = CATALOGUE.get(name)
        summary = known.summary if known else "not part of Linux"
        # The kernel loads a module when a socket of root first requests its algorithm.
        if name in there or (root and f"tcp_{name}" in kernel_modules()):
            yield feature(name, summary, None)
        elif (program := programs.get(name + SUFFIX)) is not None and program.available:
            yield feature(name, f"{summary} ({program.name} takes its place)", None)
        else:
            remedy = congestion.remedy(name)
            remedy += f"; or, for {program.name}: {program.remedy}" if program else ""
            yield feature(name, summary, (congestion.absence(name), remedy))
    yield from programs.values()


def _qdiscs(reason: str, remedy: str) -> Iterator[Feature]:
    """Yield the features of the user's disciplines, the kernel's, and ccplay's in software.

    ``reason`` is why disciplines in software can't be used here; empty if they can.
    """
    # The user's own come first, because they were named in order to be chosen.
    for name, known in custom.items():
        yield feature(name, f"your own: {known.summary}", (reason, remedy))
    in_kernel = [each.kind for each in DISCIPLINES.values() if each.in_kernel]
    refusals = qdiscs.available(in_kernel)
    for name, known in DISCIPLINES.items():
        absence, summary = refusals.get(name, "ccplay's own only"), known.summary
        if absence and known.software and not reason:
            absence, summary = "", f"{_IN_SOFTWARE}: {summary}"
        elif absence and not known.in_kernel:
            absence = reason
        help_ = remedy
        if known.in_kernel:
            help_ = module_remedy(f"sch_{name}", f"NET_SCH_{name.upper()}")
        yield feature(name, summary, (absence, help_), required=name in ("pfifo", "bfifo"))
    for known in DISCIPLINES.values():
        if known.software:
            own = f"{known.kind}{PY}"
            yield feature(own, f"{_IN_SOFTWARE}: {known.summary}", (reason, remedy))


def has_software(capabilities: Capabilities) -> bool:
    """Return whether disciplines in software can be used here."""
    return any(each.available and is_software(each.name) for each in capabilities.qdiscs)


def _tools(iperf3: subprocess.Popen[str] | None) -> Iterator[Feature]:
    for tool in _TOOLS:
        reason = "" if find_tool(tool.name) else "not installed"
        summary = tool.purpose
        if iperf3 and tool.name == "iperf3":
            words = iperf3.communicate()[0].split()
            summary += f" ({words[1] if len(words) > 1 else 'unknown version'})"
        remedy = f"apt install {tool.package}" if reason else ""
        yield feature(tool.name, summary, (reason, remedy), required=tool.required)


def _capture_programs() -> Iterator[Feature]:
    for name, package in (("tcpdump", "tcpdump"), ("dumpcap", "wireshark-common")):
        path = find_tool(name)
        reason, remedy = "", ""
        if path is None:
            reason, remedy = "not installed", f"apt install {package}"
        elif name == "tcpdump" and (reason := capture_tools.tcpdump_refusal(path)):
            remedy = capture_tools.ROOTLESS_REMEDY
        summary = f"captures packets; one of the two is enough ({package})"
        yield feature(name, summary, (reason, remedy))


def _ask_iperf3() -> subprocess.Popen[str] | None:
    """Start ``iperf3 --version``; return None if it is not installed."""
    if (path := find_tool("iperf3")) is None:
        return None
    pipe = subprocess.PIPE
    return subprocess.Popen([path, "--version"], stdout=pipe, stderr=pipe, text=True)
