"""An experiment with real labs: side by side, broken off and gone on with, changed and refused."""

import asyncio
import signal
from pathlib import Path

from ccplay.experiment.store import read_run_directory, recording_of
from ccplay.model.commands import Build
from ccplay.session import launch
from ccplay.stream.sources import LabSource, check_recording
from tests.lab.commands import progress, run, start

SCENARIO = """
duration = "2 s"
repeats = 2
topology.kind = "linear"
links.bottleneck = { rate = "10 Mbit/s", delay = "5 ms", queue = { kind = "pfifo", limit = 50 } }
metrics = ["flows.1.goodput_bps"]
timeline = [{ at = "0 s", do = "start-flow", cc = "reno" }]
expect = [{ metric = "flows.1.goodput_bps", at_least = 100_000, why = "the link is free" }]
[matrix]
rate = { path = "links.bottleneck.rate", values = ["5 Mbit/s", "10 Mbit/s", "20 Mbit/s"] }
"""
RATES = (5e6, 10e6, 20e6)


async def test_labs_side_by_side_do_not_meet(tmp_path: Path) -> None:
    """Three labs with the same names and addresses at once; each keeps to its own rate."""
    (path := tmp_path / "mine.toml").write_text(SCENARIO)
    code, result, talk = await run(
        *("run", path, "--json", "--jobs", "3", "--out", tmp_path / "out")
    )
    assert code == 0, talk
    assert [(run["name"], run["repeat"]) for run in result["cases"]] == [
        (f"rate {rate / 1e6:.0f} Mbit/s", repeat) for rate in RATES for repeat in (1, 2)
    ]
    for rate, case in zip(RATES, result["statistics"], strict=True):
        goodput = case["figures"]["flows.1.goodput_bps"]
        assert goodput["n"] == case["runs"] == 2
        # Headers take 5 %, slow start some more; nothing is faster than its link, and another
        # lab's link has at least twice or at most half the rate.
        assert 0.6 * rate < goodput["mean"] < rate
    assert read_run_directory(tmp_path / "out").statistics[0].runs == 2
    for each in read_run_directory(tmp_path / "out").cases:
        recording = recording_of(tmp_path / "out", each)
        assert recording is not None
        check_recording(recording)


async def test_what_ctrl_c_broke_off_is_gone_on_with(tmp_path: Path) -> None:
    """Finished runs are not changed, and only the others are run."""
    (path := tmp_path / "mine.toml").write_text(SCENARIO)
    words = (str(path), "--jobs", "2", "--out", str(tmp_path / "out"))
    process = await start("run", *words)
    await progress(process, "1/6 ")
    process.send_signal(signal.SIGINT)
    out, talk = await asyncio.wait_for(process.communicate(), 240)
    assert process.returncode == 130
    assert b"of 6 runs are kept" in talk
    assert b"ccplay run" in talk
    assert out
    finished = {each: each.read_bytes() for each in (tmp_path / "out/runs").glob("*.json")}
    assert 1 <= len(finished) <= 3
    kept = read_run_directory(tmp_path / "out")
    assert len(kept.cases) == len(finished)
    code, result, talk_then = await run("run", *words, "--json")
    assert code == 0, talk_then
    assert len(result["cases"]) == 6
    assert not any(run["interrupted"] for run in result["cases"])
    assert all(each.read_bytes() == content for each, content in finished.items())
    # A line for every run that was run, and for no other.
    told = [line for line in talk_then.splitlines() if "/6 " in line]
    assert len(told) == 6 - len(finished)


async def test_a_changed_scenario_is_refused_with_what_has_changed(tmp_path: Path) -> None:
    (path := tmp_path / "mine.toml").write_text(SCENARIO)
    words = (str(path), "--repeats", "1", "--case", "rate 5 Mbit/s", "--out", str(tmp_path / "out"))
    code, result, talk = await run("run", *words, "--json")
    assert code == 0, talk
    path.write_text(SCENARIO.replace("limit = 50", "limit = 10"))
    code, nothing, talk = await run("run", *words, "--json")
    assert (code, nothing) == (2, None)
    assert "queue" in talk or "qdisc" in talk
    assert "was 50, is 10" in talk
    assert "--out" in talk
    # More repeats and other words about them are no change of what was run.
    path.write_text('title = "Again"\n' + SCENARIO)
    code, again, talk = await run("run", *words[:2], "2", *words[3:], "--json")
    assert code == 0, talk
    assert again["cases"][0] == result["cases"][0]
    assert len(again["cases"]) == 2


async def test_a_lab_that_is_closed_while_it_starts_ends() -> None:
    """Ctrl-C may come at any moment, even when the next lab has no process yet."""
    source = LabSource(launch.lab_argv(), Build())

    async def read() -> int:
        return len([event async for event in source.events()])

    reading = asyncio.create_task(read())
    await asyncio.sleep(0)
    await source.close()
    async with asyncio.timeout(20):
        assert await reading == 0
