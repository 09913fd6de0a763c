"""Firewall rules that lead a link's packets into a netfilter queue, and then past the link's rate.

They are in the table mangle, iptables-extensions(8). FORWARD and OUTPUT come before POSTROUTING, so
a packet sent on from the queue still passes the rules that act on its firewall mark: one sets CE,
the other leads packets that have waited already into a class without a rate. Packets that bypass
the queue because the process has died have no mark, and wait in the kernel's queue at the link's
rate.
"""

from __future__ import annotations

import subprocess

from ccplay.assets import find_tool
from ccplay.lab.network import firewall
from ccplay.lab.network.netns import Namespace
from ccplay.lab.queues.reading import PASSAGE
from ccplay.lab.software.serving import MARKED, PACED
from ccplay.model.values import Feature


def _lines(verb: str, interface: str, queue: int) -> str:
    major, minor = PASSAGE >> 16, PASSAGE & 0xFFFF
    waiting = f"-o {interface} -j NFQUEUE --queue-num {queue} --queue-bypass"
    leaving = f"POSTROUTING -o {interface} -m mark"
    rules = (
        f"{leaving} --mark {MARKED}/{MARKED} -j TOS --set-tos 0x03/0x03",
        f"{leaving} --mark {PACED}/{PACED} -j CLASSIFY --set-class {major:x}:{minor:x}",
        f"FORWARD {waiting}",
        f"OUTPUT {waiting}",
    )
    return "\n".join(["*mangle", *(f"{verb} {each}" for each in rules), "COMMIT", ""])


async def add(namespace: Namespace, interface: str, queue: int) -> None:
    """Lead packets that leave through an interface into a netfilter queue. Raises ``LabError``."""
    await firewall.restore(namespace, _lines("-A", interface, queue))


async def remove(namespace: Namespace, interface: str, queue: int) -> None:
    """Remove the rules of ``add``; waiting packets stay in the queue. Raises ``LabError``."""
    await firewall.restore(namespace, _lines("-D", interface, queue))


def begin_trial() -> subprocess.Popen[str] | None:
    """Start trying the rules on the lab's own loopback device; return None without iptables."""
    if find_tool(firewall.PROGRAM) is None:
        return None
    pipe = subprocess.PIPE
    trial = subprocess.Popen(firewall.argv(), stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert trial.stdin is not None  # noqa: S101 - it is a pipe
    trial.stdin.write(_lines("-A", "lo", 1) + _lines("-D", "lo", 1))
    trial.stdin.close()
    return trial


def refusal(trial: subprocess.Popen[str] | None, queues: Feature) -> tuple[str, str]:
    """Return why disciplines in software can't work here, and what to do; empty if they can.

    ``queues`` reports whether netfilter queues work, which the delay line needs too.
    """
    if trial is None:
        return "iptables-legacy is not installed", "apt install iptables"
    messages = trial.stderr.read() if trial.stderr is not None else ""
    code = trial.wait()
    if not queues.available:
        return queues.reason, queues.remedy
    if code:
        reason = messages.strip().partition("\n")[0]
        return reason, "as root: modprobe -a iptable_mangle xt_NFQUEUE xt_mark xt_DSCP xt_CLASSIFY"
    return "", ""
