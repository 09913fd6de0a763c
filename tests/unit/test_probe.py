"""The probe unpacks recorded answers of a kernel."""

import base64
import socket
import struct
import zlib

import pytest

from ccplay.lab.connection import Connection
from ccplay.lab.inet_diag import DiagSocket, columns
from ccplay.lab.qdisc_counters import Monotonic, QdiscCounters, QdiscSocket

TWO_CONNECTIONS = (
    "c-mXQ$iN`Nz{CKgz?ccd4^$VZhj8Hloeu&X?g;h^W&~S%DkB3c0|%JR!N3ouc^E|D2Cy-RF$4i=8Agb`4D72IAIL"
    "B>ILraE8&J){2mb$OV2~AJWDo?~1LFU$=K|8Ff#NVDKx`2B(3WtS2ciZH(A^Dk2TYG30~XKX0F1<{5+T+^257jkF"
    "eD`vF)Y9yKZ3->PbX6RTwq7Abt#M=WU~mxk3|9_13NTq@x_m5(<@bZEb#-"
    "g3psw+X%Rmu<i*btEb*f*AQDJS{B*fvH(QI$_<<P8z#zdyeEeJoVo@NQ8%O+HhsMMt_Q@yNk>ckiS{?;)nc!iA6!"
    "sU)*ztud6PEG=1Bft^5aSTQ1&p8M(xl8}ARB8O2@)4a-"
    "8kY%hmttjM0y;t;mJd=ILgqUnU9=@F0$i}BUa=%YA};$A|j6P=KB=V<A@U&M@6Z5`5-m`&P;)e"
)
"""Dump by Linux 6.18 of 10000 -> 5201 (cubic, 1000 bytes sent), 10001 -> 5201 (reno, 2000 bytes
sent) and their other ends."""

HTB_AND_PFIFO = (
    "c-"
    "ou7z`&rwz{J1^q(PVgiT)1+OhB3kD3X_7Sejaz%D@Wbfq(%6JA(*ZB?3q=Ff(8SIyl6!fh}0v#0+&A$W0(N2augn"
    "k_1*K0mOnp6<kQ_8Ng~-8D0Pt)5FbkaJpFl$Y%tLaRJGKw9K@8u-ljzQW)stHUI?(6r="
)
"""Dump by Linux 6.18 of interface 3: HTB ``1:`` and below it ``pfifo limit 100`` as ``10:``."""

DONE = struct.pack("=IHHIIi", 20, 3, 2, 1, 0, 0)
REFUSED = struct.pack("=IHHIIi", 36, 2, 0, 1, 0, -1) + bytes(16)


class Answers(socket.socket):
    """A netlink socket that returns the given answers in turn."""

    def __init__(self, *answers: bytes) -> None:
        super().__init__()
        self.answers = list(answers)

    def send(self, *_: object) -> int:
        return 0

    def recv(self, *_: object) -> bytes:
        return self.answers.pop(0)

    def setsockopt(self, *_: object) -> None:
        pass


def record(text: str) -> bytes:
    return zlib.decompress(base64.b85decode(text))


def dump(*answers: bytes, wanted: list[Connection]) -> list[Connection]:
    """Return the wanted connections found in one dump with these answers."""
    diag = DiagSocket(lambda *_: Answers(*answers))
    try:
        return diag.dump({each.key: each for each in wanted})
    finally:
        diag.close()


def test_connections_are_distinguished_by_their_ports() -> None:
    first, second = Connection("1", 10000, 5201), Connection("2", 10001, 5201)
    found = dump(record(TWO_CONNECTIONS), DONE, wanted=[first, second])
    assert {each.name: each.cc for each in found} == {"1": b"cubic", "2": b"reno"}
    fields = columns([first, second])
    assert fields["bytes_sent"] == [1000, 2000]
    # The SYN counts as one byte.
    assert fields["bytes_acked"] == [1001, 2001]
    assert fields["cwnd"] == [10, 10]
    assert fields["ssthresh"] == [0x7FFFFFFF] * 2
    assert fields["mss"] == [35328, 45568]
    assert first.field("bytes_sent") == 1000


def test_a_connection_that_nobody_wants_is_passed_over() -> None:
    wanted = Connection("1", 10001, 5201)
    assert dump(record(TWO_CONNECTIONS), DONE, wanted=[wanted]) == [wanted]


def test_a_later_socket_with_the_same_ports_is_not_the_same_connection() -> None:
    wanted = Connection("1", 10001, 5201)
    wanted.cookie = 77
    assert dump(record(TWO_CONNECTIONS), DONE, wanted=[wanted]) == []
    assert wanted.info == b""


def test_attributes_that_stand_elsewhere_are_found_again() -> None:
    """An answer with an additional attribute before tcp_info is read correctly."""
    plain = record(TWO_CONNECTIONS)
    length = struct.unpack_from("=I", plain)[0]
    shifted = struct.pack("=I", length + 8) + plain[4:88] + struct.pack("=HHI", 8, 15, 1)
    shifted += plain[88:length]
    sport, dport = struct.unpack_from("!HH", plain, 20)
    wanted = Connection("1", sport, dport)
    there = dump(plain, DONE, wanted=[Connection("1", sport, dport)])[0]
    # Both layouts in one answer, the unusual one first.
    assert dump(shifted + plain[length:], DONE, wanted=[wanted]) == [wanted]
    assert (wanted.info, wanted.cc) == (there.info, there.cc)


def test_a_refusal_is_an_error() -> None:
    with pytest.raises(PermissionError):
        dump(REFUSED, wanted=[])


def test_the_leaf_under_htb_is_what_is_read() -> None:
    kernel = QdiscSocket(lambda *_: Answers(record(HTB_AND_PFIFO), DONE))
    found = kernel.dump({3, 4})
    kernel.close()
    assert list(found) == [3]
    assert list(found[3]) == [0x10001]
    queue = found[3][0x10001]
    assert (queue.kind, queue.handle) == ("pfifo", 0x100000)
    assert (queue.qlen, queue.ecn_marks) == (0, None)


def attribute(kind: int, payload: bytes) -> bytes:
    return struct.pack("=HH", len(payload) + 4, kind) + payload + bytes(-len(payload) % 4)


TIN = ("bytes", "flows")
"""Values reported for each of cake's tins."""


def words(*numbers: int) -> bytes:
    return struct.pack(f"={len(numbers)}I", *numbers)


@pytest.mark.parametrize(
    ("kind", "xstats", "marks"),
    [
        # struct tc_codel_xstats: ecn_mark is its seventh word, ce_mark its ninth.
        ("codel", words(1514, 9, 9, 9, 9, 9, 40, 1, 2), 42),
        # struct tc_fq_codel_xstats: the type, then ecn_mark third and ce_mark seventh.
        ("fq_codel", words(0, 1514, 9, 40, 9, 9, 9, 2, 9, 9), 42),
        ("red", words(7, 8, 9, 42), 42),
        ("choke", words(7, 9, 9, 42, 8), 42),
        ("fq", words(*range(20), 42, 0), 42),
        ("fq_pie", words(9, 9, 9, 9, 42, 9, 6, 7, 8), 42),
        # The probability, in units of 1 / 2^64, is a quarter.
        ("pie", words(0, 1 << 30, 15, 9, 9, 9, 9, 9, 9, 42), 42),
        # struct tc_dualpi2_xstats: ecn_mark is seventh; the probability is in units of 1 / 2^32.
        ("dualpi2", words(1 << 30, 15, 1, 70, 80, 9, 42, 30, 0, 9, 9, 9), 42),
        # Two tins, each with its TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS.
        (
            "cake",
            attribute(
                0x8000 | 10,
                attribute(0x8001, attribute(2, words(9)) + attribute(8, words(40)))
                + attribute(0x8002, attribute(8, words(2)))
                # The backlog in bytes, the sparse and the bulk flows.
                + attribute(0x8003, b"".join(attribute(n, words(n)) for n in (11, 21, 22))),
            ),
            42,
        ),
        ("sfq", b"", None),
    ],
)
def test_marks_are_read_where_the_discipline_counts_them(
    kind: str, xstats: bytes, marks: int | None
) -> None:
    """Marks and own values are read at their places in include/uapi/linux/pkt_sched.h."""
    message = qdisc(kind, 0x100000, 0xFFFFFFFF, attribute(4, xstats))
    kernel = QdiscSocket(lambda *_: Answers(message, DONE))
    found = kernel.dump({3})[3][0xFFFFFFFF]
    kernel.close()
    assert found._replace(own={}) == QdiscCounters(
        0x100000, kind, 5000, 5, 4, 6000, 3, 2, 1, marks, {}
    )
    reported = {
        "codel": {"codel_count": 9, "codel_ldelay_us": 9, "codel_dropping": 1},
        "fq_codel": {"fq_codel_new_flows": 9, "fq_codel_old_flows": 9, "fq_codel_memory_bytes": 9},
        "red": {"red_early_packets": 7, "red_pdrop_packets": 8},
        "choke": {"choke_early_packets": 7, "choke_matched_packets": 8},
        "fq": {"fq_flows": 16, "fq_inactive_flows": 17, "fq_throttled_flows": 18},
        "fq_pie": {"fq_pie_new_flows": 6, "fq_pie_old_flows": 7, "fq_pie_memory_bytes": 8},
        "pie": {"pie_delay_us": 15, "pie_prob_1000000": 250_000},
        "dualpi2": {
            "dualpi2_classic_delay_us": 15,
            "dualpi2_l4s_delay_us": 1,
            "dualpi2_prob_1000000": 250_000,
        },
        "cake": {
            **{f"cake_{tin}_{what}": 0 for tin in ("bulk", "best_effort") for what in TIN},
            "cake_voice_bytes": 11,
            "cake_voice_flows": 43,
        },
    }
    assert found.own == reported.get(kind, {})


def qdisc(kind: str, handle: int, parent: int, xstats: bytes = b"") -> bytes:
    """Return the kernel's message about a queue discipline of interface 3."""
    stats = attribute(1, struct.pack("=QII", 5000, 5, 0)) + attribute(3, words(4, 6000, 3, 2, 1))
    return told(36, kind, handle, parent, stats + xstats)


def told(message: int, kind: str, handle: int, parent: int, stats: bytes) -> bytes:
    body = attribute(1, kind.encode() + b"\0") + attribute(7, stats)
    header = struct.pack("=IHHII", 36 + len(body), message, 2, 1, 0)
    return header + struct.pack("=IiIII", 0, 3, handle, parent, 0) + body


def htb_class(handle: int, lends: int, borrows: int) -> bytes:
    """Return the kernel's message about an HTB class of interface 3.

    ``struct tc_htb_xstats`` begins with lends and borrows.
    """
    return told(40, "htb", handle, 0x10001, attribute(4, words(lends, borrows, 0, 9, 9)))


def test_classes_have_what_htb_reports_of_them() -> None:
    root, one, two = (
        qdisc("htb", 0x10000, 0xFFFFFFFF),
        qdisc("pfifo", 0x100000, 0x10010),
        qdisc("pfifo", 0x110000, 0x10011),
    )
    classes = htb_class(0x10001, 7, 7) + htb_class(0x10010, 3, 2) + htb_class(0x10011, 9, 0)
    kernel = QdiscSocket(lambda *_: Answers(root + one + two, DONE, classes, DONE))
    found = kernel.dump({3})[3]
    kernel.close()
    assert {handle: queue.own for handle, queue in found.items()} == {
        0x10010: {"htb_lends_packets": 3, "htb_borrows_packets": 2},
        0x10011: {"htb_lends_packets": 9, "htb_borrows_packets": 0},
    }


def test_a_layout_is_learnt_again_where_a_discipline_changed() -> None:
    """Messages of equal length may be about another discipline, or at another place."""
    root, bulk, rest = (
        qdisc("htb", 0x10000, 0xFFFFFFFF),
        qdisc("pfifo", 0x100000, 0x10001),
        qdisc("bfifo", 0x110000, 0x10001),
    )
    other = qdisc("sfq", 0x120000, 0x10001)
    full = rest.replace(words(4, 6000, 3, 2, 1), words(5, 7000, 3, 2, 1))
    answers = (root + bulk, root + rest, root + full, other + root, root + other, root)
    kernel = QdiscSocket(lambda *_: Answers(*(each for one in answers for each in (one, DONE))))
    found = [kernel.dump({3})[3] for _ in answers]
    kernel.close()
    told = [[(each.kind, each.handle, each.qlen) for each in queues.values()] for queues in found]
    assert told == [
        [("pfifo", 0x100000, 4)],
        [("bfifo", 0x110000, 4)],
        [("bfifo", 0x110000, 5)],
        # The kernel lists a root first, so this queue is not below it.
        [("htb", 0x10000, 4)],
        [("sfq", 0x120000, 4)],
        [("htb", 0x10000, 4)],
    ]


def test_an_error_at_the_end_of_a_dump_is_no_known_layout() -> None:
    plain, failed = record(HTB_AND_PFIFO), struct.pack("=IHHIIi", 20, 3, 2, 1, 0, -1)
    kernel = QdiscSocket(lambda *_: Answers(plain, DONE, plain, failed))
    assert kernel.dump({3})
    with pytest.raises(PermissionError):
        kernel.dump({3})
    kernel.close()


def test_a_link_with_one_queue_is_asked_once() -> None:
    kernel = QdiscSocket(lambda *_: Answers(record(HTB_AND_PFIFO), DONE))
    assert kernel.dump({3})[3][0x10001].own == {}
    kernel.close()


def counters(handle: int, size: int, drops: int) -> QdiscCounters:
    return QdiscCounters(handle, "pfifo", size, size // 1000, 3, 3000, drops, 0, 0, None)


def test_counters_continue_where_a_discipline_is_replaced() -> None:
    monotonic = Monotonic()
    assert monotonic.add(counters(0x100000, 5000, 2))[:3] == (5000, 5, 2)
    assert monotonic.add(counters(0x110000, 0, 0))[:3] == (5000, 5, 2)
    assert monotonic.add(counters(0x110000, 1000, 1))[:3] == (6000, 6, 3)
    # Bytes that fall reveal a new discipline with the same handle.
    assert monotonic.add(counters(0x110000, 0, 0))[:3] == (6000, 6, 3)
