"""A headless run plays each case to its end, tells what happens and prints what was measured."""

import asyncio
import io
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from ccplay.analysis.results import Result
from ccplay.errors import LabError
from ccplay.experiment import runner, trial
from ccplay.experiment.plan import RunOptions
from ccplay.experiment.runner import Experiment
from ccplay.model.base import Command, Event
from ccplay.model.commands import Build, Mark, StartTogether
from ccplay.model.events import Applied, Ended, Failed, Ready
from ccplay.model.samples import Sweep
from ccplay.model.values import Feature
from ccplay.report.terminal.progress_display import ProgressDisplay
from ccplay.scenario.reading import parse
from ccplay.scenario.values import Scenario
from ccplay.stream.sources import Source
from ccplay.stream.wire import UnknownEvent
from ccplay.traffic.flow import FlowEnded, FlowStarted, StartFlow, StopFlow
from ccplay.traffic.ping import PingEnded, PingSample, PingStarted, StartPing
from tests.unit.test_summary import HELLO, sweep

TEXT = """
title = "T"
duration = "20 s"
topology.kind = "linear"
timeline = [
  { at = "1 s", do = "start-flow", cc = "reno" },
  { at = "2 s", do = "start-ping", count = 3 },
  { after = "p1", at = "1 s", do = "mark", text = "done" },
]
"""
CAPABILITIES = replace(
    HELLO.capabilities, congestion_controls=[Feature(name="reno", available=True)]
)


class QuickLab:
    """A lab whose clock runs as fast as events are read; its end drops commands that wait."""

    live = True

    def __init__(self, build: Build, *, dies_at: float = 1e9) -> None:
        self.build = build
        self.dies_at = dies_at
        self._answers: list[Event] = []
        self._closed = False
        self._t = 0.5

    async def events(self) -> AsyncIterator[Event | UnknownEvent]:
        yield replace(HELLO, capabilities=CAPABILITIES)
        yield Ready(t=self._t)
        while not self._closed:
            self._t += 0.1
            yield Sweep(t=self._t)
            while self._answers and not self._closed:
                yield self._answers.pop(0)
                await asyncio.sleep(0)
            if self._t > self.dies_at:
                raise LabError("the lab ended by signal 9")
            await asyncio.sleep(0)
        yield Ended(t=self._t, reason="stdin ended")

    def send(self, command: Command) -> None:
        t = self._t
        match command:
            case StartFlow(flow=str(flow)):
                started = FlowStarted(t=t, flow=flow, src="h1", dst="h2", cc="reno", port=1)
                self._answers += [started]
            case StopFlow(flow="refused"):
                self._answers += [Failed(t=t, command=command, message="no flow")]
                return
            case StopFlow(flow=flow):
                ended = FlowEnded(t=t, flow=flow, bytes=5_000, duration_s=t - 1.5, retransmits=2)
                self._answers += [ended]
            case StartPing(ping=str(ping)):
                self._answers += [
                    PingStarted(t=t, ping=ping, src="h1", dst="h2", interval_s=0.2),
                    PingSample(t=t + 0.01, ping=ping, seq=1, rtt_us=20_000.0),
                    PingEnded(t=t + 0.02, ping=ping, sent=1, lost=0),
                ]
            case _:
                pass
        assert not isinstance(command, StartTogether)
        self._answers.append(Applied(t=t, command=command))

    async def close(self) -> None:
        self._closed = True


class Stillborn(QuickLab):
    """A lab that does not start."""

    async def events(self) -> AsyncIterator[Event | UnknownEvent]:
        raise LabError("can't start")
        yield


class Interrupted(QuickLab):
    """A lab in whose first case somebody presses Ctrl-C."""

    def send(self, command: Command) -> None:
        super().send(command)
        if isinstance(command, StartPing):
            os.kill(os.getpid(), signal.SIGINT)


async def measure(
    scenario: Scenario, start: Callable[[Build], Source], record: Path | None = None
) -> Result:
    display = ProgressDisplay(Console(file=io.StringIO()), 1)
    return await Experiment(scenario, start, asyncio.Event(), display, record=record).measure()


async def test_a_case_runs_to_its_end_and_its_flow_is_stopped_for_exact_figures() -> None:
    result = await measure(parse(TEXT, Path("t.toml")), QuickLab)
    (case,) = result.cases
    assert case.errors == []
    assert 20 <= case.duration_s < 21
    assert (case.flows[0].bytes, case.flows[0].retransmits) == (5_000, 2)
    assert case.pings[0].p50_ms == 20.0
    assert result.machine is not None
    assert result.machine.kernel == "6.18.0"


async def test_until_all_ends_when_the_limited_traffic_has() -> None:
    text = 'until = "all"\n' + TEXT
    result = await measure(parse(text, Path("t.toml")), QuickLab)
    assert result.cases[0].duration_s < 6


async def test_until_first_ends_with_the_first_transfer_and_does_not_stop_it_again() -> None:
    """A second stop would be refused, and a refusal is an error of the case."""
    stopped: list[str] = []

    class Race(QuickLab):
        async def events(self) -> AsyncIterator[Event | UnknownEvent]:
            async for event in super().events():
                yield event
                if isinstance(event, Sweep) and 3.0 < event.t < 3.1:
                    yield sweep(event.t, {"1": 6, "2": 4})
                    done = FlowEnded(t=3.1, flow="1", bytes=6_000, duration_s=2.0, retransmits=0)
                    self._answers.append(done)

        def send(self, command: Command) -> None:
            super().send(command)
            if isinstance(command, StopFlow):
                stopped.append(command.flow)

    text = """
duration = "20 s"
until = "first"
topology.kind = "linear"
timeline = [
  { at = "0 s", do = "start-flow", cc = "reno", bytes = "5 kB" },
  { at = "0 s", do = "start-flow", cc = "reno", bytes = "5 kB" },
  { at = "9 s", do = "mark", text = "never comes, and need not" },
]
"""
    result = await measure(parse(text, Path("t.toml")), Race)
    (case,) = result.cases
    assert case.errors == []
    assert case.checkpoint is not None
    assert case.checkpoint.bytes == {"1": 5_999, "2": 3_999}
    assert case.duration_s < 4
    assert stopped == ["2"]


async def test_ctrl_c_prints_what_was_measured(capfd: pytest.CaptureFixture[str]) -> None:
    """The signal comes in the middle of the first case; the second never starts."""
    labs: list[QuickLab] = []

    def start(build: Build) -> QuickLab:
        labs.append(Interrupted(build))
        return labs[-1]

    text = TEXT.replace("20 s", "10 min") + '[[case]]\nname = "a"\n[[case]]\nname = "b"\n'
    code = await runner.run_scenario(parse(text, Path("t.toml")), start, RunOptions(as_json=True))
    assert code == runner.KILLED + signal.SIGINT
    assert len(labs) == 1
    (case,) = json.loads(capfd.readouterr().out)["cases"]
    assert case["interrupted"] is True
    assert case["flows"][0]["bytes"] == 5_000


async def test_a_lab_that_dies_leaves_its_figures_and_an_error() -> None:
    result = await measure(parse(TEXT, Path("t.toml")), lambda build: QuickLab(build, dies_at=5.0))
    assert result.cases[0].errors == ["the lab ended by signal 9"]
    assert result.cases[0].pings[0].sent == 1


async def test_a_lab_is_silent_only_where_nothing_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guest may take longer than its case lasts, as long as it speaks."""

    class SlowLab(QuickLab):
        def __init__(self, build: Build, *, silent_from: float = 1e9) -> None:
            super().__init__(build)
            self._silent_from = silent_from
            self._gone = asyncio.Event()

        async def events(self) -> AsyncIterator[Event | UnknownEvent]:
            async for event in super().events():
                yield event
                if event.t > self._silent_from:
                    await self._gone.wait()
                # Only now and then, or the test would take a while.
                if isinstance(event, Sweep) and round(event.t * 10) % 50 == 0:
                    await asyncio.sleep(0.06)

        async def close(self) -> None:
            self._gone.set()
            await super().close()

    monkeypatch.setattr(trial, "_SILENCE_LIMIT_S", 0.1)
    scenario = parse(TEXT, Path("t.toml"))
    assert (await measure(scenario, SlowLab)).cases[0].errors == []
    silent = await measure(scenario, lambda build: SlowLab(build, silent_from=5.0))
    assert silent.cases[0].errors == ["the lab stopped responding"]


async def test_a_lab_that_does_not_start_ends_the_run_unless_there_are_results() -> None:
    labs = iter([QuickLab, Stillborn, QuickLab])
    cases = "".join(f'[[case]]\nname = "{name}"\n' for name in "abc")
    scenario = parse(TEXT + cases, Path("t.toml"))

    def start(build: Build) -> QuickLab:
        return next(labs)(build)

    result = await measure(scenario, start)
    assert [case.errors for case in result.cases] == [[], ["can't start"], []]
    with pytest.raises(LabError, match="can't start"):
        await measure(scenario, Stillborn)


async def test_steps_that_the_lab_did_not_get_to_are_errors_that_name_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of many the first three are named."""

    class Stuck(QuickLab):
        stuck = False

        def send(self, command: Command) -> None:
            self.stuck = self.stuck or isinstance(command, Mark)
            if not self.stuck:
                super().send(command)

    many = "".join(f'{{ at = "1.5 s", do = "mark", text = "{n}" }},\n' for n in range(1_000))
    text = TEXT.replace("]\n", many + "]\n").replace('"20 s"', '"5 s"')
    monkeypatch.setattr(trial, "_STOP_LIMIT_S", 0.1)
    result = await measure(parse(text, Path("t.toml")), Stuck)
    assert result.cases[0].errors == [
        "timeline[2] was never due",
        *(
            f"timeline[{n + 3}], {Mark(text=str(n)).describe()} at 1.5 s, "
            "did not take effect before the end"
            for n in range(3)
        ),
        "998 more steps did not take effect before the end",
    ]


@pytest.mark.parametrize("until", ["all", "duration"])
async def test_steps_at_the_end_take_effect_before_the_lab_ends(until: str) -> None:
    marks = '{ at = "5 s", do = "mark", text = "end" },\n' * 9
    text = f'duration = "5 s"\nuntil = "{until}"\ntimeline = [\n{marks}]\n'
    scenario = parse(f'{text}topology.kind = "linear"\n', Path("t.toml"))
    (case,) = (await measure(scenario, QuickLab)).cases
    assert case.errors == []


async def test_a_run_whose_end_came_late_is_not_to_be_trusted() -> None:
    """As where ccplay is suspended over it: the lab's clock goes on, and its flows too."""

    class Suspended(QuickLab):
        def send(self, command: Command) -> None:
            if isinstance(command, StopFlow):
                self._t += 5.0
            super().send(command)

    (case,) = (await measure(parse(TEXT, Path("t.toml")), Suspended)).cases
    assert case.health.late_steps == 1
    (late,) = [each for each in case.health.reasons if "took effect" in each]
    assert late.startswith("the step due at 20.0 s (flow 1 stops) took effect at 25.")


def test_every_case_is_recorded_in_a_file_of_its_own(tmp_path: Path) -> None:
    scenario = parse(TEXT + '[[case]]\nname = "Reno, 20"\n[[case]]\nname = "b"\n', Path("t.toml"))
    record = tmp_path / "run.jsonl"
    asyncio.run(measure(scenario, QuickLab, record=record))
    assert (tmp_path / "run-2-b.jsonl").exists()
    lines = (tmp_path / "run-1-reno-20.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["event"] == "hello"
    assert json.loads(lines[-1])["event"] == "ended"


async def test_progress_without_a_terminal_is_plain_lines() -> None:
    out = io.StringIO()
    scenario = parse(TEXT, Path("t.toml"))
    with ProgressDisplay(Console(file=out, width=80), 1) as display:
        await Experiment(scenario, QuickLab, asyncio.Event(), display).measure()
    text = out.getvalue()
    assert "\x1b" not in text
    assert "ping p1 ended: 1 sent, 0 lost" in text
    assert "done" in text
