"""Sweeps that were packed into a block say the same as before; a block that lies is refused."""

import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccplay.errors import WireError
from ccplay.model import blocks
from ccplay.model.base import Row
from ccplay.model.samples import Sweep, Sweeps, TcpRows
from ccplay.stream import wire
from tests.events import qdisc, tcp

COUNTS = st.one_of(
    st.none(), st.integers(min_value=0, max_value=3), st.integers(min_value=0, max_value=1 << 40)
)


def read(row: Row, sweeps: int) -> list[float | None]:
    (packed,) = blocks.floats([row], sweeps)
    return [None if each != each else each for each in struct.unpack(f"{sweeps}f", packed)]


def rounded(counts: Sequence[int | None]) -> list[float | None]:
    """Return what is left of counts in the single precision of a series."""
    return [
        None if each is None else struct.unpack("f", struct.pack("f", each))[0] for each in counts
    ]


@given(marks=st.lists(COUNTS, min_size=1, max_size=80))
def test_every_value_comes_back(marks: list[int | None]) -> None:
    sweeps = [
        Sweep(t=at / 50, qdisc=qdisc(kind="codel", ecn_marks=each)) for at, each in enumerate(marks)
    ]
    block = blocks.pack(sweeps)
    assert block.qdisc is not None
    (row,) = block.qdisc.fields["ecn_marks"]
    assert read(row, len(marks)) == rounded(marks)
    assert blocks.last(row) == marks[-1]
    assert wire.decode_event(wire.encode(block)) == block


@pytest.mark.parametrize(
    ("counts", "row"),
    [
        ([7] * 9, 7),
        ([10, 11, 9, 9], [10, 1, -2, 0]),
        ([0] * 9 + [3] * 9, {0: 0, 9: 3}),
        ([None, None, 5, 6], [None, None, 5, 1]),
        ([5, None, 6, 6], [5, None, 1, 0]),
    ],
)
def test_rows_are_what_the_format_says(counts: list[int | None], row: Row) -> None:
    sweeps = [
        Sweep(t=at / 50, qdisc=qdisc(kind="codel", ecn_marks=each))
        for at, each in enumerate(counts)
    ]
    block = blocks.pack(sweeps)
    assert block.qdisc is not None
    assert block.qdisc.fields["ecn_marks"] == [row]


@given(us=st.lists(st.integers(min_value=0, max_value=10**7), min_size=1, max_size=60))
def test_moments_come_back_to_the_microsecond(us: list[int]) -> None:
    moments = [sum(us[: at + 1]) / 1e6 for at in range(len(us))]
    assert blocks.moments(blocks.pack([Sweep(t=t) for t in moments])) == moments


def test_what_is_counted_in_full_is_exact_at_the_end() -> None:
    """A series has seven digits; the bytes that a flow has moved have more."""
    first, then = (tcp(bytes_acked=n) for n in (1_000_000_000_001, 1_000_000_001_449))
    block = blocks.pack([Sweep(t=0.0, tcp=first), Sweep(t=0.02, tcp=then)])
    assert block.tcp is not None
    assert blocks.last(block.tcp.fields["bytes_acked"][0]) == 1_000_000_001_449


@pytest.mark.parametrize(
    "other",
    [
        Sweep(t=1.0),
        Sweep(t=1.0, tcp=tcp(cc="bbr")),
        Sweep(t=1.0, tcp=tcp("2")),
        Sweep(t=1.0, tcp=tcp(), qdisc=qdisc()),
        Sweep(t=0.4, tcp=tcp()),
    ],
)
def test_a_sweep_of_another_kind_or_time_does_not_fit(other: Sweep) -> None:
    block = [Sweep(t=0.5, tcp=tcp())]
    assert blocks.fits(Sweep(t=0.5, tcp=tcp()), block)
    assert not blocks.fits(other, block)


def rows(**fields: list[Row]) -> Sweeps:
    named = TcpRows(flow=["1", "2"], cc=["reno", "reno"], fields=fields)
    return Sweeps(t=0.0, after_us=[1, 1], tcp=named)


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (rows(cwnd=[1]), "cwnd: not one for each of 2"),
        (rows(cwnd=[1, [1, 2]]), "cwnd: not a value for each of 3"),
        (rows(cwnd=[1, {}]), "cwnd: changes at"),
        (rows(cwnd=[1, {1: 1}]), "cwnd: changes at"),
        (rows(cwnd=[1, {0: 1, 3: 1}]), "cwnd: changes at"),
        (rows(cwnd=[1, {0: 1, 2: 1, 1: 1}]), "cwnd: changes at"),
        (Sweeps(t=0.0, after_us=[1] * blocks.LONGEST), "1001 sweeps"),
        (
            Sweeps(t=0.0, after_us=[], tcp=TcpRows(flow=["1", "1"], cc=["a", "b"], fields={})),
            "twice",
        ),
        (Sweeps(t=0.0, after_us=[], tcp=TcpRows(flow=["1"], cc=[], fields={})), "not one cc"),
        (Sweep(t=0.0, tcp=tcp(("1", "1"))), "twice"),
        (Sweep(t=0.0, tcp=tcp(cwnd=[1, 2])), "cwnd: not one"),
    ],
)
def test_what_does_not_fit_together_is_refused(block: Sweep | Sweeps, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        wire.decode_event(wire.encode(block))


@pytest.mark.parametrize("number", ["1e3", "-1", "1" * 20, '"1"', "true", "1.5", "1" * 4000])
def test_a_number_that_no_kernel_counts_is_refused(number: str) -> None:
    line = '{"event":"sweeps","t":1,"after_us":[],"qdisc":{"link":["l"],"kind":["k"],"fields":{'
    with pytest.raises(WireError):
        wire.decode_event(f'{line}"qlen":[{number}]}}}}}}\n'.encode())
