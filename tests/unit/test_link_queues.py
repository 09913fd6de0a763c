"""Rows of a link's queues: the sum first, counters that only grow."""

from ccplay.lab.qdisc_counters import LinkQueues, QdiscCounters


def queue(handle: int, packets: int, qlen: int = 0, *, marks: int | None = None) -> QdiscCounters:
    size = packets * 1000
    return QdiscCounters(handle, "pfifo", size, packets, qlen, qlen * 1000, 0, 0, 0, marks)


def test_one_queue_is_the_links_own_row() -> None:
    queues = LinkQueues("a->b")
    (row,) = queues.rows({0x10001: queue(0x100000, 5, 2)})
    assert row == ("a->b", "pfifo", 2000, 2, 0, None, 0, 0, 5000, 5)


def test_classes_have_rows_in_their_order_below_the_sum() -> None:
    queues = LinkQueues("a->b")
    queues.names = {0x10010: "bulk", 0x10011: "rest"}
    rows = queues.rows({0x10011: queue(0x110000, 3, 1), 0x10010: queue(0x100000, 5, 2, marks=4)})
    assert [row[:4] for row in rows] == [
        ("a->b", "htb", 3000, 3),
        ("a->b bulk", "pfifo", 2000, 2),
        ("a->b rest", "pfifo", 1000, 1),
    ]
    assert [row[5] for row in rows] == [4, 4, None]
    assert [row[-1] for row in rows] == [8, 5, 3]


def test_the_links_counters_continue_through_classes_and_back() -> None:
    queues = LinkQueues("a->b")
    queues.rows({0x10001: queue(0x100000, 10)})
    queues.names = {0x10010: "bulk", 0x10011: "rest"}
    # A class that nobody named yet is not counted.
    assert queues.rows({0x10012: queue(0x120000, 99)}) == []
    rows = queues.rows({0x10010: queue(0x110000, 2), 0x10011: queue(0x120000, 3)})
    assert [row[-1] for row in rows] == [15, 2, 3]
    queues.names = {}
    assert queues.rows({0x10001: queue(0x130000, 1)})[0][-1] == 16
    queues.names = {0x10010: "bulk"}
    rows = queues.rows({0x10010: queue(0x140000, 4)})
    assert [row[-1] for row in rows] == [20, 6]


def test_what_the_link_marks_itself_comes_on_top_of_its_disciplines_marks() -> None:
    queues = LinkQueues("a->b")
    queues.marks = lambda: 7
    assert queues.rows({0x10001: queue(0x100000, 5)})[0][5] == 7
    assert queues.rows({0x10001: queue(0x100000, 5, marks=4)})[0][5] == 11
    queues.names = {0x10010: "bulk"}
    rows = queues.rows({0x10010: queue(0x110000, 2)})
    assert [row[5] for row in rows] == [11, None]
