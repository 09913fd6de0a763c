"""A lab's stream at its own pace, made up: ``python -m tests.bench._player FLOWS SECONDS``.

Written to stdout by a process of its own, so that a screen which is measured reads and decodes as
it does with a lab, and does nothing else.
"""

from __future__ import annotations

import sys
import time

from ccplay.stream import wire
from tests.ui.synthetic import stream


def main() -> None:
    flows, seconds = int(sys.argv[1]), float(sys.argv[2])
    began = time.monotonic()
    out = sys.stdout.buffer
    for event in stream(flows=flows, pairs=min(flows, 8), seconds=seconds):
        time.sleep(max(began + event.t - time.monotonic(), 0.0))
        try:
            out.write(wire.encode(event))
            out.flush()
        except BrokenPipeError:
            return
    sys.stdin.read()


if __name__ == "__main__":
    main()
