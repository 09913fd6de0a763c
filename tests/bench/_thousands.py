"""Makes a run directory of thousands of runs: one real run, repeated with random variations."""

import os
import random
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ccplay.analysis.results import CaseResult
from ccplay.analysis.summary import machine, summarise
from ccplay.experiment.plan import CollectedRuns, plan_runs
from ccplay.experiment.store import RUNS, SCENARIO, KeptRun, Store, fingerprint
from ccplay.scenario.reading import parse
from ccplay.session.archive import read_recording

PLAYGROUND = Path(__file__).parents[1] / "ui" / "recordings" / "playground.ccplay"
CASES = 50
_SPREAD = 0.03
_TEXT = """
title = "Thousands of runs"
duration = "40 s"
repeats = {repeats}
topology.kind = "linear"
metrics = ["flows.1.goodput_bps", "flows.2.goodput_bps", "jain"]
timeline = [
  {{ at = "0 s", do = "start-flow", cc = "reno" }},
  {{ at = "0 s", do = "start-flow", cc = "cubic" }},
]
[matrix]
rate = {{ path = "links.bottleneck.rate", values = [{rates}] }}
delay = {{ path = "links.bottleneck.delay", values = ["1 ms", "5 ms", "10 ms", "50 ms", "100 ms"] }}
"""


def make(folder: Path, runs: int) -> Path:
    """Write a run directory of many runs, all with the same recording as a hard link."""
    rates = ", ".join(f'"{rate} Mbit/s"' for rate in range(1, CASES // 5 + 1))
    text = _TEXT.format(repeats=runs // CASES, rates=rates)
    scenario = parse(text, folder.parent / "thousands.toml")
    scenario.path.write_text(text)
    state = read_recording(PLAYGROUND)
    measured, where = summarise(state, ""), machine(state)
    there = folder / RUNS
    there.mkdir(parents=True)
    recording = there / "first.bin"
    recording.write_bytes(PLAYGROUND.read_bytes())
    gathering = CollectedRuns(scenario)
    with_store = Store(folder, scenario)
    for run in plan_runs(scenario):
        noise = random.Random(str(run.key))
        name = with_store.recording_name(run)
        os.link(recording, folder / name)
        result = replace(
            _noisy(measured, noise),
            name=run.case.name,
            parameters=dict(run.case.parameters),
            repeat=run.repeat,
            recording=name,
        )
        made_of = fingerprint(run.played)
        kept = KeptRun(
            sha256=made_of.sha256, ran=made_of, machine=where, took_s=40.0, result=result
        )
        path = (folder / name).with_suffix(".json")
        path.write_bytes(msgspec.json.encode(kept) + b"\n")
        gathering.add(result, machine=where)
    recording.unlink()
    (folder / SCENARIO).write_text(text)
    (folder / "result.json").write_bytes(msgspec.json.encode(gathering.result()) + b"\n")
    return folder


def _noisy(result: CaseResult, noise: random.Random) -> CaseResult:
    """Return the result with goodputs that vary as between repeats."""
    flows = [
        replace(each, goodput_bps=(each.goodput_bps or 0.0) * noise.gauss(1.0, _SPREAD))
        for each in result.flows
    ]
    return replace(result, flows=flows)
