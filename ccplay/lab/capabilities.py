"""What this kernel and machine offer to a lab, tried for real, and what they lack and why.

Runs in the lab's own network namespace, which carries nothing yet and may be experimented on.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from pyroute2.netlink.rtnl import RTM_DELLINK, RTM_DELQDISC, RTM_NEWLINK, RTM_NEWQDISC, TC_H_ROOT
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg

from ccplay.disciplines import DISCIPLINES
from ccplay.lab import congestion, qdiscs
from ccplay.lab.catalogue import CATALOGUE
from ccplay.lab.modules import module_file
from ccplay.lab.netem import divert_requests
from ccplay.lab.netns import Namespace
from ccplay.lab.nfqueue import PacketQueue
from ccplay.lab.qdiscs import LOOPBACK
from ccplay.lab.rtnl import CREATE, EXCLUSIVE, RouteSocket, message, traffic_control
from ccplay.model import Capabilities, Feature

_TOOLS = (
    # name, package of Debian and Ubuntu, what it is for, whether a lab can't run without
    ("iperf3", "iperf3", "makes long-lived flows", True),
    ("wget", "wget", "makes downloads", True),
    ("ping", "iputils-ping", "measures the RTT", True),
    ("mnexec", "mininet", "starts Mininet's nodes", True),
    ("nsenter", "util-linux", "starts programs in a node", True),
    ("unshare", "util-linux", "starts labs", True),
    ("iptables-legacy", "iptables", "leads packets into the delay line", False),
)

_INGRESS = 0xFFFFFFF1
_TRIAL_DEVICE = "trial"


def discover() -> Capabilities:
    """Find out what there is. Takes some ten milliseconds."""
    root = is_root()
    return Capabilities(
        kernel=os.uname().release,
        privilege="root" if root else "rootless",
        congestion_controls=list(_congestion_controls(root=root)),
        qdiscs=list(_qdiscs()),
        delay_engines=[_netem(), _delay_line()],
        tools=list(_tools()),
        cpus=len(os.sched_getaffinity(0)),
        python=platform.python_version(),
    )


def problems(capabilities: Capabilities) -> list[str]:
    """Say what keeps a lab from running, each with its remedy; an empty list where nothing does."""
    features = [
        *capabilities.congestion_controls,
        *capabilities.qdiscs,
        *capabilities.delay_engines,
        *capabilities.tools,
    ]
    missing = [each for each in features if each.required and not each.available]
    if not any(each.available for each in capabilities.delay_engines):
        missing += capabilities.delay_engines
    return [f"{each.name}: {each.reason} ({each.remedy})" for each in missing]


def is_root() -> bool:
    """Return whether we are root of the host, and not only of a user namespace."""
    mapping = Path("/proc/self/uid_map").read_text(encoding="ascii").split()
    return os.geteuid() == 0 and mapping[:2] == ["0", "0"] and int(mapping[2]) == 0xFFFFFFFF


def _congestion_controls(*, root: bool) -> Iterator[Feature]:
    there = congestion.available()
    for name in [*CATALOGUE, *(set(there) - set(CATALOGUE))]:
        known = CATALOGUE.get(name)
        summary = known.summary if known else "not one that comes with Linux"
        if name in there:
            yield Feature(name=name, available=True, summary=summary)
        elif module_file(f"tcp_{name}") is None:
            yield Feature(
                name=name,
                available=False,
                summary=summary,
                reason="not in this kernel",
                remedy=congestion.remedy(name),
            )
        elif root:
            # The kernel loads it when a socket first asks for it.
            yield Feature(name=name, available=True, summary=summary)
        else:
            yield Feature(
                name=name,
                available=False,
                summary=summary,
                reason="its module is not loaded",
                remedy=congestion.remedy(name),
            )


def _qdiscs() -> Iterator[Feature]:
    for name, reason in qdiscs.available(DISCIPLINES).items():
        yield Feature(
            name=name,
            available=not reason,
            summary=DISCIPLINES[name].summary,
            reason=reason,
            remedy=_qdisc_remedy(name) if reason else "",
            required=name in ("pfifo", "bfifo"),
        )


def _qdisc_remedy(kind: str) -> str:
    if module_file(f"sch_{kind}"):
        return f"as root: modprobe sch_{kind}"
    return f"a kernel with CONFIG_NET_SCH_{kind.upper()} has it"


# --- delay ----------------------------------------------------------------------------------


def _netem() -> Feature:
    """Try netem behind an ifb device, as the engine uses it."""
    reason, module = _netem_refusal()
    remedy = ""
    if reason:
        option = {"sch_netem": "NET_SCH_NETEM", "ifb": "IFB"}.get(module, "NET_ACT_MIRRED")
        remedy = f"a kernel with CONFIG_{option} has it"
        if module_file(module):
            remedy = f"as root: modprobe {module}"
    return Feature(
        name="netem",
        available=not reason,
        summary="the kernel's own delay, jitter and loss",
        reason=reason,
        remedy=remedy,
    )


def _netem_refusal() -> tuple[str, str]:
    """Return why netem can't be used, and the module that is missing; empty where it can be."""
    info = {"attrs": [["IFLA_INFO_KIND", "ifb"]]}
    device = (("IFLA_IFNAME", _TRIAL_DEVICE), ("IFLA_LINKINFO", info))
    with RouteSocket() as routes:
        trial = traffic_control(
            RTM_NEWQDISC, CREATE, LOOPBACK, (("TCA_KIND", "netem"),), parent=TC_H_ROOT
        )
        try:
            routes.request([trial], "netem")
        except OSError as error:
            # Without options netem is refused as invalid, but only where there is a netem.
            if error.errno == errno.ENOENT:
                return "not in this kernel", "sch_netem"
        try:
            routes.request([message(ifinfmsg, RTM_NEWLINK, CREATE | EXCLUSIVE, device)], "ifb")
        except OSError as error:
            return str(error), "ifb"
        index = Namespace("lab", os.getpid()).interface_index(_TRIAL_DEVICE)
        try:
            routes.request(divert_requests(LOOPBACK, index), "mirred")
        except OSError as error:
            return str(error), "act_mirred"
        finally:
            with contextlib.suppress(OSError):
                ingress = traffic_control(RTM_DELQDISC, 0, LOOPBACK, (), parent=_INGRESS)
                routes.request([ingress], "tidy")
            routes.request([message(ifinfmsg, RTM_DELLINK, index=index)], "tidy")
    return "", ""


def _delay_line() -> Feature:
    """Try to lead packets of the lab's own loopback device into a queue that we hold."""
    reason, remedy = "", ""
    try:
        PacketQueue(Namespace("lab", os.getpid()), 1).close()
    except OSError as error:
        reason = f"no nfnetlink_queue ({error.strerror})"
        remedy = "a kernel with CONFIG_NETFILTER_NETLINK_QUEUE has it"
        if module_file("nfnetlink_queue"):
            remedy = "as root: modprobe nfnetlink_queue"
    else:
        reason = _iptables_refusal()
        if reason:
            remedy = "apt install iptables; as root: modprobe xt_NFQUEUE iptable_raw iptable_mangle"
    return Feature(
        name="delay line",
        available=not reason,
        summary="ccplay's own: packets wait in a netfilter queue",
        reason=reason,
        remedy=remedy,
    )


def _iptables_refusal() -> str:
    """Return why no rule can lead packets into a queue, empty where one can."""
    program = find_tool("iptables-legacy")
    if program is None:
        return "iptables-legacy is not installed"
    refusal = ""
    for table in ("raw", "mangle"):
        rule = ["PREROUTING", "-i", "lo", "-j", "NFQUEUE", "--queue-num", "1", "--queue-bypass"]
        command = [program, "-w", "-t", table]
        trial = subprocess.run([*command, "-A", *rule], check=False, capture_output=True, text=True)
        if trial.returncode == 0:
            subprocess.run([*command, "-D", *rule], check=False, capture_output=True)
            return ""
        refusal = trial.stderr.strip().partition("\n")[0]
    return refusal


# --- programs -------------------------------------------------------------------------------


def find_tool(name: str) -> str | None:
    """Return where a program is; system directories count, on the PATH or not."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def _tools() -> Iterator[Feature]:
    for name, package, purpose, required in _TOOLS:
        path = find_tool(name)
        version = f" ({_iperf3_version(path)})" if path and name == "iperf3" else ""
        yield Feature(
            name=name,
            available=path is not None,
            summary=purpose + version,
            reason="" if path else "not installed",
            remedy="" if path else f"apt install {package}",
            required=required,
        )


def _iperf3_version(path: str) -> str:
    """Return the version that ``iperf3 --version`` says in its first line."""
    result = subprocess.run([path, "--version"], check=False, capture_output=True, text=True)
    words = result.stdout.split()
    return words[1] if len(words) > 1 else "unknown version"
