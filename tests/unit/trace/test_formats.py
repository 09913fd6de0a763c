"""Files of traces: what they mean, where they are refused, and that a hostile one is bounded."""

import os
from array import array
from pathlib import Path

import pytest

from ccplay.lab.traces import Traces
from ccplay.model.moving import (
    MODELS,
    SHIPPED,
    Trace,
    parse_trace,
    read_trace,
    show_trace,
    with_defaults,
    write_trace,
)
from ccplay.trace import delivery, formats, models
from ccplay.trace.content import Content, TraceError, digest_of, pack, unpack


def _file(folder: Path, text: str | bytes, name: str = "t.up") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_line_is_an_opportunity(tmp_path: Path) -> None:
    content = formats.read(_file(tmp_path, "0\n5\n5\n12\n"))
    assert list(content.opportunities) == [0, 5, 5, 12]
    assert content.period_ms == 12
    assert content.mean_bps == pytest.approx(4 * 1504 * 8 / 0.012)


def test_the_last_line_needs_no_end(tmp_path: Path) -> None:
    assert list(formats.read(_file(tmp_path, "1\n2")).opportunities) == [1, 2]


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        ("1\n\n2\n", 2, "empty line"),
        ("1\n2\n1\n", 3, "times decrease"),
        ("1\nx2\n", 2, "not a whole number"),
        ("1\n-2\n", 2, "not a whole number"),
        ("1\n2.5\n", 2, "not a whole number"),
        ("1\r\n2\r\n", 1, "not a whole number"),
        ("1\n99999999999999999999\n", 2, "not a whole number"),
        ("0\n0\n", 2, "no length"),
        ("", 1, "no opportunity"),
        ("1\n999999999\n", 2, "two days"),
    ],
)
def test_a_wrong_line_is_refused(tmp_path: Path, text: str, where: int, why: str) -> None:
    with pytest.raises(TraceError, match=rf"^t\.up:{where}: .*{why}"):
        formats.read(_file(tmp_path, text))


def test_the_line_is_right_in_later_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "_PIECE", 16)
    lines = [str(each) for each in range(1, 100)]
    with pytest.raises(TraceError, match=r"^t\.up:100: 7 comes after 99"):
        formats.read(_file(tmp_path, "\n".join([*lines, "7"]) + "\n"))
    with pytest.raises(TraceError, match=r"^t\.up:100: not a whole"):
        formats.read(_file(tmp_path, "\n".join([*lines, "z"]) + "\n"))


def test_the_text_of_a_wrong_file_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(TraceError) as caught:
        formats.read(_file(tmp_path, "root:x:secret\n"))
    assert "secret" not in str(caught.value)


def test_a_hostile_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TraceError, match="longer than 200 characters"):
        formats.read(_file(tmp_path, b"1" * (3 << 20)))
    monkeypatch.setattr(formats, "LARGEST_FILE", 1000)
    with pytest.raises(TraceError, match="larger than 1,000 bytes"):
        formats.read(_file(tmp_path, "1\n" * 2000))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(TraceError, match="not a regular file"):
        formats.read(pipe)
    with pytest.raises(TraceError, match="can't be read"):
        formats.read(tmp_path / "none")


def test_too_many_opportunities_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "MOST_ENTRIES", 100)
    with pytest.raises(TraceError, match="more than 100 opportunities"):
        formats.read(_file(tmp_path, "1\n" * 200))


def test_a_delay_holds_for_ten_milliseconds(tmp_path: Path) -> None:
    delays = formats.read_delays(_file(tmp_path, "25\n30.5\n"))
    assert list(delays.times_us) == [0, 10_000]
    assert list(delays.values) == [25_000.0, 30_500.0]
    assert delays.period_us == 20_000
    for text, line in (("25\n\n", 2), ("1\n2\n-3\n", 3), ("nan\n", 1), ("20000\n", 1)):
        with pytest.raises(TraceError, match=rf"^t\.up:{line}: "):
            formats.read_delays(_file(tmp_path, text))


_CSV = "# a remark\ntime_s,rate_bps,delay_us,loss\n0,1e6,20000,0\n0.5,2000000,30000,0.01\n"


def test_a_row_holds_until_the_next(tmp_path: Path) -> None:
    content = formats.read(_file(tmp_path, _CSV, "t.csv"))
    assert list(content.rates.times_us) == [0, 500_000]
    assert list(content.rates.values) == [1e6, 2e6]
    assert list(content.delays.values) == [20_000, 30_000]
    assert list(content.losses.values) == [0, 0.01]
    assert content.rates.period_us == 1_000_000
    assert content.mean_bps == 1.5e6


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        ("time_s,rate_bps\n0,1\n0,2\n", 3, "does not increase"),
        ("time_s,rate_bps\n0,1\n1,-2\n", 3, "rate_bps is not"),
        ("time_s,rate_bps\n0,1\n1,nan\n", 3, "rate_bps is not"),
        ("time_s,rate_bps\n0,1\n1\n", 3, "1 values, not 2"),
        ("time_s,rate_bps\n0,1\n\n", 3, "an empty line"),
        ("time_s,loss\n0,1.5\n", 2, "loss is not"),
        ("time_s,rate_bps\n0,0\n1,0\n", 3, "0 everywhere"),
        ("time_s,weight\n0,1\n", 1, "unknown column"),
        ("rate_bps\n1\n", 1, "must name its columns"),
        ("time_s,rate_bps\n", 1, "no rows"),
        ("time_s,rate_bps\n1e9,1\n", 2, "time_s is not"),
    ],
)
def test_a_wrong_row_is_refused(tmp_path: Path, text: str, where: int, why: str) -> None:
    with pytest.raises(TraceError, match=rf"^t\.csv:{where}: .*{why}"):
        formats.read(_file(tmp_path, text, "t.csv"))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    content = models.compute(Trace(model="starlink"))
    path = _file(tmp_path, "".join(formats.write_csv(content, ["of a model"])), "s.csv")
    again = formats.read(path)
    assert list(again.rates.values) == pytest.approx(list(content.rates.values), rel=1e-8)
    assert again.delays.values[0] == content.delays.values[0]
    cell = models.compute(Trace(name="lte-driving"))
    path = _file(tmp_path, "".join(formats.write_mahimahi(cell)))
    assert list(formats.read(path).opportunities) == list(cell.opportunities)


def test_parquet_has_the_same_columns(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "t.parquet"
    table = {"time_s": [0.0, 0.5], "rate_bps": [1_000_000, 2_000_000]}
    parquet.write_table(pyarrow.table(table), path)
    assert list(formats.read(path).rates.values) == [1e6, 2e6]
    parquet.write_table(pyarrow.table(table | {"rate_bps": [1, -1]}), path)
    with pytest.raises(TraceError, match="row 2: rate_bps is not"):
        formats.read(path)
    with pytest.raises(TraceError, match="not a Parquet file"):
        formats.read(_file(tmp_path, "no parquet", "u.parquet"))


def test_a_packed_content_is_read_without_copying() -> None:
    for trace in (Trace(name="lte-driving"), Trace(model="starlink"), Trace(model="policer")):
        content = models.compute(trace)
        again = unpack(pack(content))
        assert list(again.opportunities) == list(content.opportunities)
        assert list(again.rates.values) == list(content.rates.values)
        assert list(again.losses.times_us) == list(content.losses.times_us)
        assert (again.period_ms, again.policer) == (content.period_ms, content.policer)


def test_a_damaged_image_is_refused() -> None:
    image = pack(Content(array("I", [1, 2]), 2))
    for damaged in (b"", image[:30], b"x" + image[1:], image[:-8], image[:40] + b"\xff" * 16):
        with pytest.raises(TraceError, match="not a trace"):
            unpack(damaged)
    with pytest.raises(TraceError, match="no length"):
        unpack(pack(Content(array("I", [1, 2]), 0)))


def test_a_lab_receives_what_a_session_has_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "files", {})
    monkeypatch.setattr(delivery, "_PIECE", 64)
    _file(tmp_path, "".join(f"{each * each}\n" for each in range(1, 2000)))
    _file(tmp_path, "25\n30\n", "t.owd")
    texts: dict[str, str] = {}
    trace = delivery.load(Trace(rate="t.up", delay="t.owd"), tmp_path, texts)
    assert texts["t.owd"] == "25\n30\n"
    pieces = list(delivery.data_of(trace.digest))
    assert len(pieces) > 10
    lab = Traces()
    with pytest.raises(TraceError, match="has not received"):
        lab.content(trace)
    for each in pieces:
        lab.receive(each)
    content, image = lab.content(trace)
    assert content.opportunities[-1] == 1999 * 1999
    assert list(content.delays.values) == [25_000, 30_000]
    assert digest_of(image) == trace.digest


def test_a_lab_refuses_what_differs_from_its_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "files", {})
    _file(tmp_path, "1\n2\n")
    trace = delivery.load(Trace(rate="t.up"), tmp_path, {})
    (piece,) = delivery.data_of(trace.digest)
    lab = Traces()
    with pytest.raises(TraceError, match="differs"):
        lab.receive(type(piece)(digest="0" * 64, size=piece.size, piece=piece.piece, last=True))
    with pytest.raises(TraceError, match="differs"):
        lab.receive(type(piece)(digest=piece.digest, size=10, piece=piece.piece, last=True))
    with pytest.raises(TraceError, match="unpacked"):
        lab.receive(type(piece)(digest="1" * 64, size=10, piece=b"no", last=True))


# --- how a trace is named -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "trace"),
    [
        ("none", Trace()),
        ("lte-driving", Trace(name="lte-driving")),
        ("my.csv", Trace(rate="my.csv")),
        ("traces/my.up", Trace(rate="traces/my.up")),
        ({"rate": "a.up", "delay": "a.owd"}, Trace(rate="a.up", delay="a.owd")),
        ({"rate": "a.up", "loop": False}, Trace(rate="a.up", loop=False)),
        ({"kind": "starlink", "seed": 3}, Trace(model="starlink", options={"seed": 3})),
        (
            {"kind": "policer", "rate": "5 Mbit/s", "burst": "30 kB"},
            Trace(model="policer", options={"rate": 5_000_000, "burst": 30_000}),
        ),
        ("starlink seed 3", Trace(model="starlink", options={"seed": 3})),
        ("cell rate 5 Mbit/s seed 2", Trace(model="cell", options={"rate": 5e6, "seed": 2})),
    ],
)
def test_a_trace_is_read_and_written(value: object, trace: Trace) -> None:
    assert read_trace(value) == trace
    assert read_trace(write_trace(trace)) == trace
    if not trace.delay and trace.loop:
        assert parse_trace(show_trace(trace)) == trace


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("lte-drivin", "did you mean"),
        ("/etc/shadow.up", "beside the scenario"),
        ("../my.up", "beside the scenario"),
        ("a/../my.up", "beside the scenario"),
        ({"rate": "/etc/my.up"}, "beside the scenario"),
        ({"rat": "my.up"}, "did you mean"),
        ({"loop": True}, "no file"),
        ({"kind": "starlnk"}, "did you mean"),
        ({"kind": "starlink", "sed": 3}, "did you mean"),
        ({"kind": "starlink", "rate": "1 Gbit/s"}, "must be from"),
        ({"kind": "starlink", "seed": "x"}, "seed"),
        ("starlink seed", "pairs"),
        (3, "must be a trace"),
    ],
)
def test_a_wrong_trace_is_refused(value: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_trace(value)


# --- models ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*MODELS])
def test_a_model_is_the_same_for_the_same_seed(kind: str) -> None:
    images = [pack(models.compute(Trace(model=kind, options={}))) for _ in range(2)]
    assert images[0] == images[1]
    if "seed" in MODELS[kind].parameters:
        assert pack(models.compute(Trace(model=kind, options={"seed": 9}))) != images[0]


@pytest.mark.parametrize("name", [*SHIPPED])
def test_a_shipped_trace_can_be_read_back(name: str) -> None:
    content = unpack(pack(models.compute(Trace(name=name))))
    assert content.length_s >= models.LENGTH_S
    assert 1e6 < (content.mean_bps or 0) < 100e6


def test_starlink_changes_every_15_seconds() -> None:
    content = models.compute(Trace(model="starlink", options={"rate": 50_000_000}))
    assert list(content.delays.times_us) == [each * 15_000_000 for each in range(20)]
    # Twenty slots, each uniform from 0.5 to 1.5 of the mean: three standard errors are 0.2.
    assert content.mean_bps == pytest.approx(50e6, rel=0.2)


def test_the_mean_of_a_cell_holds_and_it_has_outages() -> None:
    trace = Trace(name="lte-driving")
    content = models.compute(trace)
    assert content.mean_bps == pytest.approx(with_defaults(trace).options["rate"], rel=0.35)
    gaps = [b - a for a, b in zip(content.opportunities, content.opportunities[1:], strict=False)]
    assert max(gaps) > 200


def test_stations_of_wifi_take_turns() -> None:
    alone = models.compute(Trace(model="wifi", options={"stations": 0})).mean_bps or 0
    among = models.compute(Trace(model="wifi", options={"stations": 4})).mean_bps or 0
    # A turn of another takes five eighths of a whole one in the mean: 1 of 1 + 4 * 0.625 is 0.29.
    assert 0.2 < among / alone < 0.4


def test_rates_become_the_opportunities_that_carry_them() -> None:
    content = models.compute(Trace(model="wifi"))
    converted = models.opportunities(content.rates)
    assert converted.mean_bps == pytest.approx(content.mean_bps, rel=0.01)
