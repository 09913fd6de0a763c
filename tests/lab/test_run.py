"""`ccplay run` with a real lab: data on stdout, talk on stderr, an orderly end on Ctrl-C."""

import asyncio
import json
import signal
import sys
from pathlib import Path

SCENARIO = """
duration = "10 min"
topology.kind = "linear"
links.bottleneck = { rate = "10 Mbit/s", delay = "10 ms", queue = { kind = "pfifo", limit = 50 } }
timeline = [
  { at = "0 s", do = "start-ping", count = 2, interval = "100 ms" },
  { after = "p1", do = "start-flow", cc = "reno" },
  { after = "p1", at = "1 s", do = "set-congestion-control", flow = "1", cc = "bbr" },
  { after = "p1", at = "2 s", do = "mark", text = "far enough" },
]
"""


async def test_ctrl_c_ends_the_lab_and_prints_what_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(SCENARIO)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ccplay", "run", str(path), "--json"),
        *("--record", str(tmp_path / "mine.jsonl")),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    async with asyncio.timeout(120):
        while b"far enough" not in (line := await process.stderr.readline()):
            assert line, "the run ended before its time"
        process.send_signal(signal.SIGINT)
        out = await process.stdout.read()
        code = await process.wait()
    assert code == 130
    (case,) = json.loads(out)["cases"]
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
