"""``ccplay compare`` without a terminal: what it prints, and what it refuses."""

import json
from pathlib import Path

import msgspec
import pytest

from ccplay.analysis.results import CaseStatistics, Result
from ccplay.analysis.statistics import statistic
from ccplay.analysis.summary import summarise
from ccplay.cli import main
from ccplay.stream import wire
from tests.ui.synthetic import stream
from tests.unit.test_summary import session


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with two recordings and two directories of runs."""
    monkeypatch.chdir(tmp_path)
    for name, flows in (("a", 1), ("b", 2)):
        events = stream(flows=flows, seconds=8)
        (tmp_path / f"{name}.ccplay").write_bytes(b"".join(map(wire.encode, events)))
    for name, value in (("one", 1.0), ("two", 2.0)):
        found = {"jain": statistic([value, value + 0.1])}
        case = CaseStatistics(name="case", runs=2, metrics=found, reported=["jain"])
        run = summarise(session(), "case")
        result = Result(scenario="s", title="s", machine=None, cases=[run], statistics=[case])
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_bytes(msgspec.json.encode(result))
        (tmp_path / name / "scenario.toml").write_text("# nobody reads it here\n")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_two_recordings_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "a.ccplay", "b.ccplay"]) == 0
    out = capsys.readouterr().out
    assert "goodput" in out
    assert "flow 2" in out
    assert "Without repeats" in out


@pytest.mark.usefixtures("folder")
def test_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "a.ccplay", "b.ccplay", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["format"], found["a"], found["b"]) == (1, "a.ccplay", "b.ccplay")
    metrics = {each["figure"]: each for each in found["cases"][0]["figures"]}
    assert metrics["flows.1.goodput_bps"]["difference"] < 0
    assert metrics["flows.2.goodput_bps"]["a"] is None
    assert metrics["flows.1.goodput_bps"]["clear"] is None


@pytest.mark.usefixtures("folder")
def test_two_directories_of_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "one", "two"]) == 0
    out = capsys.readouterr().out
    assert "2 and 2 runs" in out
    assert "+1.00 ± 0.30 +95*" in " ".join(out.split())


@pytest.mark.usefixtures("folder")
def test_a_recording_and_the_only_case_of_a_directory(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody can say of one run whether it differs clearly."""
    assert main(["compare", "a.ccplay", "one", "--json"]) == 0
    case = json.loads(capsys.readouterr().out)["cases"][0]
    assert (case["a"], case["b"], case["runs_a"], case["runs_b"]) == ("a", "case", 1, 2)
    assert not any(each["clear"] for each in case["figures"])


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["a.ccplay", "none.ccplay"], 4, "none.ccplay: No such file"),
        (["one", "."], 4, "not a run directory"),
    ],
)
def test_what_can_t_be_compared_is_refused(
    capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    assert main(["compare", *words]) == code
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_a_ghost_needs_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", "--ghost", "a.ccplay"]) == 2
    assert "needs a terminal" in capsys.readouterr().err
