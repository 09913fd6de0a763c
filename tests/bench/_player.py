"""A lab's stream at its own pace, made up: ``python -m tests.bench._player FLOWS HZ SECONDS``.

Written to stdout by a process of its own, so that a screen which is measured reads and decodes as
it does with a lab, and does nothing else.
"""

from __future__ import annotations

import sys
import time

from ccplay.stream import wire
from tests.ui.synthetic import stream


def main() -> None:
    flows, hz, seconds = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    # All of them run after 20 seconds.
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
