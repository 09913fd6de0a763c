"""The process that tries a user's discipline before it serves a link, each in a new process.

So one that ends its process or computes for ever does no harm to packets that wait. The lab forks
it before it has threads, so that a trial need not import anything. Its name is ``queue trial``.
"""

from __future__ import annotations

import ctypes
import signal
import sys

import msgspec

from ccplay.errors import CcplayError
from ccplay.lab.custom import trial
from ccplay.lab.software.messages import News, Order

NAME = b"queue trial"
"""Name of the process, which is its comm in proc(5)."""


def serve() -> None:
    """Try disciplines until stdin ends, or the parent does."""
    set_parent_death_signal, set_name = 1, 15
    libc = ctypes.CDLL(None)
    libc.prctl(set_parent_death_signal, signal.SIGKILL, 0, 0, 0)
    libc.prctl(set_name, NAME, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin.buffer:
        order = msgspec.json.decode(line, type=Order)
        failed = ""
        try:
            trial.rehearse(order.kind, order.source, order.options)
        except (CcplayError, OSError) as error:
            failed = str(error)
        news = News(queue=order.queue, do=order.do, failed=failed)
        sys.stdout.buffer.write(msgspec.json.encode(news) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    serve()
