"""Plays a synthetic lab's stream in real time: ``python -m tests.bench._player FLOWS HZ SECONDS``.

A separate process writes the stream to stdout, so that the measured screen only reads and decodes
it, as from a real lab.
"""

import sys
import time

from ccplay.stream import wire
from tests.ui.synthetic import stream


def main() -> None:
    flows, hz, seconds = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    # All flows are running after 20 seconds.
    events = stream(
        flows=flows, pairs=min(flows, 8), hz=hz, seconds=seconds, apart_s=min(2.5, 19 / flows)
    )
    began = time.monotonic()
    out = sys.stdout.buffer
    for event in events:
        time.sleep(max(began + event.t - time.monotonic(), 0.0))
        try:
            out.write(wire.encode(event))
            out.flush()
        except BrokenPipeError:
            return
    sys.stdin.read()


if __name__ == "__main__":
    main()
