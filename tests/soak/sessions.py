"""Runs a session: a live screen, a replay or a headless run; checks its end and its recording."""

import contextlib
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from ccplay.errors import CcplayError
from ccplay.model.commands import Build
from ccplay.model.events import Applied
from ccplay.state.lab_state import LabState
from ccplay.stream.sources import recorded_events
from tests.lab.test_leaks import victims
from tests.soak import ending
from tests.soak.ending import Ending
from tests.soak.leaks import Traces
from tests.soak.patience import Patience
from tests.soak.playing import Hands
from tests.soak.tally import Failure, Tally
from tests.soak.terminal import ROOT, Terminal

START_S = 30.0
"""Seconds to wait for a first paint or a lab, which take one, or more beside other labs."""

END_S = 5.0
"""Seconds within which a program must end, time without a CPU excluded: 2 s and a reserve."""

RUN_S = 90.0
"""Seconds within which a headless run of up to 8 s must end; it may be repeated up to three times
for want of CPU time."""

READ_S = 180.0

_RUN = """\
title = "Soak"
duration = "{seconds} s"
links.bottleneck.rate = "{rate} Mbit/s"
links.bottleneck.delay = "{delay} ms"
links.bottleneck.queue = {{ kind = "pfifo", limit = {limit} }}
timeline = [
  {{ at = "0 s", do = "start-ping", ping = "p1" }},
  {{ at = "0.5 s", do = "start-flow", flow = "1", src = "s1", cc = "cubic" }},
  {{ at = "1 s", do = "start-udp", udp = "u1", rate = "1 Mbit/s" }},
  {{ at = "2 s", do = "set-link", loss = "0.5 %" }},
]
"""


@dataclass
class Session:
    """One session of a soak; depends on the seed, its number and the recording it can replay."""

    number: int
    tally: Tally
    folder: Path

    def __post_init__(self) -> None:
        self.chance = random.Random(f"{self.tally.seed}-{self.number}")
        self.terminal: Terminal | None = None
        """Terminal of the program that runs or ran last."""

    def long(self, seconds: float) -> None:
        """Run a live screen for ``seconds`` and quit it."""
        self._screen(seconds, ending.OF_SCREENS[0])

    def short(self) -> None:
        """Run a session of a random kind, with a random ending."""
        chance = self.chance
        seconds = chance.uniform(1.0, 30.0)
        match chance.choices(("screen", "replay", "run"), (6, 2, 2))[0]:
            case "screen":
                self._screen(seconds, chance.choice(ending.OF_SCREENS))
            case "replay":
                self._replay(seconds)
            case _:
                self._headless(seconds)

    @property
    def recording(self) -> Path:
        """Path of this session's recording."""
        return self.folder / "session.ccplay"

    @property
    def earlier(self) -> Path:
        """Path of an earlier session's recording, for replays and ghosts; exists from the start."""
        return self.folder / "earlier.ccplay"

    # --- kinds of sessions ------------------------------------------------------------------

    def _screen(self, seconds: float, how: Ending) -> None:
        scenario = self.chance.choice(("playground", "playground", "bufferbloat", "race"))
        words = [scenario, "--record", str(self.recording)]
        words += self.chance.choice(([], [], ["--ascii"], ["--theme", "light"], ["--hz", "200"]))
        self._on_a_screen(words, seconds, how)
        self._read_back()

    def _replay(self, seconds: float) -> None:
        words = ["replay", str(self.earlier), "--speed", self.chance.choice(("1", "4", "100"))]
        words += self.chance.choice(([], ["--at", "3"], ["--ghost", str(self.earlier)]))
        self._on_a_screen(words, seconds, self.chance.choice(ending.OF_REPLAYS))

    def _on_a_screen(self, words: list[str], seconds: float, how: Ending) -> None:
        terminal = Terminal(words, self.folder, self.chance.choice(("leader", "shell")))
        self.terminal = terminal
        traces = Traces(terminal.marker)
        hands = Hands(terminal, self.chance, self.tally.counts)
        if self.chance.random() < 0.2:
            hands.type_ahead()
        if not terminal.shown(START_S):
            self._fail(terminal, "no screen", how.name)
        hands.play(seconds)
        if hands.fault:
            self._fail(terminal, hands.fault, how.name)
        traces.look()
        if terminal.code() == 0 and hands.leaving_allowed and terminal.complaint is None:
            how = ending.LEFT
        self.tally.keep(hands.memory)
        self.tally.counts[f"screens ({'replay' if words[0] == 'replay' else 'live'})"] += 1
        self._end(terminal, traces, how, END_S)

    def _headless(self, seconds: float) -> None:
        chance, scenario = self.chance, self.folder / "soak.toml"
        length = chance.randint(3, 8)
        scenario.write_text(
            _RUN.format(
                seconds=length,
                rate=chance.choice((1, 10, 50)),
                delay=chance.choice((0, 5, 50)),
                limit=chance.choice((5, 50, 500)),
            )
        )
        how, kind = chance.choice(ending.OF_RUNS), chance.choice(("leader", "shell"))
        words = ["run", str(scenario), "--record", str(self.recording)]
        terminal = self.terminal = Terminal(words, self.folder, kind)
        traces = Traces(terminal.marker)
        deadline = time.monotonic() + START_S
        while not victims(terminal.marker, "lab") and time.monotonic() < deadline:
            time.sleep(0.02)
        if how is not ending.FINISHED:
            terminal.code(seconds / 4)
            # The run may finish before it is ended.
            how = how.or_finished(lambda: self._recorded_s() >= length)
        traces.look()
        self.tally.counts["runs without a screen"] += 1
        self._end(terminal, traces, how, RUN_S if how is ending.FINISHED else END_S)
        self._read_back()

    def _recorded_s(self) -> float:
        """Return the last moment of the recording in seconds; 0 if it can't be read."""
        with contextlib.suppress(OSError, CcplayError):
            return max(
                (getattr(event, "t", 0.0) for event in recorded_events(self.recording)), default=0.0
            )
        return 0.0

    # --- what must hold afterwards ----------------------------------------------------------

    def _end(self, terminal: Terminal, traces: Traces, how: Ending, within_s: float) -> None:
        early = terminal.code()
        patience = Patience()
        how.do(terminal)
        code = patience.code(terminal, within_s, how.do)
        self.tally.ends_s[how.name].append(patience.took_s)
        left = traces.left() if code is not None else []
        terminal.read_on()
        if code is None:
            took = f"{patience.took_s:.0f} s, {patience.lacked_s:.0f} of them on a busy machine,"
            how.do(terminal)
            if terminal.code(END_S) is not None:
                took += " until that was done again,"
            terminal.abort()
            self._fail(terminal, f"still running {took} after: {how.name}", how.name)
        elif early is not None and not how.itself:
            self._fail(terminal, f"ended by itself with exit code {early}", how.name)
        elif not how.right(code):
            self._fail(terminal, f"exit code {code} after: {how.name}", how.name)
        if terminal.complaint is not None:
            self._fail(terminal, f"wrote {terminal.complaint.decode()!r}", how.name)
        if left:
            self.tally.counts["leaks"] += len(left)
            self._fail(terminal, f"left behind: {', '.join(left[:5])}", how.name)
        if how.whole and code is not None and not _is_whole(self.recording):
            self._fail(terminal, "the last line of the recording is cut short", how.name)
        traces.end()
        terminal.code(START_S)
        terminal.close()
        self.tally.counts["bytes painted"] += terminal.written

    def _fail(self, terminal: Terminal, what: str, how: str) -> None:
        said = f"{terminal.kind}: ccplay {' '.join(terminal.words)}; ended by {how}"
        (self.folder / "screen.txt").write_text(terminal.text())
        self._note(what, said, terminal.text())

    def _note(self, what: str, how: str, said: str) -> None:
        failure = Failure(self.number, what, how, said)
        self.tally.failures.append(failure)
        print(f"\nsession {self.number}: {what}\n{how}", file=sys.stderr, flush=True)
        with (self.folder / "failures.txt").open("a") as file:
            file.write(f"{what}\n{how}\n{said}\n\n")

    def _read_back(self) -> None:
        """Check that the recording can be read, scripted, exported and, now and then, reported."""
        recording = self.recording
        if not recording.exists() or not recording.stat().st_size:
            return
        state = LabState()
        try:
            for event in recorded_events(recording):
                state.apply(event)
                if isinstance(event, Applied) and not isinstance(event.command, Build):
                    self.tally.counts["commands that took effect"] += 1
        except (CcplayError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            said = f"{type(error).__name__}: {error}"
            self._note("a recording can't be read", str(recording), said)
        if state.ready_at is None:
            # The session ended before its network was ready.
            return
        tries = [
            ["script", str(recording)],
            ["export", str(recording), "--to", str(self.folder / "data")],
        ]
        if self.chance.random() < 0.25:
            tries.append(["report", str(recording), "--to", str(self.folder / "report")])
        for words in tries:
            self._check(words)
        self.tally.counts["recordings read back"] += 1

    def _check(self, words: list[str]) -> None:
        said = f"not done within {READ_S:.0f} s"
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                [sys.executable, "-m", "ccplay", *words],
                check=False,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                capture_output=True,
                text=True,
                timeout=READ_S,
            )
            said = done.stderr[-1200:]
            if done.returncode == 0 and "Traceback" not in said:
                return
        self._note(f"ccplay {words[0]} fails", " ".join(words), said)


def _is_whole(recording: Path) -> bool:
    if not recording.exists() or not recording.stat().st_size:
        return True
    return recording.read_bytes().endswith(b"\n")
