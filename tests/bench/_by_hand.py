"""The peer of ``shaping.py``: HTB configured with tc(8) by hand, and iperf3 through it.

``python -m tests.bench._by_hand RATE SECONDS`` prints the goodput that iperf3's receiver reports,
in bits per second. Runs in its own namespaces: sender - router - receiver, with default offloads.
"""

import json
import subprocess
import sys
import time

from ccplay.lab.netns import Namespace
from tests.bench.probe import inside, make_node

WARM_UP_S = 2


def main() -> None:
    rate, seconds = int(sys.argv[1]), float(sys.argv[2])
    sender, router, receiver = (make_node(name) for name in "srd")
    cable(sender, router, 1)
    cable(router, receiver, 2)
    inside(router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
    limit = "100" if rate < 50_000_000 else "1000"
    for command in (
        "tc qdisc add dev b2 root handle 1: htb default 1",
        f"tc class add dev b2 parent 1: classid 1:1 htb rate {rate}bit quantum 1514",
        f"tc qdisc add dev b2 parent 1:1 handle 10: pfifo limit {limit}",
    ):
        inside(router, *command.split())
    with receiver.entered():
        subprocess.Popen(["iperf3", "-s", "-1", "-D"], stdout=subprocess.DEVNULL)
    time.sleep(0.3)
    client = ["iperf3", "-c", "10.0.2.2", "-C", "cubic", "-J", "-O", str(WARM_UP_S)]
    with sender.entered():
        result = subprocess.run(
            [*client, "-t", f"{seconds:.0f}"], check=True, stdout=subprocess.PIPE, text=True
        )
    print(json.loads(result.stdout)["end"]["sum_received"]["bits_per_second"])


def cable(one: Namespace, other: Namespace, number: int) -> None:
    """Link two nodes: ``10.0.NUMBER.1`` on ``b`` and ``.2`` on ``a``, with routes between hosts."""
    near, far = f"b{number}", f"a{number}"
    peer = f"type veth peer name {far} netns {other.pid}"
    inside(one, *f"ip link add {near} {peer}".split())
    for node, name, end in ((one, near, 1), (other, far, 2)):
        inside(node, *f"ip addr add 10.0.{number}.{end}/24 dev {name}".split())
        inside(node, *f"ip link set {name} up".split())
    host, gateway = (one, "10.0.1.2") if number == 1 else (other, "10.0.2.1")
    inside(host, *f"ip route add default via {gateway}".split())


if __name__ == "__main__":
    main()
