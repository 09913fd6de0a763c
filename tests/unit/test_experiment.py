"""An experiment from scenario to result, with labs whose clock runs as fast as they are read."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from ccplay.errors import LabError, ScenarioError, UnsupportedError, UsageError
from ccplay.experiment import runner
from ccplay.experiment.plan import RunOptions
from ccplay.experiment.store import read_run_directory
from ccplay.model.base import Event
from ccplay.model.commands import Build
from ccplay.model.events import Ready
from ccplay.scenario.reading import parse
from ccplay.stream.sources import Source
from ccplay.stream.wire import UnknownEvent
from tests.events import health
from tests.unit.test_headless import TEXT, QuickLab, Stillborn

Done = tuple[int, Any, str]


class Watched(QuickLab):
    """A lab that tells how it was: ``busy`` as a share of the machine."""

    busy = 0.5

    async def events(self) -> AsyncIterator[Event | UnknownEvent]:
        async for event in super().events():
            yield event
            if isinstance(event, Ready):
                yield health(event.t, host_cpu=self.busy)


class Starved(Watched):
    busy = 1.0


class Dying(Watched):
    def __init__(self, build: Build) -> None:
        super().__init__(build, dies_at=5.0)


class Run:
    """Runs the scenario in ``folder``; ``labs`` holds the build of every lab that was started."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.path = folder / "mine.toml"
        self.labs: list[Build] = []
        self._capfd = capfd

    async def __call__(
        self, text: str, wanted: RunOptions, *first: Callable[[Build], Source]
    ) -> Done:
        """Return exit code, result and talk. The ``first`` labs are of these kinds."""
        self.path.write_text(text)
        kinds = iter(first)

        def start(build: Build) -> Source:
            self.labs.append(build)
            return next(kinds, Watched)(build)

        code = await runner.run_scenario(parse(text, self.path), start, wanted)
        told = self._capfd.readouterr()
        return code, json.loads(told.out) if told.out else None, told.err


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    return Run(tmp_path, capfd)


async def test_every_repeat_has_a_seed_of_its_own(run: Run) -> None:
    code, result, _ = await run(TEXT, RunOptions(repeats=3, as_json=True))
    assert code == 0
    assert [build.seed for build in run.labs] == [1, 2, 3]
    assert [case["repeat"] for case in result["cases"]] == [1, 2, 3]
    assert result["statistics"][0]["runs"] == 3


async def test_what_can_not_be_trusted_is_run_again_and_reported(run: Run) -> None:
    code, result, told = await run(TEXT, RunOptions(repeats=2, as_json=True), Starved)
    assert code == 0
    assert [case["attempt"] for case in result["cases"]] == [2, 1]
    assert [case["health"]["trustworthy"] for case in result["discarded"]] == [False]
    assert "run 1 is repeated: the machine was 100% busy" in told


async def test_a_case_that_is_run_again_keeps_its_number(run: Run, tmp_path: Path) -> None:
    text = TEXT + '[[case]]\nname = "a"\n[[case]]\nname = "b"\n'
    _, _, told = await run(text, RunOptions(out=tmp_path / "out", as_json=True), Starved)
    numbered = [line for line in told.splitlines() if line.startswith("case ")]
    assert numbered == ["case 1 of 2: a", "case 1 of 2: a, again", "case 2 of 2: b"]


async def test_a_single_run_is_only_marked(run: Run) -> None:
    _, result, told = await run(TEXT, RunOptions(as_json=True), Starved)
    assert len(run.labs) == 1
    assert "repeated" not in told
    assert result["cases"][0]["health"]["trustworthy"] is False
    assert result["statistics"][0]["untrustworthy"] == 1


async def test_it_repeats_until_the_mean_is_sure(run: Run) -> None:
    """Three pings that all took 20 ms could not be surer."""
    text = 'metrics = ["pings.p1.p50_ms"]\n' + TEXT
    code, result, told = await run(text, RunOptions(until_ci=0.05, as_json=True, jobs=2))
    assert code == 0
    assert result["statistics"][0]["figures"]["pings.p1.p50_ms"]["n"] == 3
    assert "not sure" not in told


async def test_what_never_gets_sure_is_reported(run: Run) -> None:
    wanted = RunOptions(until_ci=0.05, metric="flows.1.fct_s", as_json=True)
    # The lab of this test never reports that the flow is done.
    code, result, told = await run(TEXT.replace('cc = "reno"', 'bytes = "9 MB"'), wanted)
    assert code == 0
    assert len(result["cases"]) == 3
    assert "flows.1.fct_s was not measured often enough" in told


async def test_a_check_that_fails_is_the_exit_code(run: Run) -> None:
    expect = (
        'expect = [{ metric = "pings.p1.p50_ms", value = 10, tolerance = "10 %", why = "x" }]\n'
    )
    code, result, told = await run(expect + TEXT, RunOptions(as_json=True))
    assert code == 1
    assert result["cases"][0]["checks"][0]["ok"] is False
    assert told.splitlines()[-1].startswith("1 of 1 checks failed; the first: ")
    assert "pings.p1.p50_ms is 20.0 ms, not" in told


async def test_a_lab_that_died_is_reported_but_not_kept(run: Run, tmp_path: Path) -> None:
    """It is repeated by the same command."""
    wanted = RunOptions(repeats=2, out=tmp_path / "out", as_json=True)
    code, result, _ = await run(TEXT, wanted, Watched, Dying)
    assert code == LabError.exit_code
    assert result["cases"][1]["errors"] == ["the lab ended by signal 9"]
    assert len(json.loads((tmp_path / "out" / "result.json").read_text())["cases"]) == 1
    code, result, _ = await run(TEXT, wanted)
    assert code == 0
    assert len(run.labs) == 3
    recordings = [case["recording"] for case in result["cases"]]
    assert all((tmp_path / "out" / each).read_bytes() for each in recordings)


async def test_a_run_in_which_something_failed_is_kept_and_run_again(
    run: Run, tmp_path: Path
) -> None:
    """A full disk or a dead iperf3 is a reason to try again, not to forget that it was so."""
    wanted = RunOptions(out=tmp_path / "out", as_json=True)
    text = TEXT.replace('after = "p1", at = "1 s"', 'after = "p1", at = "19 s"')
    for _ in range(2):
        code, result, _ = await run(text, wanted)
        assert code == 1
        assert result["cases"][0]["errors"] == ["timeline[2] was never due"]
        assert (
            json.loads((tmp_path / "out" / "result.json").read_text())["cases"] == result["cases"]
        )
    assert len(run.labs) == 2


async def test_today_s_expectations_judge_what_was_kept(run: Run, tmp_path: Path) -> None:
    wanted = RunOptions(out=tmp_path / "out", as_json=True)
    assert (await run(TEXT, wanted))[0] == 0
    expect = 'expect = [{ metric = "pings.p1.p50_ms", at_most = 10, why = "x" }]\n'
    code, result, _ = await run(expect + TEXT, wanted)
    assert code == 1
    assert result["cases"][0]["checks"][0]["value"] == 20.0
    assert len(run.labs) == 1
    kept = read_run_directory(tmp_path / "out")
    assert [each.ok for each in kept.cases[0].checks] == [False], "a report is made of this"


async def test_cases_outside_of_a_choice_stay_in_the_result(run: Run, tmp_path: Path) -> None:
    text = TEXT + '[[case]]\nname = "a"\n[[case]]\nname = "b"\n'
    for name in "ba":
        wanted = RunOptions(cases=[name], out=tmp_path / "out", as_json=True)
        _, result, _ = await run(text, wanted)
    assert [case["name"] for case in result["cases"]] == ["a", "b"]
    assert len(run.labs) == 2


async def test_what_the_kernel_lacks_ends_it_even_where_there_are_results(
    run: Run, tmp_path: Path
) -> None:
    wanted = RunOptions(out=tmp_path / "out", as_json=True)
    text = TEXT + '[[case]]\nname = "a"\n'
    await run(text, wanted)
    with pytest.raises(UnsupportedError, match='"vegas" is not in this kernel'):
        await run(text + '[[case]]\nname = "b"\nhosts.h1.cc = "vegas"\n', wanted)


async def test_a_first_lab_that_does_not_start_ends_those_beside_it(run: Run) -> None:
    with pytest.raises(LabError, match="can't start"):
        await run(TEXT, RunOptions(repeats=3, jobs=3), Watched, Stillborn)


@pytest.mark.parametrize(
    ("wanted", "kind", "told"),
    [
        (RunOptions(repeats=2, record=Path("x")), UsageError, "--record keeps a single run"),
        (RunOptions(jobs=2, record=Path("x")), UsageError, "--record keeps a single run"),
        (RunOptions(until_ci=0.1), ScenarioError, "mine.toml: metrics: case .* has none"),
        (RunOptions(until_ci=0.1, metric="goodput_bp"), UsageError, 'did you mean "goodput_bps"'),
        (RunOptions(cases=["z"]), UsageError, "has no case"),
    ],
)
async def test_what_does_not_fit_is_refused_before_anything_starts(
    run: Run, wanted: RunOptions, kind: type[Exception], told: str
) -> None:
    with pytest.raises(kind, match=told):
        await run(TEXT, wanted)
    assert run.labs == []
