"""Short flows inside the network: TCP transfers that arrive at random, each on its own connection.

Runs as a separate process in a host's namespace and imports nothing from ccplay: ``python
short_flows.py receive PORT``, or ``send`` and its options, see ``main``. Flow completion time is
from just before the SYN is sent until the receiver has read the last byte: both processes read the
machine's monotonic clock, and the receiver sends back its reading. The sender writes a line for
each event: ``started``, ``done BYTES MICROSECONDS PORT`` with the source port, or ``failed``.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import struct
import sys
import time
from collections.abc import Iterator

TAIL, REACH = 1.2, 1000
"""Shape of the bounded Pareto distribution of sizes, and ratio of its maximum to its minimum."""

MOST_UNDER_WAY = 500
"""Largest number of transfers at once; with more, the load exceeds the path, and soon the sockets
that a process may have."""

_BLOCK = bytes(1 << 16)
_MOMENT = struct.Struct("!Q")
"""Format of a moment: nanoseconds of the monotonic clock."""


def arrivals(load_bps: int, mean: int, sizes: str, seed: int) -> Iterator[tuple[float, int]]:
    """Yield the gap in seconds before each transfer and its bytes, the same for the same seed.

    Gaps are exponential; their mean is such that transfers of ``mean`` bytes produce ``load_bps``.
    """
    gaps, draws = random.Random(f"{seed} gaps"), random.Random(f"{seed} sizes")  # noqa: S311
    per_second = load_bps / 8 / mean
    # Ratio of the mean of a bounded Pareto distribution to its least value.
    over_least = TAIL / (TAIL - 1) * (1 - REACH ** (1 - TAIL)) / (1 - REACH**-TAIL)
    least = mean / over_least
    while True:
        size = float(mean)
        if sizes == "pareto":
            size = least * (1 - draws.random() * (1 - REACH**-TAIL)) ** (-1 / TAIL)
        yield gaps.expovariate(per_second), max(round(size), 1)


async def _receive(port: int) -> None:
    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.read(len(_BLOCK)):
                pass
            writer.write(_MOMENT.pack(time.monotonic_ns()))
            await writer.drain()
        except OSError:
            # The sender was stopped.
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(take, "0.0.0.0", port, backlog=MOST_UNDER_WAY)  # noqa: S104
    print("ready", flush=True)
    await server.serve_forever()


async def _transfer(address: tuple[str, int], cc: str, size: int) -> None:
    loop, port = asyncio.get_running_loop(), 0
    with socket.socket() as connection:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
        began = time.monotonic_ns()
        try:
            await loop.sock_connect(connection, address)
            port = connection.getsockname()[1]
            left = size
            while left > 0:
                await loop.sock_sendall(connection, _BLOCK[:left])
                left -= len(_BLOCK)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while len(answer) < _MOMENT.size and (
                part := await loop.sock_recv(connection, _MOMENT.size)
            ):
                answer += part
        except OSError:
            answer = b""
    if len(answer) == _MOMENT.size:
        print("done", size, (_MOMENT.unpack(answer)[0] - began) // 1000, port, flush=True)
    else:
        print("failed", flush=True)


async def _send(
    address: tuple[str, int], cc: str, drawn: Iterator[tuple[float, int]], last_s: float, most: int
) -> None:
    """Start transfers for ``last_s`` seconds, at most ``most``, and wait until they have ended."""
    under_way: set[asyncio.Task[None]] = set()
    # A start at a given moment holds the program here.
    os.sched_yield()
    began = time.monotonic()
    due = 0.0
    for number, (gap, size) in enumerate(drawn):
        due += gap
        if due > last_s or number >= most:
            break
        await asyncio.sleep(max(due - (time.monotonic() - began), 0.0))
        if len(under_way) >= MOST_UNDER_WAY:
            sys.exit(f"more than {MOST_UNDER_WAY} transfers at once: the load is too high")
        print("started", flush=True)
        task = asyncio.create_task(_transfer(address, cc, size))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    if under_way:
        await asyncio.wait(under_way)


def main() -> None:
    """Receive, or send: ADDRESS PORT CC LOAD-BPS MEAN SIZES SEED SECONDS COUNT; 0: no limit."""
    role, *words = sys.argv[1:]
    try:
        if role == "receive":
            asyncio.run(_receive(int(words[0])))
            return
        address, port, cc, load, mean, sizes, seed, seconds, count = words
        drawn = arrivals(int(load), int(mean), sizes, int(seed))
        limits = float(seconds) or float("inf"), int(count) or sys.maxsize
        asyncio.run(_send((address, int(port)), cc, drawn, *limits))
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
