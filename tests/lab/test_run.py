"""`ccplay run` with a real lab: data on stdout, talk on stderr, an orderly end by whatever."""

import json
import signal
from pathlib import Path

import pytest

from tests.lab.commands import finish, progress, run, start

LINEAR = """
duration = "10 min"
topology.kind = "linear"
links.bottleneck = { rate = "10 Mbit/s", delay = "10 ms", queue = { kind = "pfifo", limit = 50 } }
"""

LONG = f"""{LINEAR}
timeline = [
  {{ at = "0 s", do = "start-ping", count = 2, interval = "100 ms" }},
  {{ after = "p1", do = "start-flow", cc = "reno" }},
  {{ after = "p1", at = "1 s", do = "set-congestion-control", flow = "1", cc = "bbr" }},
  {{ after = "p1", at = "2 s", do = "mark", text = "far enough" }},
]
"""

RACE = f"""{LINEAR}
until = "first"
timeline = [
  {{ at = "0 s", do = "start-flow", flow = "2", cc = "reno", bytes = "50 MB" }},
  {{ at = "0 s", do = "start-flow", flow = "1", cc = "reno", bytes = "1 MB" }},
]
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
async def test_a_signal_ends_the_lab_and_what_was_measured_is_printed(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    (path := tmp_path / "mine.toml").write_text(LONG)
    process = await start("run", path, "--json", "--record", tmp_path / "mine.jsonl")
    await progress(process, "far enough")
    process.send_signal(number)
    ended, result, talk = await finish(process)
    assert ended == code
    assert "Traceback" not in talk
    (case,) = result["cases"]
    assert case["interrupted"] is True
    assert case["errors"] == []
    (flow,) = case["flows"]
    assert flow["cc"] == "reno"
    assert [switch["cc"] for switch in flow["switches"]] == ["bbr"]
    # Two seconds at 10 Mbit/s, with room for a slow start and a busy machine: at least a tenth.
    assert flow["bytes"] > 250_000
    # Both ways add 10 ms; nothing else can make it shorter.
    assert 20 <= case["pings"][0]["min_ms"] < 40
    last = (tmp_path / "mine.jsonl").read_bytes().splitlines()[-1]
    assert json.loads(last)["event"] == "ended"


async def test_the_first_transfer_that_is_done_ends_the_case(tmp_path: Path) -> None:
    (path := tmp_path / "race.toml").write_text(RACE)
    code, result, talk = await run("run", path, "--json")
    assert code == 0, talk
    (case,) = result["cases"]
    assert case["errors"] == []
    race = case["checkpoint"]
    assert race["first"] == "1"
    # A megabyte alone needs 0.8 s of the link, both in turn 41 s: it ended with the first.
    assert 0.8 <= race["elapsed_s"] < 30
    # What came within a sweep beyond the limit: 20 ms of the link are 25 kB, a late one is more.
    assert 1_000_000 <= race["bytes"]["1"] < 1_500_000
    assert 0 < race["bytes"]["2"] < 50_000_000
    assert race["ratio"] == round(race["bytes"]["2"] / race["bytes"]["1"], 6)
