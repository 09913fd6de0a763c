"""The peer of ``lab.py``: the same nodes and links in Mininet alone, up until stdin ends.

Prints ``up`` once the network is up. Runs in its own namespaces and imports nothing but Mininet,
because the import is part of the measured time.
"""

import sys

from mininet.net import Mininet


def main() -> None:
    # Mininet.init() would raise limits of the whole machine; this makes it return at once.
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
