"""Ctrl-C while attached: the question comes last on the terminal."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ccplay.experiment import runner
from ccplay.experiment.plan import RunOptions
from ccplay.experiment.pool import LocalWorker, RemoteWorkers
from ccplay.experiment.trial import Handover
from ccplay.model.commands import Build
from ccplay.report.terminal.progress_display import Printer
from ccplay.scenario.reading import parse
from tests.unit.test_headless import TEXT, Interrupted, QuickLab


class Continuing(RemoteWorkers):
    """A worker that would go on by itself."""

    def pause(self) -> None:
        """Do nothing."""

    async def hand_over(self, handover: Handover) -> None:
        """Do nothing."""


async def test_all_progress_is_written_before_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A slow terminal would erase a question that came before the last line of progress."""
    shown: list[str] = []
    gate = threading.Event()
    write, drain = Printer._write_whole, Printer.drain

    def late(printer: Printer, data: bytes) -> None:
        gate.wait(10)
        write(printer, data)

    def drained(printer: Printer, within_s: float | None) -> None:
        gate.set()
        drain(printer, 10 if within_s is None else max(within_s, 10))

    async def ask(*_: object) -> bool:
        shown.append(capfd.readouterr().err)
        return True

    monkeypatch.setattr(Printer, "_write_whole", late)
    monkeypatch.setattr(Printer, "drain", drained)
    monkeypatch.setattr(runner, "offer_handover", ask)

    @asynccontextmanager
    async def elsewhere(joining: runner.ExperimentInfo) -> AsyncIterator[Continuing]:
        yield Continuing(LocalWorker(Interrupted, 1, joining.stop))

    def none_here(_: Build) -> QuickLab:
        raise AssertionError

    wanted = RunOptions(out=tmp_path / "out", away="attach")
    text = TEXT.replace("20 s", "10 min")
    scenario = tmp_path / "t.toml"
    scenario.write_text(text)
    assert await runner.run_scenario(parse(text, scenario), none_here, wanted, elsewhere) == 0
    assert "1 to run" in shown[0]
    assert "interrupted" not in shown[0], "the run may go on there"
