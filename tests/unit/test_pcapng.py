"""pcap is read, and pcapng is written in the blocks of draft-ietf-opsawg-pcapng."""

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccplay.lab import capture_writer
from ccplay.lab.capture_writer import CapturedPacket, File, PcapStream

NANO, MICRO = 0xA1B23C4D, 0xA1B2C3D4


def pcap(*packets: tuple[int, int, bytes, int], magic: int = NANO, order: str = "<") -> bytes:
    head = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 128, 1)
    return head + b"".join(
        struct.pack(f"{order}IIII", seconds, fraction, len(data), length) + data
        for seconds, fraction, data, length in packets
    )


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "unit"), [(NANO, 1), (MICRO, 1000)])
def test_times_are_nanoseconds_whatever_the_stream_counts_in(
    order: str, magic: int, unit: int
) -> None:
    stream = PcapStream()
    (found,) = stream.feed(pcap((7, 5, b"abc", 60), magic=magic, order=order))
    assert found == CapturedPacket(7_000_000_000 + 5 * unit, b"abc", 60)
    assert stream.link_type == 1


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(1, 60))
def test_a_stream_may_come_in_pieces_of_any_size(payloads: list[bytes], step: int) -> None:
    whole = pcap(*((n, n, data, len(data) + n) for n, data in enumerate(payloads)))
    stream = PcapStream()
    found = [
        record for at in range(0, len(whole), step) for record in stream.feed(whole[at : at + step])
    ]
    assert [each.data for each in found] == payloads


@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 8))
def test_packets_come_in_the_order_of_their_times(times: list[int], step: int) -> None:
    """However the kernel hands them over: each waits longer than the others are late."""
    whole = pcap(*((0, each, bytes([n]), 60) for n, each in enumerate(times)))
    output, end = os.pipe()
    found = capture_writer.in_order(output, PcapStream(), 20.0)
    batches = []
    for at in range(0, len(whole), step * 17):
        os.write(end, whole[at : at + step * 17])
        batches.append(next(found))
    os.close(end)
    batches.extend(found)
    os.close(output)
    assert not any(batches[:-1])
    order = sorted(range(len(times)), key=times.__getitem__)
    assert [each.data[0] for each in batches[-1]] == order


def test_a_packet_waits_for_others_no_longer_than_it_may() -> None:
    output, end = os.pipe()
    found = capture_writer.in_order(output, PcapStream(), 0.01)
    os.write(end, pcap((1, 0, b"a", 60), (1, 10_000_001, b"b", 60), (1, 9_000_000, b"c", 60)))
    batches = [[each.data for each in next(found)] for _ in range(2)]
    assert batches == [[b"a"], [b"c", b"b"]]
    os.close(end)
    assert list(found) == [[]]
    os.close(output)


def test_what_is_no_pcap_is_refused() -> None:
    with pytest.raises(ValueError, match="not a pcap stream"):
        list(PcapStream().feed(bytes(24)))


def blocks(data: bytes) -> list[tuple[int, bytes]]:
    """Split data into blocks, as type and body; check the length at both ends of each block."""
    found = []
    while data:
        kind, length = struct.unpack_from("=II", data)
        assert length % 4 == 0
        assert data[length - 4 : length] == struct.pack("=I", length)
        found.append((kind, data[8 : length - 4]))
        data = data[length:]
    return found


@given(st.binary(max_size=130), st.integers(0, 2**62), st.booleans())
def test_a_packet_block_has_time_lengths_data_and_direction(
    data: bytes, nanoseconds: int, outbound: bool
) -> None:
    ((kind, body),) = blocks(
        capture_writer.packet(CapturedPacket(nanoseconds, data, 1514), outbound=outbound)
    )
    interface, high, low, captured, length = struct.unpack_from("=IIIII", body)
    assert (kind, interface, high << 32 | low) == (6, 0, nanoseconds)
    assert (captured, length) == (len(data), 1514)
    assert body[20 : 20 + captured] == data
    options = body[20 + (captured + 3 & ~3) :]
    # Option epb_flags; its lowest bits are 01 for inbound, 10 for outbound.
    assert struct.unpack("=HHIHH", options) == (2, 4, 2 if outbound else 1, 0, 0)


def test_a_file_begins_with_section_and_interface_and_ends_with_counts() -> None:
    head = capture_writer.section("ccplay", "Linux") + capture_writer.interface(
        "r-eth1", "r->h2", 1, 128
    )
    (section, what), (interface, where), (end, counts) = blocks(
        head + capture_writer.statistics(1 << 40, 12, 3)
    )
    assert (section, interface, end) == (0x0A0D0D0A, 1, 5)
    assert what[:4] == struct.pack("=I", 0x1A2B3C4D)
    assert struct.unpack_from("=HHI", where) == (1, 0, 128)
    # Option if_tsresol: nanoseconds.
    assert b"\x09\x00\x01\x00\x09\x00\x00\x00" in where
    assert struct.unpack_from("=III", counts) == (0, 1 << 8, 0)
    assert struct.pack("=HHQ", 4, 8, 12) + struct.pack("=HHQ", 5, 8, 3) in counts


def test_a_full_disk_leaves_complete_blocks_and_a_reason(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        file = File(full.fileno(), 1000)
        with pytest.MonkeyPatch.context() as patch:
            cut: list[int] = []
            patch.setattr("os.ftruncate", lambda _, size: cut.append(size))
            file.write(b"block")
    assert (file.error, file.size, cut) == ("No space left on device", 0, [0])
