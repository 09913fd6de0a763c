"""The peer of ``lab.py``: the same nodes and links by Mininet alone, up until stdin ends.

Prints ``up`` when the network stands, and then the seconds that Mininet's ``stop`` took. Runs in
namespaces of its own and imports nothing but Mininet, for its import is a part of the figure.
"""

from __future__ import annotations

import sys

from mininet.net import Mininet


def main() -> None:
    # Mininet.init() would raise limits of the whole machine.
    Mininet.inited = True
    net = Mininet(controller=None, build=False)
    for cable in sys.argv[1:]:
        ends = cable.split("-")
        for name in ends:
            if name not in net:
                net.addHost(name)
        net.addLink(*ends)
    net.build()
    net.start()
    print("up", flush=True)
    sys.stdin.read()
    net.stop()


if __name__ == "__main__":
    main()
