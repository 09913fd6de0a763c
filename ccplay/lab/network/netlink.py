"""The part of pyroute2 that labs use: encoders and decoders of netlink messages.

The whole package takes four times as long to import as these few modules. Message types that labs
never use (bonds, tunnels, classifiers other than u32) are left out, too.
"""

from __future__ import annotations

from ccplay.lab.network.import_stubs import bare_package, in_place_of, stand_ins

_RTNL = "pyroute2.netlink.rtnl"

_ACTIONS = ("bpf", "connmark", "skbedit", "vlan")
_CLASSIFIERS = ("basic", "flow", "fw", "matchall")
_DISCIPLINES = ("bpf", "drr", "hfsc", "plug")
_LINKS = (
    *("bond", "can", "geneve", "gtp", "ipoib", "ipvlan", "team", "tun", "tuntap"),
    *("vlan", "vrf", "vti", "vti6", "vxlan", "xfrm"),
)
_UNUSED = [
    *(f"{_RTNL}.tcmsg.act_{name}" for name in _ACTIONS),
    *(f"{_RTNL}.tcmsg.cls_{name}" for name in _CLASSIFIERS),
    *(f"{_RTNL}.tcmsg.sched_{name}" for name in _DISCIPLINES),
]

with in_place_of(bare_package("pyroute2")), in_place_of(stand_ins(_UNUSED)):
    from pyroute2.netlink import NLA_F_NESTED, nla, nlmsg

    # pyroute2's tables list these, but only its servers and interfaces use them.
    _processes = stand_ins(["multiprocessing"], Pipe=None, Process=None, Queue=None)
    _links = stand_ins(
        (f"{_RTNL}.ifinfmsg.plugins.{name}" for name in _LINKS), **dict.fromkeys(_LINKS, nla)
    )
    with in_place_of(_processes), in_place_of(_links):
        from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
    from pyroute2.netlink.rtnl import (
        RTM_DELLINK,
        RTM_DELQDISC,
        RTM_DELRULE,
        RTM_DELTCLASS,
        RTM_DELTFILTER,
        RTM_GETQDISC,
        RTM_GETROUTE,
        RTM_GETTCLASS,
        RTM_GETTFILTER,
        RTM_NEWADDR,
        RTM_NEWLINK,
        RTM_NEWNEIGH,
        RTM_NEWQDISC,
        RTM_NEWROUTE,
        RTM_NEWRULE,
        RTM_NEWTCLASS,
        RTM_NEWTFILTER,
        TC_H_ROOT,
    )
    from pyroute2.netlink.rtnl.fibmsg import fibmsg
    from pyroute2.netlink.rtnl.rtmsg import rtmsg
    from pyroute2.netlink.rtnl.tcmsg import (
        cls_u32,
        sched_htb,
        tcmsg,
    )
    from pyroute2.netlink.rtnl.tcmsg.common import (
        red_eval_ewma,
        red_eval_idle_damping,
        red_eval_P,
        tick_in_usec,
    )

__all__ = [
    "NLA_F_NESTED",
    "RTM_DELLINK",
    "RTM_DELQDISC",
    "RTM_DELRULE",
    "RTM_DELTCLASS",
    "RTM_DELTFILTER",
    "RTM_GETQDISC",
    "RTM_GETROUTE",
    "RTM_GETTCLASS",
    "RTM_GETTFILTER",
    "RTM_NEWADDR",
    "RTM_NEWLINK",
    "RTM_NEWNEIGH",
    "RTM_NEWQDISC",
    "RTM_NEWROUTE",
    "RTM_NEWRULE",
    "RTM_NEWTCLASS",
    "RTM_NEWTFILTER",
    "TC_H_ROOT",
    "cls_u32",
    "fibmsg",
    "ifinfmsg",
    "nla",
    "nlmsg",
    "red_eval_P",
    "red_eval_ewma",
    "red_eval_idle_damping",
    "rtmsg",
    "sched_htb",
    "tcmsg",
    "tick_in_usec",
]
