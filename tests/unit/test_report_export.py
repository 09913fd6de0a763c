"""Exports have one complete, exact row per sample, with units in the names of columns."""

import csv
from pathlib import Path

import pytest

from ccplay.analysis.metrics import metrics_of
from ccplay.cli import main
from ccplay.cli.runs import gather
from ccplay.model.events import Ready
from ccplay.model.samples import Sweep
from ccplay.report.data.export import batches
from ccplay.stream.sources import recorded_events
from tests.events import PLAYGROUND


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_sample_is_a_row_with_its_exact_values(tmp_path: Path) -> None:
    assert main(["export", str(PLAYGROUND), "--to", str(tmp_path / "tcp.csv")]) == 0
    start = next(e.t for e in recorded_events(PLAYGROUND) if isinstance(e, Ready))
    expected = [
        (event.t - start, flow, cwnd, acked)
        for event in recorded_events(PLAYGROUND)
        if isinstance(event, Sweep) and event.tcp is not None
        for flow, cwnd, acked in zip(
            event.tcp.flow, event.tcp.cwnd, event.tcp.bytes_acked, strict=True
        )
    ]
    found = [
        (float(r["t_s"]), r["flow"], int(r["cwnd_segments"]), int(r["bytes_acked"]))
        for r in rows(tmp_path / "tcp.csv")
    ]
    assert [row[1:] for row in found] == [row[1:] for row in expected]
    # Recordings keep times to the microsecond.
    assert [row[0] for row in found] == pytest.approx([row[0] for row in expected], abs=2e-6)


def test_all_tables_go_into_a_directory(tmp_path: Path) -> None:
    assert main(["export", str(PLAYGROUND), "--to", str(tmp_path / "data")]) == 0
    names = {each.stem for each in (tmp_path / "data").iterdir()}
    assert names == {
        *("runs", "tcp", "queues", "pings", "downloads", "intervals", "events", "health")
    }
    [run] = rows(tmp_path / "data" / "runs.csv")
    measured = metrics_of(gather([PLAYGROUND]).runs[0].result)
    assert {name: float(run[name]) for name in measured} == measured
    assert (run["run"], run["trustworthy"], run["errors"]) == ("playground", "True", "0")
    ping = rows(tmp_path / "data" / "pings.csv")[0]
    assert (ping["run"], ping["case"], ping["repeat"]) == ("playground", "playground", "1")
    assert float(ping["rtt_us"]) > 20_000
    assert rows(tmp_path / "data" / "tcp.csv")[0]["ca_state"] == "Open"


def test_rows_are_in_the_order_of_time() -> None:
    times = [t for _, batch in batches(gather([PLAYGROUND]), ["tcp"]) for t in batch["t_s"]]
    assert times == sorted(times)


def test_parquet_has_what_csv_has(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    for kind in ("csv", "parquet"):
        to = str(tmp_path / kind)
        assert main(["export", str(PLAYGROUND), "--to", to, "--format", kind]) == 0
    for path in (tmp_path / "csv").iterdir():
        table = parquet.read_table(tmp_path / "parquet" / f"{path.stem}.parquet").to_pylist()
        found = [
            {
                key: "" if value is None else str(value) if isinstance(value, str) else repr(value)
                for key, value in row.items()
            }
            for row in table
        ]
        assert found == rows(path)


def test_without_a_place_rows_go_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(PLAYGROUND), "--table", "events"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("run,case,repeat,t_s,kind,text\r\n")
    assert "flow 1 switches reno → bbr" in text


def test_no_file_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = tmp_path / "tcp.csv"
    to.write_text("mine")
    assert main(["export", str(PLAYGROUND), "--to", str(to)]) == 2
    assert main(["export", str(PLAYGROUND), "--to", str(tmp_path)]) == 2
    assert to.read_text() == "mine"
    assert [each.name for each in tmp_path.iterdir()] == ["tcp.csv"]
    assert "already exists" in capsys.readouterr().err


def test_intervals_have_the_length_that_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(PLAYGROUND), "--interval", "0.5"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert {row["interval_s"] for row in rows} == {"0.5"}
    assert {row["kind"] for row in rows} == {"flow", "download"}
    assert all(float(row["t_s"]) % 0.5 == 0 for row in rows)
    moved = sum(int(row["bytes"]) for row in rows if row["kind"] == "download")
    assert moved > 0
    with pytest.raises(SystemExit):
        main(["export", str(PLAYGROUND), "--interval", "0.01"])
