"""Tries each delay engine on the lab's own loopback device."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess

from ccplay.assets import find_tool, module_file
from ccplay.lab.delay.client import TABLES, rule_argv
from ccplay.lab.delay.netem import divert_requests
from ccplay.lab.delay.redirects import CLSACT
from ccplay.lab.network.netlink import (
    RTM_DELLINK,
    RTM_DELQDISC,
    RTM_NEWLINK,
    RTM_NEWQDISC,
    TC_H_ROOT,
    ifinfmsg,
)
from ccplay.lab.network.netns import Namespace
from ccplay.lab.network.rtnl import CREATE, EXCLUSIVE, RouteSocket, message, traffic_control
from ccplay.lab.packets.nfqueue import PacketQueue
from ccplay.lab.queues.qdiscs import LOOPBACK
from ccplay.model.values import Feature

_TRIAL_DEVICE = "trial"


def try_netem() -> Feature:
    """Try netem and redirection to an ifb device, which the engine combines."""
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
    """Return why netem can't be used, and the missing module; empty if it can."""
    info = {"attrs": [["IFLA_INFO_KIND", "ifb"]]}
    device = (("IFLA_IFNAME", _TRIAL_DEVICE), ("IFLA_LINKINFO", info))
    with RouteSocket() as routes:
        trial = traffic_control(
            RTM_NEWQDISC, CREATE, LOOPBACK, (("TCA_KIND", "netem"),), parent=TC_H_ROOT
        )
        try:
            routes.request([trial], "netem")
        except OSError as error:
            # A kernel with netem refuses it without options, too, but as invalid.
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
                ingress = traffic_control(RTM_DELQDISC, 0, LOOPBACK, (), parent=CLSACT)
                routes.request([ingress], "tidy")
            routes.request([message(ifinfmsg, RTM_DELLINK, index=index)], "tidy")
    return "", ""


def try_delay_line() -> Feature:
    """Try to direct packets of the lab's own loopback device into a queue."""
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
            remedy = "as root: modprobe -a xt_NFQUEUE iptable_raw iptable_mangle"
            if find_tool("iptables-legacy") is None:
                remedy = "apt install iptables"
    return Feature(
        name="delay line",
        available=not reason,
        summary="ccplay's own: packets wait in a netfilter queue",
        reason=reason,
        remedy=remedy,
    )


def _iptables_refusal() -> str:
    """Return why no rule can direct packets into a queue; empty if one can."""
    if find_tool("iptables-legacy") is None:
        return "iptables-legacy is not installed"
    refusal = ""
    for table in TABLES:
        make, delete = (rule_argv(verb, table, "lo", "1") for verb in ("-A", "-D"))
        trial = subprocess.run(make, check=False, capture_output=True, text=True)
        if trial.returncode == 0:
            subprocess.run(delete, check=False, capture_output=True)
            return ""
        refusal = trial.stderr.strip().partition("\n")[0]
    return refusal
