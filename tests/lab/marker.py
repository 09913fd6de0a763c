"""A threshold marker in front of a queue: what DCTCP needs, on kernels without RED."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import psutil

from ccplay.lab.bpf.build import build

_SOURCE = """
#include "ccplay_cc.h"

extern void *bpf_cast_to_kern_ctx(void *) __attribute__((section(".ksyms")));
static long (*bpf_skb_ecn_set_ce)(struct __sk_buff *) = (void *)97;

SEC("tc") int mark(struct __sk_buff *skb)
{
	struct sk_buff *packet = bpf_cast_to_kern_ctx(skb);

	if (packet->dev->qdisc->q.qlen >= THRESHOLD)
		bpf_skb_ecn_set_ce(skb);
	return -1; /* TC_ACT_UNSPEC: on as ever */
}
"""


def mark_above(interface: str, threshold: int) -> None:
    """Mark packets with CE that meet so many in the queue of an interface of a lab of ours."""
    with tempfile.TemporaryDirectory() as folder:
        source, image = Path(folder) / "marker.bpf.c", Path(folder) / "marker.o"
        source.write_text(_SOURCE.replace("THRESHOLD", str(threshold)))
        image.write_bytes(build(source)[0])
        inside = ["nsenter", f"--net=/proc/{_process_with(interface)}/ns/net", "tc"]
        to = ["dev", interface]
        what = ["egress", "bpf", "da", "obj", str(image), "sec", "tc"]
        subprocess.run([*inside, "qdisc", "add", *to, "clsact"], check=True)
        subprocess.run([*inside, "filter", "add", *to, *what], check=True)


def _process_with(interface: str) -> int:
    """Find a process of ours in whose network namespace the interface is."""
    for process in psutil.Process().children(recursive=True):
        devices = Path(f"/proc/{process.pid}/net/dev").read_text()
        if any(line.strip().startswith(f"{interface}:") for line in devices.splitlines()):
            return process.pid
    raise AssertionError(f"no lab of ours has {interface}")
