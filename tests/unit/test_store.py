"""A run directory keeps finished runs complete, and touches only files of its own."""

import json
import os
import re
import tracemalloc
from functools import partial
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from ccplay.analysis.results import CaseResult
from ccplay.analysis.summary import summarise
from ccplay.cli.runs import gather
from ccplay.errors import RecordingError, UsageError
from ccplay.experiment.plan import CollectedRuns, PlannedRun, plan_runs
from ccplay.experiment.store import Folder, Store, read_run_directory, recording_of, scenario_of
from ccplay.scenario.reading import load, parse
from ccplay.scenario.values import Scenario
from ccplay.state.lab_state import LabState

TEXT = """
duration = "20 s"
repeats = 2
topology.kind = "linear"
links.bottleneck = { rate = "10 Mbit/s", queue = { kind = "pfifo", limit = 50 } }
timeline = [{ at = "0 s", do = "start-flow" }]
[[case]]
name = "a"
[[case]]
name = "b"
"""


def scenario(folder: Path, text: str = TEXT, name: str = "mine") -> Scenario:
    path = folder / f"{name}.toml"
    path.write_text(text)
    return parse(text, path)


def finish(store: Store, run: PlannedRun) -> CaseResult:
    """Keep a run that measured nothing."""
    store.recording(run).write_bytes(b"the stream\n")
    result = replace(
        summarise(LabState(), run.case.name), repeat=run.repeat, recording=store.recording_name(run)
    )
    store.keep(run, result, None, 1.0, [])
    gathering = CollectedRuns(store.scenario)
    gathering.add(result)
    store.sum_up(gathering.result())
    return result


def test_what_was_finished_is_found_again(tmp_path: Path) -> None:
    mine = scenario(tmp_path)
    with Store(tmp_path / "out" / "deep", mine) as store:
        assert store.finished == {}
        result = finish(store, plan_runs(mine)[2])
    with Store(tmp_path / "out" / "deep", mine) as store:
        assert list(store.finished) == [("a", 2)]
        assert store.finished["a", 2].result == result
    assert read_run_directory(tmp_path / "out" / "deep").cases == [result]
    assert scenario_of(tmp_path / "out" / "deep") == TEXT
    recording = recording_of(tmp_path / "out" / "deep", result)
    assert recording == tmp_path / "out" / "deep" / "runs" / "a-2.ccplay"
    assert recording.read_bytes() == b"the stream\n"
    with Store(tmp_path / "out" / "deep", mine) as store:
        doubtful = replace(result, health=replace(result.health, trustworthy=False))
        store.finished["a", 2] = replace(store.finished["a", 2], result=doubtful)
        store.forget_untrusted()
        assert store.finished == {}, "the run is made again"


def test_a_run_that_was_broken_off_is_recorded_anew(tmp_path: Path) -> None:
    mine = scenario(tmp_path)
    with Store(tmp_path / "out", mine) as store:
        store.recording(plan_runs(mine)[0]).write_bytes(b"half a li")
    with Store(tmp_path / "out", mine) as store:
        assert store.finished == {}
        assert not store.recording(plan_runs(mine)[0]).exists()


def test_what_the_command_line_said_stands_above_the_scenario(tmp_path: Path) -> None:
    path = scenario(tmp_path).path
    setting = "links.bottleneck.rate=5 Mbit/s"
    with Store(tmp_path / "out", parse(TEXT, path, [setting])):
        assert scenario_of(tmp_path / "out").startswith(f"# as run: --set {setting}\n")


def test_the_file_of_a_published_curve_is_beside_the_scenario_that_was_run(tmp_path: Path) -> None:
    (tmp_path / "theirs.csv").write_text("size,value\n50,0.7\n")
    axis = 'matrix.size = { path = "links.bottleneck.queue.limit", values = [50] }\n'
    curve = 'published = [{ metric = "jain", curve = "theirs.csv" }]\n'
    with Store(tmp_path / "out", scenario(tmp_path, axis + curve + TEXT)):
        (case, *_) = load(tmp_path / "out" / "scenario.toml").cases
    assert case.published[0].values == (0.7,)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("limit = 50", "limit = 20"), r'a", run 1 .*qdisc.options.limit was 50, is 20'),
        (('"20 s"', '"30 s"'), "duration_s was 20.0, is 30.0"),
        (('name = "a"', 'name = "c"'), 'case "a" is no longer in mine.toml'),
        (('at = "0 s"', 'at = "1 s"'), r"timeline\[0\].at_s was 0.0, is 1.0"),
    ],
)
def test_a_changed_scenario_is_refused(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    mine = scenario(tmp_path)
    with Store(tmp_path / "out", mine) as store:
        finish(store, plan_runs(mine)[0])
    changed = scenario(tmp_path, TEXT.replace(*change))
    with pytest.raises(UsageError, match=told), Store(tmp_path / "out", changed):
        pass
    assert scenario_of(tmp_path / "out") == TEXT


def test_a_shared_directory_keeps_the_runs_of_other_cases(tmp_path: Path) -> None:
    mine = scenario(tmp_path)
    with Store(tmp_path / "out", mine) as store:
        finish(store, plan_runs(mine)[0])
    other = scenario(tmp_path, TEXT.replace('name = "a"', 'name = "c"'))
    with Store(tmp_path / "out", other, shared=True) as store:
        assert store.finished == {}
        finish(store, plan_runs(other)[0])
    found = read_run_directory(tmp_path / "out")
    assert sorted(each.name for each in found.cases) == ["a", "c"]
    clash = scenario(tmp_path, TEXT.replace('name = "a"', 'name = "A"'))
    with pytest.raises(UsageError, match="no longer"), Store(tmp_path / "out", clash, shared=True):
        pass


def test_other_words_and_more_repeats_are_no_change(tmp_path: Path) -> None:
    mine = scenario(tmp_path)
    with Store(tmp_path / "out", mine) as store:
        finish(store, plan_runs(mine)[0])
    text = TEXT.replace("repeats = 2", 'repeats = 5\ntitle = "New"\nmetrics = ["jain"]')
    with Store(tmp_path / "out", scenario(tmp_path, text)) as store:
        assert list(store.finished) == [("a", 1)]


def test_another_scenario_or_anything_else_is_refused(tmp_path: Path) -> None:
    with Store(tmp_path / "out", scenario(tmp_path)):
        pass
    other = scenario(tmp_path, name="other")
    with pytest.raises(UsageError, match='has runs of "mine", not of "other"'):
        Store(tmp_path / "out", other).__enter__()
    with pytest.raises(UsageError, match="is not a run directory"):
        Store(tmp_path, other).__enter__()
    assert not (tmp_path / "runs").exists()


def test_two_can_not_write_one_directory(tmp_path: Path) -> None:
    mine = scenario(tmp_path)
    with (
        Store(tmp_path / "out", mine),
        pytest.raises(UsageError, match="in use by another ccplay"),
        Store(tmp_path / "out", mine),
    ):
        pass
    with Store(tmp_path / "out", mine):
        pass


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    """Links are not followed: the directory may be another user's while ccplay runs as root."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    mine = scenario(tmp_path)
    run = plan_runs(mine)[0]
    with Store(tmp_path / "out", mine) as store:
        for name in ("a-1.ccplay", "a-1.json", ".a-1.json.new"):
            (tmp_path / "out" / "runs" / name).symlink_to(precious)
        finish(store, run)
    assert precious.read_text() == "mine"
    (tmp_path / "out" / "runs" / "a-1.json").unlink()
    (tmp_path / "out" / "runs" / "a-1.json").symlink_to(precious)
    with pytest.raises(RecordingError), Store(tmp_path / "out", mine):
        pass


@pytest.mark.parametrize(
    "name",
    ["../outside.ccplay", "runs/../../outside.ccplay", "/etc/passwd", "runs/..", "runs/", "", "x"],
)
def test_a_recording_elsewhere_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    """No file outside of the directory is read, or counted as a run."""
    mine, out = scenario(tmp_path), tmp_path / "out"
    with Store(out, mine) as store:
        stray = replace(finish(store, plan_runs(mine)[0]), recording=name)
    told = rf"cases\[0\]\.recording: {re.escape(json.dumps(name))} is not a file in runs/"
    rewrite(out / "result.json", cases=[stray])
    for outline in (False, True):
        with pytest.raises(RecordingError, match=rf"^{out}/result\.json: {told}$"):
            read_run_directory(out, outline=outline)
    rewrite(out / "result.json", cases=[])
    rewrite(out / "runs" / "a-1.json", result=stray)
    told = told.replace(r"cases\[0\]", "result")
    for read in (partial(read_run_directory, out), Store(out, mine).__enter__):
        with pytest.raises(RecordingError, match=rf"^{out}/runs/a-1\.json: {told}$"):
            read()


def rewrite(path: Path, **fields: object) -> None:
    """Change some members of the object in a file."""
    path.write_bytes(msgspec.json.encode(json.loads(path.read_bytes()) | fields))


@pytest.mark.parametrize("name", ["result.json", "scenario.toml", "runs/a-1.json", "runs"])
@pytest.mark.parametrize("kind", ["symlink", "FIFO"])
def test_only_plain_files_of_a_run_directory_are_read(tmp_path: Path, name: str, kind: str) -> None:
    """A FIFO would block the reader forever, and a symlink may lead to any file."""
    mine, out = scenario(tmp_path), tmp_path / "out"
    with Store(out, mine) as store:
        finish(store, plan_runs(mine)[0])
    there = out / name
    there.rename(tmp_path / "away")
    if kind == "FIFO":
        os.mkfifo(there)
    else:
        there.symlink_to(tmp_path / "away")
    (tmp_path / "empty.json").write_bytes(
        msgspec.json.encode(json.loads((out / "result.json").read_bytes()) | {"cases": []})
        if name.startswith("runs")
        else b""
    )
    if name.startswith("runs"):
        (tmp_path / "empty.json").rename(out / "result.json")
    with pytest.raises(RecordingError, match=f"^{there}: "):
        gather([out])


def test_a_recording_is_a_plain_file_or_missing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "runs").mkdir(parents=True)
    (out / "runs" / "link.ccplay").symlink_to("/etc/passwd")
    os.mkfifo(out / "runs" / "pipe.ccplay")
    run = summarise(LabState(), "a")
    for name, told in (("link", "a symlink"), ("pipe", "no regular file")):
        named = replace(run, recording=f"runs/{name}.ccplay")
        with pytest.raises(RecordingError, match=f"{name}.ccplay: it is {told}"):
            recording_of(out, named)
    assert recording_of(out, replace(run, recording="runs/none.ccplay")) is None
    assert recording_of(out, run) is None


def test_files_of_a_run_directory_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, out = scenario(tmp_path), tmp_path / "out"
    with Store(out, mine) as store:
        for run in plan_runs(mine):
            finish(store, run)
    for name, most, told in (
        ("MOST_OF_RESULT", 500, "result.json: it is larger than 500 B"),
        ("_LEAST_OF_VALUE", 1 << 24, "result.json: more than 16 values"),
        ("MOST_OF_RUN", 400, "runs/a-1.json: it is larger than 400 B"),
        ("MOST_OF_RUNS", 3000, "runs: its .json files are larger than 3 kB together"),
        ("MOST_FILES", 7, "runs: more than 7 files"),
        ("MOST_OF_SCENARIO", 100, "scenario.toml: it is larger than 100 B"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(f"ccplay.experiment.store.{name}", most)
            with pytest.raises(RecordingError, match=told):
                gather([out])


def test_a_result_of_three_gigabytes_takes_no_memory(tmp_path: Path) -> None:
    with (tmp_path / "result.json").open("wb") as file:
        file.truncate(3 << 30)
    tracemalloc.start()
    try:
        with pytest.raises(RecordingError, match=r"result\.json: it is larger than 268 MB"):
            read_run_directory(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "is not a run directory"),
        ("{", "not a file of ccplay"),
        ("[" * 100_000, "not a file of ccplay"),
        ('{"scenario": "1e300", "x": [5,1e100]}', "a number of 1e100 or more"),
        ('{"scenario": "a:1e300", "x": "\\"", "title": 5}', r"Expected `str`, got `int`"),
        ('{"format": 99, "scenario": "x", "title": "", "machine": null, "cases": []}', "update"),
    ],
)
def test_what_can_not_be_read_is_reported(tmp_path: Path, content: str | None, told: str) -> None:
    if content is not None:
        (tmp_path / "result.json").write_text(content)
    with pytest.raises(RecordingError, match=told):
        read_run_directory(tmp_path)


def test_a_stranger_s_result_does_not_reach_the_terminal_as_commands(tmp_path: Path) -> None:
    content: dict[str, object] = {"scenario": "x\x1b[2J", "title": "", "machine": None, "cases": []}
    (tmp_path / "result.json").write_text(json.dumps(content))
    assert "\x1b" not in read_run_directory(tmp_path).scenario


def test_a_file_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file keeps its old contents if the disk is full while it is written."""
    folder = Folder.make(tmp_path)
    folder.write("x", b"before")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(RecordingError, match="x: No space left on device"):
            folder.write("x", b"after")
    assert folder.read("x") == b"before"
    folder.write("x", b"after")
    assert folder.read("x") == b"after"
    folder.close()


def test_a_result_that_was_written_early_is_completed_from_the_runs(tmp_path: Path) -> None:
    """A result that lacks the last runs, as after a crash, is completed from their files.

    With many runs, not each of them rewrites the result.
    """
    mine = scenario(tmp_path, TEXT.replace("repeats = 2", "repeats = 9"))
    with Store(tmp_path / "out", mine) as store:
        gathering = CollectedRuns(mine)
        due = []
        for run in plan_runs(mine):
            result = replace(
                summarise(LabState(), run.case.name),
                repeat=run.repeat,
                recording=store.recording_name(run),
                jain=run.repeat / 10,
            )
            store.keep(run, result, None, 1.0, [])
            gathering.add(result)
            due.append(store.is_due())
            if due[-1] and len(due) < 12:
                store.sum_up(gathering.result())
    assert due[:8] == [True] * 8
    assert sum(due[8:12]) == 2
    written = msgspec.json.decode((tmp_path / "out" / "result.json").read_bytes())
    assert len(written["cases"]) < len(plan_runs(mine))
    out, whole = tmp_path / "out", gathering.result()
    assert read_run_directory(out) == whole
    assert read_run_directory(out, outline=True) == whole, "statistics take all runs"
    with Store(out, mine) as store:
        store.sum_up(whole)
    outline = read_run_directory(out, outline=True)
    assert outline.statistics == whole.statistics
    assert [(each.name, each.repeat, each.recording) for each in outline.cases] == [
        (each.name, each.repeat, each.recording) for each in whole.cases
    ]
    assert all(each.jain is None for each in outline.cases)
