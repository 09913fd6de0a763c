"""A simulated class: 200 spectators of a session with eight flows, of which 20 do not read.

150 terminals, ten of them real ``ccplay watch``, and 50 browsers, three of them real; all run on
this machine at lower priority than lab, presenter and servers. A real screen's delay is from the
presenter's mark to its text on the terminal, a real page's delay from a sweep to the canvas.
"""

from __future__ import annotations

import asyncio
import json
import os
import pty
import random
import select
import string
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from rich.console import Console

from ccplay.model.commands import Build, Mark
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.session import launch
from ccplay.session.session import Session
from ccplay.share.presenter import BrowserServer, Sharing
from ccplay.stream.sources import LabSource
from ccplay.traffic.flow import StartFlow
from tests.bench._figures import table
from tests.ui.web import chromium

TERMINALS, BROWSERS = 150, 50
REAL_TERMINALS, REAL_BROWSERS = 10, 3
STILL_TERMINALS, STILL_BROWSERS = 15, 5
FLOWS = 8
ALGORITHMS = ("reno", "cubic", "bbr")
HZ = 50
_APART_S = 3.0
"""Seconds between marks."""

_LONGER_S = 5.0
"""Seconds for which the sockets are read after the measurement: the CPU time of a process can't be
read once it has ended."""

FIGURES = {
    "lab, % of a core": "",
    "presenter, % of a core": "",
    "server, % of a core": "",
    "server for browsers, % of a core": "",
    "simulation: 10 real terminals, % of a core": "",
    "simulation: 3 real browsers, % of a core": "",
    "simulation: 187 sockets, % of a core": "",
    "idle, % of all cores": "",
    "sweeps missed": "none more",
    "sweeps missed, %": "none more",
    "kB/s for a terminal": "under 10",
    "kB/s for a browser": "under 10",
    "sweep to a terminal's socket, p50 ms": "",
    "sweep to a terminal's socket, p95 ms": "",
    "sweep to a browser's socket, p50 ms": "",
    "sweep to a browser's socket, p95 ms": "",
    "mark to a real screen, p50 ms": "",
    "mark to a real screen, p95 ms": "under 250",
    "sweep to a real page's canvas, p50 ms": "",
    "sweep to a real page's canvas, p95 ms": "under 250",
    "gaps and lost connections of those who read": "0",
}
"""Aim of each measured value, by its name; empty if it has none."""


async def run(console: Console, seconds: float = 300.0) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        os.environ["XDG_STATE_HOME"] = os.environ["XDG_CONFIG_HOME"] = folder
        _say(f"alone, {min(seconds, 60.0):g} s")
        alone = await _measure(Path(folder), min(seconds, 60.0), shared=False)
        shared = await _measure(Path(folder), seconds, shared=True)
    title = f"{TERMINALS} terminals, {BROWSERS} browsers, {FLOWS} flows at {HZ} Hz, {seconds:g} s"
    sheet = table(title, "", ("", "not shared", "shared", "aim"))
    for name, aim in FIGURES.items():
        cells = (f"{each[name]:.4g}" if name in each else "" for each in (alone, shared))
        sheet.add_row(name, *cells, aim)
    console.print(sheet)


_SIMULATION = {
    "simulation: 10 real terminals, % of a core": "ccplay watch",
    "simulation: 3 real browsers, % of a core": "chrom",
    "simulation: 187 sockets, % of a core": "tests.bench._crowd",
}
"""Names of processes that would be on other machines in a class, with a part of their command
line."""


def _say(what: str) -> None:
    """Report progress on stderr; results go to stdout."""
    print(f"classroom, {time.strftime('%H:%M:%S')}: {what}", file=sys.stderr, flush=True)


@dataclass(slots=True)
class Class:
    """A session with its spectators and the processes that serve them."""

    session: Session
    source: LabSource
    sharing: Sharing | None = None
    browsers: BrowserServer | None = None
    real: list[RealTerminal] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def processes(self) -> dict[str, list[psutil.Process]]:
        """Return the processes whose CPU time is measured, by the name of the value."""
        me = psutil.Process()
        lab = [each for each in me.children(recursive=True) if "ccplay.lab" in each.cmdline()]
        found = {"lab, % of a core": lab, "presenter, % of a core": [me]}
        if self.sharing is not None and self.browsers is not None:
            found["server, % of a core"] = [psutil.Process(self.sharing._process.pid)]
            web = psutil.Process(self.browsers._process.pid)
            found["server for browsers, % of a core"] = [web]
            for name, word in _SIMULATION.items():
                found[name] = [
                    each for each in me.children(recursive=True) if word in " ".join(each.cmdline())
                ]
        return found


async def _measure(folder: Path, seconds: float, *, shared: bool) -> dict[str, float]:
    queue = Qdisc(kind="pfifo", options={"limit": 100})
    build = Build(
        topology=Topology(pairs=FLOWS),
        links={"bottleneck": LinkSetting(rate=20_000_000, delay_us=10_000, qdisc=queue)},
        sample_hz=HZ,
    )
    sharing = Sharing("class") if shared else None
    source = LabSource(launch.lab_argv(), build)
    session = Session(source, title="class", sinks=[sharing] if sharing else [])
    it = Class(session, source, sharing)
    playing = asyncio.create_task(session.run())
    try:
        while session.state.ready_at is None:  # noqa: ASYNC110 - the state has no event
            await asyncio.sleep(0.05)
        for number in range(FLOWS):
            cc = ALGORITHMS[number % len(ALGORITHMS)]
            session.send(StartFlow(src=f"s{number + 1}", cc=cc))
        await asyncio.sleep(3)
        if sharing is None:
            return await _observed(it, seconds)
        return await _with_class(it, folder, seconds)
    finally:
        await session.close()
        await playing
        if it.browsers is not None:
            it.browsers.close()


async def _with_class(it: Class, folder: Path, seconds: float) -> dict[str, float]:
    assert it.sharing is not None
    it.browsers = BrowserServer(it.sharing.path, "")
    link = await asyncio.to_thread(it.browsers.wait)
    wall = it.session.state.hello.wall_time if it.session.state.hello else 0.0
    _say("the server for browsers is there")
    async with AsyncExitStack() as stack:
        pages = [
            await stack.enter_async_context(_page(link, folder / f"page{number}", wall))
            for number in range(REAL_BROWSERS if chromium.FOUND else 0)
        ]
        _say(f"{len(pages)} Chromiums are there")
        it.real = [RealTerminal(it.sharing.name) for _ in range(REAL_TERMINALS)]
        for each in it.real:
            stack.callback(each.close)
        streams = TERMINALS - len(it.real), STILL_TERMINALS
        sockets = BROWSERS - len(pages), STILL_BROWSERS
        lasts = seconds + _LONGER_S
        words = [str(lasts), str(it.sharing.path), *map(str, streams), link, *map(str, sockets)]
        crowd = await asyncio.create_subprocess_exec(
            *("nice", "-n", "19", sys.executable, "-m", "tests.bench._crowd", *words),
            stdout=asyncio.subprocess.PIPE,
        )
        assert crowd.stdout is not None
        await crowd.stdout.readline()
        _say(f"all have read the past; measuring {seconds:g} s")
        figures = await _observed(it, seconds)
        _say("measured; waiting for the spectators' figures")
        found = json.loads(await crowd.stdout.readline())
        await crowd.wait()
        painted: list[float] = []
        for page in pages:
            painted += await page.evaluate("window.painted")
    for kind in ("terminal", "browser"):
        figures[f"kB/s for a {kind}"] = found[kind]["bytes"] / 1e3
        for part in ("p50", "p95"):
            figures[f"sweep to a {kind}'s socket, {part} ms"] = found[kind][part] * 1e3
    _percentiles(figures, "mark to a real screen", [t for each in it.real for t in each.delays])
    _percentiles(figures, "sweep to a real page's canvas", painted)
    figures["gaps and lost connections of those who read"] = found["gaps"] + found["lost"]
    return figures


def _percentiles(figures: dict[str, float], name: str, delays: list[float]) -> None:
    if delays := sorted(delays):
        figures[f"{name}, p50 ms"] = delays[len(delays) // 2] * 1e3
        figures[f"{name}, p95 ms"] = delays[len(delays) * 95 // 100] * 1e3


async def _observed(it: Class, seconds: float) -> dict[str, float]:
    """Let the session run for ``seconds``; return the CPU of its processes and missed sweeps."""
    watched, since = it.processes(), it.session.state.now
    before = {name: _spent(each) for name, each in watched.items()}
    psutil.cpu_times_percent(None)
    began, draw = time.monotonic(), random.Random(1)
    while time.monotonic() < began + seconds:
        word = "".join(draw.sample(string.ascii_uppercase, 10))
        if it.real:
            for each in it.real:
                each.expect(word)
            it.session.send(Mark(text=word))
        if it.browsers is not None:
            it.browsers.listen()
        await asyncio.sleep(_APART_S)
    lasted = time.monotonic() - began
    idle = psutil.cpu_times_percent(None).idle
    figures = {name: (_spent(each) - before[name]) / lasted * 100 for name, each in watched.items()}
    missed = sum(each.missed for each in it.session.state.healths if each.t > since)
    figures["idle, % of all cores"] = idle
    figures["sweeps missed"] = missed
    figures["sweeps missed, %"] = missed / (lasted * HZ) * 100
    return figures


def _spent(processes: list[psutil.Process]) -> float:
    return sum(sum(each.cpu_times()[:2]) for each in processes if each.is_running())


class RealTerminal:
    """A real ``ccplay watch`` on a terminal of 120x40 cells, read by a thread."""

    def __init__(self, name: str) -> None:
        self.delays: list[float] = []
        ours, theirs = pty.openpty()
        os.environ.setdefault("TERM", "xterm-256color")
        self._terminal = ours
        self._process = subprocess.Popen(
            ["nice", "-n", "19", sys.executable, "-m", "ccplay", "watch", name, "--restricted"],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "COLUMNS": "120", "LINES": "40", "LC_ALL": "C.UTF-8"},
            start_new_session=True,
        )
        os.close(theirs)
        self._expected: tuple[str, float] | None = None
        self._over = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def expect(self, word: str) -> None:
        """Measure the time from now until ``word`` is shown."""
        self._expected = word, time.monotonic()

    def _read(self) -> None:
        seen = b""
        while not self._over:
            if not select.select([self._terminal], [], [], 0.2)[0]:
                continue
            try:
                seen = seen[-200:] + os.read(self._terminal, 1 << 16)
            except OSError:
                return
            expected = self._expected
            # Only some letters may be written: cells that do not change are skipped.
            if expected is not None and any(
                expected[0][at : at + 4].encode() in seen for at in range(7)
            ):
                self.delays.append(time.monotonic() - expected[1])
                self._expected = None

    def close(self) -> None:
        """End the program."""
        self._over = True
        self._process.terminate()
        self._thread.join()
        os.close(self._terminal)
        self._process.wait()


_WATCH = """
window.painted = [];
const parse = JSON.parse, wall = WALL;
let newest = null;
JSON.parse = (text) => {
  const found = parse(text);
  if (Array.isArray(found) && found.length === 4) {
    const [step, first, count] = found;
    newest = [first * step / 1e3, (first + count - 1) * step / 1e3];
  }
  return found;
};
const clear = CanvasRenderingContext2D.prototype.clearRect;
CanvasRenderingContext2D.prototype.clearRect = function (...box) {
  if (newest) {
    const moments = newest;
    newest = null;
    setTimeout(() => {
      for (const t of moments) window.painted.push(Date.now() / 1000 - wall - t);
    }, 0);
  }
  return clear.apply(this, box);
};
"""
"""JavaScript that notes the seconds from a moment until its values are drawn on a canvas."""


@asynccontextmanager
async def _page(link: str, folder: Path, wall: float) -> AsyncIterator[chromium.Tab]:
    with chromium.chromium(folder, nice=19) as address:
        async with chromium.new_tab(address) as tab:
            await tab.size(1280, 800)
            await tab.call("Page.enable")
            source = _WATCH.replace("WALL", repr(wall))
            await tab.call("Page.addScriptToEvaluateOnNewDocument", source=source)
            await tab.open(link)
            yield tab
