"""A queue in software is counted: in histograms, shared memory, rows of a sweep, and by flow."""

import socket
import struct
from functools import partial
from random import Random

import pytest

from ccplay.lab import software_shared
from ccplay.lab.htb import CLASS
from ccplay.lab.netfilter_queue import parse_header
from ccplay.lab.qdisc_counters import PASSAGE, Counts, LinkQueues, QdiscCounters, SoftwareReading
from ccplay.lab.software_shared import SLOTS, SharedCounters


def test_a_place_holds_what_its_bounds_say() -> None:
    last = 0
    for time_us in [*range(5000), *range(5000, 200_000_000, 99_991)]:
        place = software_shared.place(time_us)
        assert last <= place < software_shared.PLACES
        last = place
        low, high = software_shared.bounds(place)
        if place < software_shared.PLACES - 1:
            assert low <= time_us < high
            assert high - low <= max(1, low / 8)


def test_percentiles_are_as_exact_as_the_places() -> None:
    counts, draw = [0] * software_shared.PLACES, Random(3)
    times = sorted(int(draw.expovariate(1 / 5000)) for _ in range(20_000))
    for each in times:
        counts[software_shared.place(each)] += 1
    for share in (0.5, 0.95, 0.99):
        exact = times[int(share * len(times))]
        assert software_shared.percentile(counts, share) == pytest.approx(exact, rel=0.07)
    assert software_shared.percentile([0] * software_shared.PLACES, 0.5) is None


def test_a_slot_is_read_as_it_was_written() -> None:
    board = SharedCounters()
    counts = Counts(3, 4542, 7, 1, 1000, 1_514_000, 123_456_789, 1)
    board.slot(5).write(counts, [9, 8])
    # Another mapping of the same memory, as in a restarted process.
    slot = SharedCounters(board.descriptor).slot(5)
    assert slot.read(2) == (counts, [9, 8])
    slot.count_sojourn(5000)
    assert software_shared.percentile(board.slot(5).histogram(), 0.5) == pytest.approx(
        5000, rel=0.07
    )
    slot.clear()
    assert board.slot(5).read(0)[0] == Counts()
    with pytest.raises(IndexError):
        board.slot(SLOTS)


def kernel(size: int, backlog: int, handle: int = 1) -> QdiscCounters:
    return QdiscCounters(
        handle, "pfifo", size, size // 1000, backlog // 1000, backlog, 0, 0, 0, None
    )


def test_a_row_has_what_waits_in_both_and_what_has_left_the_link() -> None:
    """A row sums packets that wait in the kernel and in software, and counts what left the link.

    The kernel's queue drains while packets already wait in software.
    """
    queues = LinkQueues("r->h2")
    queues.rows({CLASS: kernel(50_000, 20_000)})
    counts = Counts(qlen=5, backlog=5000, drops=2, marks=1, packets=10, bytes=10_000)
    queues.software = lambda: SoftwareReading("codel.py", 1, counts, {"codel_count": 4})
    found = {CLASS: kernel(60_000, 10_000), PASSAGE: kernel(9_000, 1_000, 2)}
    ((link, kind, backlog, qlen, drops, marks, _, _, size, packets),) = queues.rows(found)
    assert (link, kind) == ("r->h2", "codel.py")
    assert (backlog, qlen, drops, marks) == (16_000, 16, 2, 1)
    assert (size, packets) == (69_000, 69)
    assert queues.own(found) == [{"codel_count": 4}]
    later = counts._replace(packets=30, sojourn_us=20 * 4_500)
    queues.software = lambda: SoftwareReading("codel.py", 1, later, {"codel_count": 5})
    queues.rows(found)
    assert queues.own(found) == [{"codel_count": 5, "queue_sojourn_us": 4_500}]


def test_counters_continue_when_the_kernel_takes_over_again() -> None:
    queues = LinkQueues("r->h2")
    counts = Counts(drops=7)
    queues.software = lambda: SoftwareReading("codel.py", 1, counts, {})
    queues.rows({CLASS: kernel(0, 0), PASSAGE: kernel(80_000, 0, 2)})
    queues.software = None
    (row,) = queues.rows({CLASS: kernel(5_000, 0)})
    assert row[1] == "pfifo"
    assert (row[4], row[8]) == (7, 85_000)
    # In software again, with counters that begin at 0.
    queues.software = lambda: SoftwareReading("pie.py", 2, Counts(drops=1), {})
    (row,) = queues.rows({CLASS: kernel(6_000, 0), PASSAGE: kernel(1_000, 0, 3)})
    assert (row[4], row[8]) == (8, 87_000)


def test_counters_continue_when_another_discipline_takes_over_in_software() -> None:
    """Nothing is counted twice after a swap of disciplines, or a FIFO in place of a failed one."""
    queues = LinkQueues("r->h2")
    found = {CLASS: kernel(5_000, 0), PASSAGE: kernel(80_000, 0, 2)}
    for kind, drops in (("mine.py", 7), ("pfifo", 7), ("mine.py", 8)):
        counts = Counts(drops=drops, marks=3)
        queues.software = partial(SoftwareReading, kind, 1, counts, {})
        (row,) = queues.rows(found)
        assert (row[1], row[4], row[5], row[8]) == (kind, drops, 3, 85_000)


def header(
    source: str, destination: str, protocol: int, rest: bytes, *, tos: int = 0, fragment: int = 0
) -> bytes:
    ends = socket.inet_aton(source) + socket.inet_aton(destination)
    fields = struct.pack("!BBHHHBBH", 0x45, tos, 20 + 1480, 7, fragment, 64, protocol, 0)
    return (fields + ends + rest).ljust(40, b"\0")


def flow(data: bytes) -> int:
    return parse_header(data, 0, 1).flow


def test_headers_report_what_a_packet_is() -> None:
    found = parse_header(b"xx" + header("10.0.0.1", "10.0.0.2", 6, b"\0\1\0\2", tos=0xB9), 2, 42)
    assert (found.number, found.length, found.ecn, found.dscp) == (42, 1514, 1, 46)
    assert found.source == 0x0A000001
    assert found.destination == 0x0A000002


def test_flows_are_distinguished_by_addresses_protocol_and_ports() -> None:
    ports = struct.pack("!HH", 1000, 2000)
    flows = [
        header("10.0.0.1", "10.0.0.2", 6, ports),
        header("10.0.0.1", "10.0.0.3", 6, ports),
        header("10.0.0.2", "10.0.0.1", 6, ports),
        header("10.0.0.1", "10.0.0.2", 17, ports),
        header("10.0.0.1", "10.0.0.2", 6, struct.pack("!HH", 1001, 2000)),
    ]
    assert len({flow(each) for each in flows}) == len(flows)


def test_a_ping_is_one_flow_and_so_are_fragments() -> None:
    """Packets of a ping are one flow by their identifier, and fragments of a packet are one flow.

    Checksum and sequence number differ in each packet of a ping.
    """
    echoes = [struct.pack("!BBHHH", 8, 0, checksum, 77, checksum) for checksum in (1, 2)]
    first, second = (flow(header("10.0.0.1", "10.0.0.2", 1, each)) for each in echoes)
    assert first == second
    assert first != flow(header("10.0.0.1", "10.0.0.2", 1, struct.pack("!BBHHH", 8, 0, 1, 78, 1)))
    pieces = [header("10.0.0.1", "10.0.0.2", 17, each, fragment=185) for each in (b"abcd", b"efgh")]
    assert flow(pieces[0]) == flow(pieces[1])
