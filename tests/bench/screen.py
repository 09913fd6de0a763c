"""The cost of the screen: CPU, bytes to the terminal, first paint, key-to-paint time.

Measured from outside, through a pseudo-terminal of 120x40, against Textual's ``Sparkline``, which
draws the same series in the same run.
"""

import argparse
import asyncio
import fcntl
import gc
import os
import pty
import select
import statistics
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from ccplay.model.commands import Build
from ccplay.stream import wire
from ccplay.stream.sources import LabSource, Source
from tests.bench import _windows
from tests.ui.synthetic import stream

SIZE = (120, 40)
FLOWS = 8
HZ = 50.0
MEASURED_S = 20.0
PAINTS = 9
OPENED = 5

_PALETTE = b"ype a command"
"""Part of the palette's placeholder; its first letter is under the cursor, so drawn separately."""
_DIALOGS = {
    b"\x10": _PALETTE,
    b"f": b"New flow",
    b"c": b"Congestion control",
    b"q": b"Queue",
    b"l": b"Link",
    b"u": b"UDP cross traffic",
}
"""Words that only this dialog shows, by the key that opens it."""


@dataclass(frozen=True)
class Cost:
    """The cost of one program on a terminal."""

    first_paint_s: float
    cpu: float
    """CPU use as a fraction of one core."""
    bytes_s: float
    key_to_paint_s: tuple[float, ...] = ()


class Terminal:
    """A program on a pseudo-terminal whose output is counted."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.began = time.monotonic()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
            os.execv(sys.executable, [sys.executable, *argv])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", SIZE[1], SIZE[0], 0, 0))
        self.process = psutil.Process(self.pid)

    def read(self, seconds: float) -> bytes:
        """Return the output of the next ``seconds``."""
        end, out = time.monotonic() + seconds, b""
        while (left := end - time.monotonic()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                out += os.read(self.fd, 1 << 16)
        return out

    def wait_for(self, text: bytes, limit_s: float = 20.0) -> float:
        """Wait until ``text`` is written; return the seconds that took."""
        out, began = b"", time.monotonic()
        while text not in out:
            if not select.select([self.fd], [], [], limit_s)[0]:
                raise TimeoutError(f"{text!r} did not come in {limit_s} s")
            out += os.read(self.fd, 1 << 16)
        return time.monotonic() - began

    def cpu_s(self) -> float:
        """Return the CPU seconds used so far."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def key(self, key: bytes) -> float:
        """Press a key while the screen is still; return the seconds until something is painted."""
        self.read(0.05)
        began = time.monotonic()
        os.write(self.fd, key)
        select.select([self.fd], [], [], 5.0)
        took = time.monotonic() - began
        self.read(0.1)
        return took

    def close(self) -> None:
        """End the program."""
        self.process.kill()
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def measure(argv: Sequence[str], sign: bytes, *, keys: bool) -> Cost:
    """Run a program, measure it while it draws, then press keys if ``keys``; return the cost."""
    terminal = Terminal(argv)
    try:
        terminal.wait_for(sign)
        painted = time.monotonic() - terminal.began
        # The flows start one after another; all must be running when measured.
        terminal.read(22.0)
        cpu, began = terminal.cpu_s(), time.monotonic()
        written = len(terminal.read(MEASURED_S))
        elapsed = time.monotonic() - began
        cpu = (terminal.cpu_s() - cpu) / elapsed
        latencies: tuple[float, ...] = ()
        if keys:
            terminal.key(b" ")
            # The numbers settle meanwhile; then left and right in turn.
            terminal.read(0.5)
            arrows = (b"\x1b[D", b"\x1b[C")
            latencies = tuple(terminal.key(arrows[n % 2]) for n in range(40))
        return Cost(painted, cpu, written / elapsed, latencies)
    finally:
        terminal.close()


def first_paint(argv: Sequence[str], sign: bytes) -> float:
    """Return the seconds from the start of a program until ``sign`` is written."""
    terminal = Terminal(argv)
    try:
        terminal.wait_for(sign)
        return time.monotonic() - terminal.began
    finally:
        terminal.close()


def _first_paints() -> Table:
    """Compare the first paint of the program with its lab to that of Textual's own widgets."""
    ours, theirs = [], []
    for _ in range(PAINTS):
        ours.append(first_paint(["-m", "ccplay"], b"ccplay") * 1e3)
        theirs.append(first_paint(["-m", "tests.bench.screen", "sparkline"], b"cwnd") * 1e3)
    table = Table(title=f"first paint, median and range of {PAINTS}, aim: 300 ms, or the peer's")
    for column in ("", "ms"):
        table.add_column(column, justify="right")
    for name, taken in (("python -m ccplay", ours), ("Textual's Sparkline", theirs)):
        text = f"{statistics.median(taken):.0f} ({min(taken):.0f}-{max(taken):.0f})"
        table.add_row(name, text)
    return table


def _dialogs() -> Table:
    """Compare the time to open each dialog over a running lab to that of Textual's palette."""
    table = Table(title="from key to open dialog over a running lab, median of 5; the first time")
    for column in ("", "ms", "first ms", "the palette's"):
        table.add_column(column, justify="right")
    terminal = Terminal(["-m", "ccplay"])
    try:
        terminal.wait_for(b"joins")
        opened = {name: _opened(terminal, key, name) for key, name in _DIALOGS.items()}
    finally:
        terminal.close()
    peer = statistics.median(opened[_PALETTE])
    for name, (first, *later) in opened.items():
        took = statistics.median(later)
        ratio = "" if name == _PALETTE else f"{took / peer:.1f}x"
        table.add_row(
            "palette" if name == _PALETTE else name.decode(),
            f"{took * 1e3:.0f}",
            f"{first * 1e3:.0f}",
            ratio,
        )
    return table


def _opened(terminal: Terminal, key: bytes, sign: bytes) -> list[float]:
    """Open a dialog by its key several times; return the seconds until ``sign`` is written."""
    took = []
    for _ in range(1 + OPENED):
        os.write(terminal.fd, key)
        took.append(terminal.wait_for(sign))
        terminal.read(0.5)
        os.write(terminal.fd, b"\x1b")
        # The program waits to see whether escape begins the sequence of another key.
        terminal.read(1.0)
    return took


def run(console: Console) -> None:
    """Measure and print."""
    console.print(_first_paints())
    ours = measure(["-m", "tests.bench.screen", "ccplay"], b"ccplay", keys=True)
    four = measure(["-m", "tests.bench.screen", "four"], b"ccplay", keys=True)
    haunted = measure(["-m", "tests.bench.screen", "haunted"], b"ccplay", keys=True)
    theirs = measure(["-m", "tests.bench.screen", "sparkline"], b"cwnd", keys=False)
    table = Table(title=f"the screen, {SIZE[0]}x{SIZE[1]}, {FLOWS} flows at 50 Hz, 10 frames/s")
    for column in ("", "first paint", "CPU of a core", "kB/s written", "key to paint p50", "p95"):
        table.add_column(column, justify="right")
    table.add_row("aim", "300 ms", "5 %", "15", "", "10 ms")
    programs = (("ccplay", ours), ("ccplay, four plots", four), ("ccplay with a ghost", haunted))
    for name, cost in programs:
        keys = sorted(cost.key_to_paint_s)
        p95 = keys[int(len(keys) * 0.95)]
        table.add_row(
            name,
            f"{cost.first_paint_s * 1e3:.0f} ms",
            f"{cost.cpu:.1%}",
            f"{cost.bytes_s / 1e3:.1f}",
            f"{statistics.median(keys) * 1e3:.1f} ms",
            f"{p95 * 1e3:.1f} ms",
        )
    table.add_row(
        "Textual's Sparkline, 3 of them",
        f"{theirs.first_paint_s * 1e3:.0f} ms",
        f"{theirs.cpu:.1%}",
        f"{theirs.bytes_s / 1e3:.1f}",
        "",
        "",
    )
    table.add_row(
        "ratio",
        "",
        f"{theirs.cpu / ours.cpu:.1f}x",
        f"{theirs.bytes_s / ours.bytes_s:.0f}x",
        "",
        "",
    )
    console.print(table)
    console.print(_dialogs())
    console.print(_windows.hours())


# --- the programs that are measured -----------------------------------------------------------


def play(
    flows: int, hz: float, ghost: Path | None = None, plots: tuple[str, ...] | None = None
) -> None:
    """Run the real screen on a synthetic live session; ``plots`` are shown, or the default ones."""
    from ccplay.session.session import Session
    from ccplay.session.steps import Script
    from ccplay.ui.app import CcplayApp
    from ccplay.ui.preferences import Preferences

    # The program does this until its first paint, too.
    gc.disable()
    session = Session(_source(flows, hz), title="bench", idle=Script([]).idle)
    mine = Preferences(plots=plots) if plots else None
    CcplayApp(session, ghost=ghost, preferences=mine).run()


def four(flows: int, hz: float) -> None:
    """Run the real screen on a synthetic live session with four plots."""
    play(flows, hz, plots=_windows.PLOTS)


def _source(flows: int, hz: float) -> Source:
    """Return a synthetic lab behind a pipe, like a real one."""
    player = [sys.executable, "-m", "tests.bench._player", str(flows), str(hz), "120"]
    return LabSource(player, Build())


def haunted(flows: int, hz: float) -> None:
    """Run the real screen on a synthetic live session, over a ghost with as many flows."""
    with tempfile.NamedTemporaryFile(suffix=".ccplay") as file:
        for event in stream(flows=flows, pairs=flows, hz=hz, seconds=90.0):
            file.write(wire.encode(event))
        file.flush()
        play(flows, hz, Path(file.name))


def sparkline(flows: int, hz: float) -> None:
    """Draw three series of the first flow of the same session with Textual's ``Sparkline``."""
    from textual.app import App, ComposeResult
    from textual.widgets import Label, Sparkline

    from ccplay.session.session import Session

    session = Session(_source(flows, hz))

    class Peer(App[None]):
        CSS = "Sparkline { height: 1fr; }"

        def compose(self) -> ComposeResult:
            for name in ("cwnd", "queue", "rtt"):
                yield Label(name)
                yield Sparkline([], id=name)

        def on_mount(self) -> None:
            self.run_worker(session.run())
            self.set_interval(0.1, self.draw)

        def draw(self) -> None:
            state = session.state
            if not state.flows or not state.queues:
                return
            flow, queue = state.flows["1"], state.queues["r1->r2"]
            end = state.sweeps.end
            for name, series in (
                ("cwnd", flow.series["cwnd"]),
                ("queue", queue.series["qlen"]),
                ("rtt", flow.series["srtt_us"]),
            ):
                self.query_one(f"#{name}", Sparkline).data = series.values(end - 200, end)

    asyncio.run(Peer().run_async())


PROGRAMS = {"ccplay": play, "four": four, "haunted": haunted, "sparkline": sparkline}

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program", choices=(*PROGRAMS, "table"))
    parser.add_argument("flows", type=int, nargs="?", default=FLOWS)
    parser.add_argument("hz", type=float, nargs="?", default=HZ)
    arguments = parser.parse_args()
    if arguments.program == "table":
        run(Console())
    else:
        PROGRAMS[arguments.program](arguments.flows, arguments.hz)
