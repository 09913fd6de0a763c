"""The command line where its streams are not what it is used to."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ccplay
from ccplay.cli import main, options
from ccplay.cli.screen import can_draw
from ccplay.scenario.reading import load
from tests.events import recorded
from tests.terminals import PATIENCE_S
from tests.ui.synthetic import stream


def test_a_full_disk_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["schema"]) == 1
    assert capsys.readouterr().err == "ccplay: can't write the output: No space left on device\n"


@pytest.mark.parametrize("stream", [0, 1, 2])
def test_a_closed_stream_is_none_to_die_of(stream: int) -> None:
    """What is closed is filled, so that no other file gets its number."""
    done = subprocess.run(
        [sys.executable, "-m", "ccplay", "schema"],
        preexec_fn=lambda: os.close(stream),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == b""
    assert stream == 1 or json.loads(done.stdout)


@pytest.mark.parametrize(("encoding", "able"), [("utf-8", True), ("latin-1", False)])
def test_a_locale_without_unicode_gets_plain_ascii(encoding: str, able: bool) -> None:
    assert can_draw(io.TextIOWrapper(io.BytesIO(), encoding=encoding)) is able


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("report x --too y", "ccplay report: unknown '--too'; did you mean --to?"),
        ("compare a b --jsn", "ccplay compare: unknown '--jsn'; did you mean --json?"),
        ("doctor x", "ccplay doctor: unknown 'x'"),
        ("script", "ccplay script: needs FILE"),
        ("algorithm", "ccplay algorithm: needs {new,check,list}"),
        ("replay x --speed 0", "ccplay replay: --speed: 0 is not above 0"),
        ("replay x --at 1:x", "ccplay replay: --at: 'x' is not a number"),
        ("replya x", "ccplay: no command 'replya'; did you mean 'replay'?"),
        ("report.toml", 'no scenario "report.toml": neither a file nor one that comes with ccplay'),
        ("run playgroud", 'did you mean "playground"?'),
        ("playgroud", 'did you mean "playground"?'),
        (
            "x.ccplay",
            "x.ccplay is not a scenario, but a recording: ccplay replay x.ccplay shows it",
        ),
        ("run mine.bpf.c", "is not a scenario; offer your own algorithm with ccplay --algo"),
        ("run runs", "Is a directory; the scenario that was run there is runs/scenario.toml"),
        ("run --algorithm mine", "--algorithm mine: no such file; did you mean mine.bpf.c?"),
        (
            "run --algorithm ./no.txt",
            "no.txt: an algorithm is named after its file, NAME.bpf.c: 'no.txt' is not a valid",
        ),
        ("algorithm check mine", "ccplay: mine: no such file; did you mean mine.bpf.c?"),
        (
            "export x.ccplay --to x.xlsx",
            "tables go into .csv or .parquet files, or into a directory",
        ),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line_with_what_was_meant(
    words: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.bpf.c").write_text("/* mine */")
    Path("x.ccplay").write_text('{"event":"hello","t":0.0}\n')
    Path("runs").mkdir()
    Path("runs/scenario.toml").touch()
    try:
        code = main(words.split())
    except SystemExit as end:
        code = int(end.code or 0)
    assert code
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


@pytest.mark.parametrize(("text", "moment"), [("90", 90.0), ("1:30", 90.0), ("00:01.5", 1.5)])
def test_a_moment_is_read_as_the_screen_writes_it(text: str, moment: float) -> None:
    assert options.seconds(text) == moment


UGLY = "ugly\x1b]0;owned\x07\x1b[31m\nccplay: all is well\u202e\x9b5m\udcff"
"""What a terminal obeys, a second line, bidirectional and C1 controls, a byte that is no text."""


@pytest.mark.parametrize(
    "words",
    [
        ["run", UGLY + ".toml"],
        ["run", "playground", "--case", UGLY],
        ["run", "playground", "--set", f"{UGLY}=1"],
        ["run", "playground", "--hz", UGLY],
        ["run", "playground", "--captures", UGLY],
        ["run", f"--{UGLY}"],
        ["replay", UGLY],
        ["report", UGLY],
        ["export", UGLY],
        ["script", UGLY],
        ["compare", UGLY, UGLY],
        ["algorithm", "check", UGLY],
        [UGLY],
    ],
)
@pytest.mark.parametrize("content", [None, "", "title = 1"])
def test_a_name_does_not_command_the_terminal(
    words: list[str],
    content: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path(UGLY).write_text(content)
    with pytest.raises(SystemExit) as ended:
        sys.exit(main(words))
    assert ended.value.code
    told = capsys.readouterr()
    assert told.out == ""
    lines = told.err.removesuffix("\n").split("\n")
    assert all(line.isprintable() for line in lines), told.err
    assert not any(line.startswith("ccplay: all is well") for line in lines)


def test_a_scenario_is_called_by_what_of_its_name_can_be_shown(tmp_path: Path) -> None:
    path = tmp_path / f"{UGLY}.toml"
    path.write_text('duration = "1 s"\n')
    scenario = load(path)
    for shown in (scenario.name, scenario.title, scenario.case().title):
        assert shown.isprintable()
        assert shown.startswith("ugly")


def test_all_scenarios_are_listed_with_those_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["list"]) == 0
    ours = capsys.readouterr().out
    assert "playground   Playground\n" in ours
    assert "bufferbloat  Bufferbloat  (8 cases)\n" in ours
    assert "folder" not in ours
    Path("mine.toml").write_text('title = "My own"\nduration = "1 s"\ntimeline = []\n')
    Path("wrong.toml").write_text('duration = "1 s"\ntimeline = 1\n')
    Path("pyproject.toml").write_text("[project]\n")
    Path("no.toml").write_text("[")
    assert main(["list"]) == 0
    here = capsys.readouterr().out.removeprefix(ours)
    assert here == (
        "\nin this folder:\n"
        "mine.toml    My own\n"
        "wrong.toml   refused: ccplay run wrong.toml shows why\n"
    )
    assert main(["list", "--json"]) == 0
    listed = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert listed["mine.toml"] == {"name": "mine.toml", "title": "My own", "cases": 1}
    assert listed["variants"]["cases"] == 52


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["replay"],
        ["report"],
        ["export"],
        ["script"],
        ["compare", "other"],
        ["algorithm", "check"],
        ["run", "--algorithm"],
    ],
    ids=" ".join,
)
def test_what_is_no_such_file_is_refused_in_one_line(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A pipe that nobody writes to would block for ever, a device never ends."""
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "other"):
        Path(name).touch()
    Path("zeros").write_bytes(b"\0" * 1000)
    Path("noise").write_bytes(bytes(range(256)) * 4)
    Path("folder").mkdir()
    os.mkfifo("pipe")
    Path("loop").symlink_to("loop")
    # Clang has more to say about what is no algorithm, and it has to be there.
    content = [] if "algorithm" in " ".join(words) else ["empty", "zeros", "noise"]
    for name in ("missing", "folder", "pipe", "loop", "x" * 300, "other/x", *content):
        assert main([*words, name]) in (1, 2, 3, 4), name
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.startswith("ccplay: ")
        assert told.err.count("\n") == 1, told.err


def test_a_report_runs_no_programs_or_modules_of_the_current_directory(tmp_path: Path) -> None:
    """It may be a stranger's: a report's workers are Pythons that would import from there."""
    recorded(tmp_path / "a.ccplay", stream(seconds=4.0, apart_s=1.0))
    for module in ("struct", "selectors", "socket"):
        (tmp_path / f"{module}.py").write_text("open('imported', 'w')\n")
    program = tmp_path / "unshare"
    program.write_text("#!/bin/sh\ntouch run\n")
    program.chmod(0o755)
    start = tmp_path / "bin" / "start"
    start.parent.mkdir()
    start.write_text(
        "import sys\nfrom ccplay.cli import main\n"
        "if __name__ == '__main__':\n    sys.exit(main())\n"
    )
    package = str(Path(ccplay.__file__).parents[1])
    environment = {"PATH": f":.:{os.environ['PATH']}", "PYTHONPATH": package}
    reported, _ = (
        subprocess.run(
            [sys.executable, str(start), *words],
            cwd=tmp_path,
            env=os.environ | environment,
            check=False,
            capture_output=True,
            text=True,
        )
        for words in (["report", "a.ccplay", "a.ccplay", "--out", "report"], ["doctor"])
    )
    assert (tmp_path / reported.stdout.strip()) == tmp_path / "report" / "index.html"
    rows = json.loads((tmp_path / "report" / "tables" / "flows.json").read_text())
    assert [row["case"] for row in rows] == ["a"] * 2 + ["a #2"] * 2, "each is a case of its own"
    assert not (tmp_path / "imported").exists()
    assert not (tmp_path / "run").exists()


def test_an_interrupt_that_python_ignores_still_ends_the_command() -> None:
    """Ctrl-C in a weak reference's callback, as each import has one, is not lost."""
    code = (
        "import signal, sys, time, weakref\n"
        "from ccplay import __main__, cli\n"
        "class Module: pass\n"
        "def wait():\n"
        "    module = Module()\n"
        "    ref = weakref.ref(module, lambda _: signal.raise_signal(signal.SIGINT))\n"
        "    del module\n"
        "    try: time.sleep(3600)\n"
        "    except KeyboardInterrupt: return 130\n"
        "    return 0\n"
        "cli.main = wait\n"
        "sys.exit(__main__.main())\n"
    )
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, capture_output=True, timeout=PATIENCE_S, check=False)

    assert (done.returncode, done.stderr) == (130, b"")
