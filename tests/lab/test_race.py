"""A race of transfers of a fixed size ends with the first, by the product's own path."""

import asyncio
import json
import sys
from pathlib import Path

SCENARIO = """
duration = "60 s"
until = "first"
topology.kind = "linear"
links.bottleneck = { rate = "10 Mbit/s", delay = "5 ms", queue = { kind = "pfifo", limit = 50 } }
timeline = [
  { at = "0 s", do = "start-flow", flow = "2", cc = "reno", bytes = "50 MB" },
  { at = "0 s", do = "start-flow", flow = "1", cc = "reno", bytes = "1 MB" },
]
"""


async def test_the_first_that_is_done_ends_the_case(tmp_path: Path) -> None:
    path = tmp_path / "race.toml"
    path.write_text(SCENARIO)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ccplay", "run", str(path), "--json"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, talk = await process.communicate()
    assert process.returncode == 0, talk.decode()
    (case,) = json.loads(out)["cases"]
    assert case["errors"] == []
    race = case["checkpoint"]
    assert race["first"] == "1"
    # A megabyte alone needs 0.8 s of the link, both in turn 41 s: it ended with the first.
    assert 0.8 <= race["elapsed_s"] < 30
    # What came within a sweep beyond the limit: 20 ms of the link are 25 kB, a late one is more.
    assert 1_000_000 <= race["bytes"]["1"] < 1_500_000
    assert 0 < race["bytes"]["2"] < 50_000_000
    assert race["ratio"] == round(race["bytes"]["2"] / race["bytes"]["1"], 6)
