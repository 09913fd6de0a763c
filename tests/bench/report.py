"""Reports: the time for 18 runs, part by part, and for drawing an hour of 8 flows.

The peer, on the same recording in the same run, is plain matplotlib as a user would write it: every
sweep is a point of a line, ``tight_layout``, one SVG. Both begin with the state in memory.
"""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import msgspec
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from msgspec.structs import replace
from rich.console import Console

from ccplay.analysis.summary import machine, summarise
from ccplay.cli.runs import gather
from ccplay.experiment.plan import usual_metrics
from ccplay.report.data.export import export
from ccplay.report.data.material import Material, of_results
from ccplay.report.data.report_tables import tables
from ccplay.report.data.scene import scene
from ccplay.report.figures import style
from ccplay.report.figures.run_figures import RunJob, draw_run, stacked
from ccplay.report.figures.style import Inks, look
from ccplay.report.page.report_directory import flow_names, write
from ccplay.session.archive import read_recording
from ccplay.state.lab_state import LabState
from ccplay.stream.sinks import Recorder
from tests.bench._figures import Spread, table
from tests.bench._hour import FLOWS, HZ, hour, sample

PLAYGROUND = Path(__file__).parents[1] / "ui" / "recordings" / "playground.ccplay"
CASES = ("50 ms", "100 ms", "200 ms")
REPEATS = 6
ROUNDS = 3
RATE = 10_000_000


async def run(console: Console) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        _eighteen(console, folder)
        recording = folder / "hour.ccplay"
        recorder = Recorder(recording)
        for event in hour(await sample(RATE)):
            recorder.put(event)
        recorder.close()
        _drawing(console, folder, recording)


# --- 18 runs ------------------------------------------------------------------------------------


def _eighteen(console: Console, folder: Path) -> None:
    runs = _run_directory(folder / "runs")
    heads = ("", "median (least-greatest)")
    count = len(CASES) * REPEATS
    sheet = table(f"{count} runs of 36 s (2 flows, 2 downloads, a ping)", "", heads)
    sheet.add_row("read the directory, s", _spread(lambda: gather([runs])))
    material = gather([runs])
    turn = iter(range(100))
    sheet.add_row("report, s", _spread(lambda: write(material, folder / f"r{next(turn)}", _quiet)))
    for what, full in (("one run in full, every panel a file", True), ("one as one SVG", False)):
        job = _job(material, folder, full=full)
        sheet.add_row(f"  {what}, CPU s of one core", _spread(partial(draw_run, job), cpu=True))
    sheet.add_row("  tables, s", _spread(lambda: [[*t.files()] for t in tables(material.result)]))
    report = folder / "r0"
    page = (report / "index.html").stat().st_size
    figures = list((report / "figures").iterdir())
    sheet.add_row("its page, MB", f"{page / 1e6:.2f}")
    size = sum(each.stat().st_size for each in figures)
    sheet.add_row("its figures", f"{len(figures)} files, {size / 1e6:.1f} MB")
    for kind in ("csv", "parquet"):
        places = [folder / f"{kind}{n}" for n in range(ROUNDS)]
        order = iter(places)
        sheet.add_row(f"export {kind}, s", _spread(partial(_export, material, order, kind)))
        size = sum(each.stat().st_size for each in places[0].iterdir())
        sheet.add_row(f"its files, MB ({kind})", f"{size / 1e6:.1f}")
    console.print(sheet)


def _job(material: Material, folder: Path, *, full: bool) -> RunJob:
    drawn = folder / "drawn"
    drawn.mkdir(exist_ok=True)
    run = material.runs[0]
    assert run.recording
    return RunJob(
        recording=run.recording,
        folder=drawn,
        slug=run.slug,
        names=flow_names([run.result]),
        full=full,
        every_file=full,
        fonts=style.write_fonts(),
        checkpoint=None,
    )


def _export(material: Material, places: Iterator[Path], kind: str) -> None:
    export(material, next(places), kind, _TABLES)


_TABLES = ("tcp", "queues", "pings", "downloads", "events", "health")


def _run_directory(path: Path) -> Path:
    """Make and return a run directory in which every run has the playground's recording."""
    (path / "runs").mkdir(parents=True)
    state = read_recording(PLAYGROUND)
    results = []
    for case in CASES:
        for repeat in range(1, REPEATS + 1):
            name = f"runs/{case.replace(' ', '-')}-{repeat}.ccplay"
            shutil.copy(PLAYGROUND, path / name)
            results.append(replace(summarise(state, case), repeat=repeat, recording=name))
    result = of_results(results, title="bench", machine=machine(state), usual=usual_metrics)
    (path / "result.json").write_bytes(msgspec.json.encode(result))
    (path / "scenario.toml").write_text('title = "bench"\n')
    return path


# --- one long run -------------------------------------------------------------------------------


def _drawing(console: Console, folder: Path, recording: Path) -> None:
    heads = ("", "ours", "every point", "ratio")
    sheet = table(f"one figure of a run as SVG: 36 s, and an hour of {FLOWS} flows", "", heads)
    for name, path in (("36 s", PLAYGROUND), (f"an hour at {HZ} Hz", recording)):
        state = read_recording(path)
        ours, plain = folder / "ours", folder / "plain.svg"
        one = Spread.of(_times(partial(_ours, state, ours)))
        other = Spread.of(_times(partial(_plain, state, plain)))
        ratio = f"{other.median / one.median:.1f}"
        sheet.add_row(f"{name}, s", one.scaled(1, 2), other.scaled(1, 2), ratio)
        sizes = [each.stat().st_size / 1e6 for each in (ours.with_suffix(".svg"), plain)]
        sheet.add_row(
            f"{name}, MB", f"{sizes[0]:.2f}", f"{sizes[1]:.2f}", f"{sizes[1] / sizes[0]:.1f}"
        )
    console.print(sheet)


def _ours(state: LabState, to: Path) -> None:
    style.use_fonts(style.write_fonts())
    shown = scene(state)
    with look():
        style.save(stacked(shown, Inks(state.flows)), to, ("svg",))


def _plain(state: LabState, to: Path) -> None:
    """Draw the six panels with plain matplotlib, every sweep a point."""
    figure = Figure(figsize=(7, 10))
    FigureCanvasSVG(figure)
    every = figure.subplots(6, 1, sharex=True)
    times = [state.sweeps.time(tick) for tick in range(state.sweeps.first, state.sweeps.end)]
    for flow in state.flows.values():
        for axes, field in zip(every, ("cwnd", "srtt_us", "bytes_acked"), strict=False):
            series = flow.series[field]
            ticks = range(max(series.first, 0), series.end)
            axes.plot([times[t] for t in ticks], [_or_nan(series.at(t)) for t in ticks])
        acked = flow.series["bytes_acked"]
        at = [acked.at(t) or 0.0 for t in range(max(acked.first, 0), acked.end, HZ)]
        rates = [b - a for a, b in pairwise(at)]
        every[3].step(range(len(rates)), [8e-6 * each for each in rates])
        every[4].bar(range(len(rates)), rates)
    for queue in state.queues.values():
        series = queue.series["qlen"]
        ticks = range(max(series.first, 0), series.end)
        every[5].plot([times[t] for t in ticks], [_or_nan(series.at(t)) for t in ticks])
    figure.tight_layout()
    figure.savefig(to)


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _quiet(done: int, total: int, what: str) -> None:
    """Ignore a report's progress."""


def _spread(work: Callable[[], object], *, cpu: bool = False) -> str:
    return Spread.of(_times(work, cpu=cpu)).scaled(1, 2)


def _times(work: Callable[[], object], *, cpu: bool = False) -> list[float]:
    clock = time.process_time if cpu else time.perf_counter
    times = []
    for _ in range(ROUNDS):
        begun = clock()
        work()
        times.append(clock() - begun)
    return times
