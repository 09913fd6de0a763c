"""``ccplay trace``: what it draws, makes and imports."""

import json
import struct
from pathlib import Path

import pytest
from msgspec.structs import replace

from ccplay.cli import main
from ccplay.model.moving import Trace, parse_trace
from ccplay.model.values import LinkSetting
from ccplay.model.wording import describe_link
from ccplay.trace import formats
from ccplay.trace.content import TraceError
from ccplay.trace.importing import read_measurement


def test_a_trace_is_drawn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["trace", "show", "starlink"]) == 0
    drawn = capsys.readouterr().out
    assert "capacity: mean" in drawn
    assert "one-way delay: mean" in drawn
    assert "300 s, then again" in drawn
    file = tmp_path / "my.up"
    file.write_text("10\n20\n")
    assert main(["trace", "show", str(file)]) == 0
    assert "capacity: mean 1.2 Mbit/s" in capsys.readouterr().out
    file.write_text("10\nx\n")
    assert main(["trace", "show", str(file)]) == 2
    assert "my.up:2: not a whole number" in capsys.readouterr().err


def test_what_is_made_can_be_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["trace", "make", "cell seed 2"]) == 0
    (tmp_path / "c.csv").write_text(capsys.readouterr().out)
    mean = formats.read(tmp_path / "c.csv").mean_bps
    assert main(["trace", "make", "cell seed 2", "--mahimahi"]) == 0
    (tmp_path / "c.up").write_text(capsys.readouterr().out)
    assert formats.read(tmp_path / "c.up").mean_bps == pytest.approx(mean, rel=0.01)
    assert main(["trace", "make", "sell"]) == 2
    assert main(["trace", "make", "policer"]) == 2


def test_iperf3_becomes_steps_of_the_rate(tmp_path: Path) -> None:
    sums = [
        {"start": at, "end": at + 1, "bits_per_second": 1e6 * (at + 1), "other": 1}
        for at in range(3)
    ]
    path = tmp_path / "flow.json"
    path.write_text(json.dumps({"intervals": [{"streams": [], "sum": each} for each in sums]}))
    rates = read_measurement(path).rates
    assert list(rates.times_us) == [0, 1_000_000, 2_000_000]
    assert list(rates.values) == [1e6, 2e6, 3e6]
    assert rates.period_us == 3_000_000


def test_a_capture_becomes_steps_of_100_ms(tmp_path: Path) -> None:
    path = tmp_path / "c.pcap"
    packets = [(0.01 * number + (0.001 if number else 0), 1250) for number in range(40)]
    with path.open("wb") as file:
        file.write(struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for moment, size in packets:
            file.write(struct.pack("=IIII", 100, round(moment * 1e6), 20, size) + bytes(20))
    assert list(read_measurement(path).rates.values) == pytest.approx([1e6] * 4)


@pytest.mark.parametrize(
    "content", [b"no", b"{}", b'{"intervals": []}', struct.pack("=II", 0x0A0D0D0A, 4)]
)
def test_what_is_no_measurement_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=r"^x: "):
        read_measurement(path)


def test_what_a_trace_replaces_is_not_shown() -> None:
    link = LinkSetting(rate=20_000_000, delay_us=20_000)
    assert describe_link(replace(link, trace=parse_trace("train"))) == "20 ms, trace train"
    only_delay = replace(link, trace=Trace(delay="path.owd"))
    assert describe_link(only_delay) == "20 Mbit/s, trace path.owd"
    moved = replace(link, trace=parse_trace("starlink"))
    assert describe_link(moved) == "trace starlink"
    policed = replace(link, trace=parse_trace("policer rate 5 Mbit/s"))
    assert describe_link(policed) == "20 Mbit/s, 20 ms, trace policer rate 5 Mbit/s"
