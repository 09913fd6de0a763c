"""pfifo, tc-pfifo(8): first in, first out, with a limit in packets.

Source: ``pfifo_enqueue`` of net/sched/sch_fifo.c: a packet is appended while fewer than ``limit``
packets wait, else dropped.
"""

from __future__ import annotations

from ccplay.lab.disciplines.base import FirstInFirstOut


class PFIFO(FirstInFirstOut):
    """First in, first out; drops at the tail beyond a limit in packets."""
