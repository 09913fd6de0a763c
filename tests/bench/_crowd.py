"""Spectators without screens, in a process of their own: ``_crowd SOCKET NUMBER STILL SECONDS``.

Prints as JSON what those who read received, and how long after its last sweep each line came.
"""

from __future__ import annotations

import json
import selectors
import sys
import time
from pathlib import Path
from socket import socket

from ccplay.model.events import Hello
from ccplay.model.samples import Sweeps
from ccplay.share import frames, places
from ccplay.stream import wire


def main(path: Path, number: int, still: int, seconds: float) -> None:
    selector = selectors.DefaultSelector()
    frozen = [places.join(path, frames.Wants.WHOLE)[0] for _ in range(still)]
    for _ in range(number - still):
        connection, _ = places.join(path, frames.Wants.WHOLE)
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ, bytearray())
    began: float | None = None
    received, gaps = 0, 0
    delays: list[float] = []
    since = time.monotonic() + 2.0
    print("ready", flush=True)
    while (now := time.monotonic()) < since + seconds:
        for key, _ in selector.select(0.1):
            assert isinstance(key.fileobj, socket)
            data = key.fileobj.recv(1 << 20)
            arrived = time.time()
            counted = now > since
            received += len(data) * counted
            rest: bytearray = key.data
            *lines, last = (bytes(rest) + data).split(b"\n")
            rest[:] = last
            for line in lines:
                if line.startswith(frames.PREFIX):
                    gaps += isinstance(frames.decode(line), frames.Gap)
                elif began is None and line.startswith(b'{"event":"hello"'):
                    hello = wire.decode_event(line)
                    assert isinstance(hello, Hello)
                    began = hello.wall_time
                # One line of many is enough: this process has only a core, or less.
                elif counted and began is not None and key.fd % 10 == 0:
                    block = wire.decode_event(line)
                    if isinstance(block, Sweeps):
                        first, end = block.t, block.t + sum(block.after_us) / 1e6
                        delays += [arrived - began - first, arrived - began - end]
    reading = number - still
    delays.sort()
    found = {
        "bytes": received / seconds / max(reading, 1),
        "gaps": gaps,
        "p50": delays[len(delays) // 2] if delays else 0,
        "p95": delays[len(delays) * 95 // 100] if delays else 0,
    }
    print(json.dumps(found), flush=True)
    for each in frozen:
        each.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
