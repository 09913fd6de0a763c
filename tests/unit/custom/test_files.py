"""The user's own disciplines are files with a name and parameters, which scenarios may set."""

from pathlib import Path

import pytest

from ccplay.cli import main
from ccplay.errors import CcplayError, ScenarioError, UsageError
from ccplay.lab.custom.loading import (
    DisciplineLibrary,
    SourceError,
    copy_source,
    custom_disciplines,
    fill_template,
    make_discipline,
    read_declaration,
    read_source,
)
from ccplay.lab.custom.trial import try_discipline
from ccplay.lab.disciplines import CLASSES
from ccplay.model import disciplines
from ccplay.model.base import Option
from ccplay.model.disciplines import validate
from ccplay.model.qdiscs import DisciplineKind
from ccplay.model.values import Qdisc
from ccplay.scenario.reading import load
from ccplay.scenario.rules import admit, driven
from ccplay.session import launch
from tests.unit.custom.sources import FIFO


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin and end each test without disciplines of the user's own."""
    monkeypatch.setattr(disciplines, "custom", {})


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("codel.py", "already is a queue discipline"),
        ("htb.py", "already is a queue discipline"),
        ("Mine.py", "not a valid name"),
        ("while.py", "not a valid name"),
        ("mine.bpf.c", "ends in .py"),
        ("a-b.py", "not a valid name"),
    ],
)
def test_a_discipline_is_named_after_its_file(file: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        custom_disciplines([Path(file)])


def test_two_files_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="both called 'mine'"):
        custom_disciplines([Path("mine.py"), Path("other/mine.py")])


def test_parameters_are_read_without_running_the_file() -> None:
    source = '''"""Does this and that.

More."""
PARAMETERS = {
    "limit": "50 packets", "target": "5 ms", "rate": "1 Mbit/s", "size": "150 kB",
    "weight": 0.5, "number": 8, "ecn": True, "mode": ("one", "two"), "threshold": "time",
}
raise RuntimeError("run")
'''
    found = read_declaration("mine", source)
    assert found.summary == "Does this and that"
    defaults = {each.name: each.default for each in found.parameters}
    assert defaults == {
        "limit": 50,
        "target": 5000,
        "rate": 1_000_000,
        "size": 150_000,
        "weight": 0.5,
        "number": 8,
        "ecn": True,
        "mode": "one",
        "threshold": None,
    }
    disciplines.custom["mine"] = found
    options: dict[str, Option] = {
        "target": "20 ms",
        "mode": "two",
        "threshold": "1 ms",
        "weight": 0.25,
    }
    assert validate(Qdisc(kind="mine", options=options)).options == {
        "target": 20_000,
        "mode": "two",
        "threshold": 1000,
        "weight": 0.25,
    }
    with pytest.raises(ValueError, match="unknown mode"):
        validate(Qdisc(kind="mine.py", options={"mode": "three"}))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def x(:", "mine.py:1: SyntaxError: invalid syntax"),
        ("\nPARAMETERS = 5", "mine.py:2: PARAMETERS must be a dictionary"),
        ('PARAMETERS = {\n "a": print}', "mine.py:2: PARAMETERS may have literal values only"),
        ('PARAMETERS = {"a": "5 parsecs"}', "mine.py:1: a: '5 parsecs' is not the value"),
        ('PARAMETERS = {"kind": 5}', "'kind' can't be the name"),
        ("x = '\0'", "null byte"),
    ],
)
def test_a_mistake_is_reported_with_its_line(source: str, said: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_declaration("mine", source)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1", "defines no class that derives from Discipline"),
        (FIFO.replace("def dequeue", "def leave"), "Mine has no method dequeue"),
        (FIFO.replace('"limit")', '"limits")', 1), "10: there is no parameter 'limits'"),
        (FIFO.replace("self.queue, self.limit", "self.queue, self.marks"), "OK"),
        (FIFO.replace("self.queue, self", "self.drops, self"), "self.drops is kept by the base"),
        (FIFO.replace('"mine_waiting_packets": len', '"Waiting": len'), "21: 'Waiting' can't be"),
        (FIFO.replace("len(self.queue)}", "'five'}"), "21: the statistic mine_waiting_packets"),
        ("raise SystemExit(3)", "mine.py:1: SystemExit: 3"),
        ("import nothing_of_that_name", "mine.py:1: ModuleNotFoundError"),
    ],
)
def test_what_cannot_be_loaded_is_refused_with_its_line(source: str, said: str) -> None:
    if said == "OK":
        make_discipline("mine", source, {}, 1)
        return
    with pytest.raises(SourceError) as caught:
        make_discipline("mine", source, {}, 1)
    assert said in str(caught.value)


def test_options_that_a_saved_file_no_longer_declares_are_ignored() -> None:
    queue = make_discipline("mine", FIFO, {"limit": 7, "gone": 1}, 1)
    assert queue.limit == 7  # type: ignore[attr-defined]


def test_the_template_and_each_of_ours_begin_as_one_that_works() -> None:
    """The template and each copy of a shipped discipline pass the check.

    The values that it reports begin with the new name.
    """
    copies = {kind: copy_source("my_own", kind) for kind in CLASSES}
    for kind, source in ({"template": fill_template("my_own")} | copies).items():
        found = try_discipline("my_own", source)
        assert not found.mistakes
        assert found.sent + found.dropped == found.packets
        assert found.dropped > 0
        told = make_discipline("my_own", source, {}, 1).statistics()
        # A FIFO computes nothing that it could report.
        assert bool(told) == (kind not in ("pfifo", "bfifo"))
        assert all(name.startswith("my_own_") for name in told)


def test_from_an_unknown_one_is_refused() -> None:
    with pytest.raises(UsageError, match='did you mean "codel"'):
        copy_source("mine", "codl")


SCENARIO = """
duration = "1 s"
topology.kind = "linear"
links.bottleneck = {{ rate = "10 Mbit/s", queue = {{ kind = {kind}{more} }} }}
timeline = [{{ at = "0 s", do = "start-flow" }}]
"""


def scenario(tmp_path: Path, kind: str, more: str = "") -> Path:
    path = tmp_path / "x.toml"
    path.write_text(SCENARIO.format(kind=kind, more=more))
    return path


def test_a_scenario_has_its_name_once_the_command_line_has_named_its_file(tmp_path: Path) -> None:
    path = scenario(tmp_path, '"mine"', ', limit = "20 packets"')
    with pytest.raises(ScenarioError, match=r"--discipline mine\.py"):
        load(path)
    (tmp_path / "mine.py").write_text(FIFO)
    DisciplineLibrary().add([tmp_path / "mine.py"])
    (case,) = driven(load(path), {}, {"mine": "00ff"}).cases
    assert case.build.disciplines == {"mine": "00ff"}
    qdisc = case.build.links["bottleneck"].qdisc
    assert qdisc == Qdisc(kind="mine", options={"limit": 20})
    with pytest.raises(ScenarioError, match=r"limt.*did you mean"):
        load(scenario(tmp_path, '"mine"', ", limt = 20"))


@pytest.mark.parametrize(
    "kind", ['"mine.py"', '"./mine.py"', '"/tmp/mine.py"', '"mine", file = "mine.py"']
)
def test_a_scenario_cannot_name_a_file(tmp_path: Path, kind: str) -> None:
    """A scenario cannot name the file of a discipline, even one in its folder.

    Only the command line can.
    """
    (tmp_path / "mine.py").write_text(FIFO)
    with pytest.raises(ScenarioError, match="unknown"):
        load(scenario(tmp_path, kind))
    # A path is no kind of queue even if the command line has named the file.
    DisciplineLibrary().add([tmp_path / "mine.py"])
    if "/" in kind or "file" in kind:
        with pytest.raises(ScenarioError, match=r"unknown|file"):
            load(scenario(tmp_path, kind))


def test_one_given_as_a_scenario_is_refused_with_the_option(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FIFO)
    with pytest.raises(ScenarioError, match=r"not a scenario; .* --discipline .*mine\.py"):
        load(tmp_path / "mine.py")


def test_of_a_file_on_another_machine_any_parameter_is_passed_on(tmp_path: Path) -> None:
    admit(queues=["mine"])
    (case,) = load(scenario(tmp_path, '"mine"', ', target = "5 ms"')).cases
    qdisc = case.build.links["bottleneck"].qdisc
    assert qdisc == Qdisc(kind="mine", options={"target": "5 ms"})
    # The lab on that machine has the file and checks the parameter.
    disciplines.custom["mine"] = read_declaration("mine", 'PARAMETERS = {"target": "1 ms"}')
    assert validate(qdisc).options == {"target": 5000}
    with pytest.raises(ValueError, match="no parameter"):
        validate(Qdisc(kind="mine", options={"bogus": 1}))


def test_a_lab_receives_the_files_on_its_command_line() -> None:
    argv = launch.lab_argv("far", None, [Path("a.bpf.c"), Path("b.py")])
    assert "--algorithm a.bpf.c --discipline b.py" in argv[-1]
    assert launch.inner_argv(None, "", [Path("b.py")])[-1] == str(Path("b.py").absolute())


def test_a_file_is_read_only_where_it_is_a_regular_one(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_bytes(b"\n\xff")
    with pytest.raises(CcplayError, match=r"mine\.py:2: not UTF-8"):
        read_source(tmp_path / "mine.py")
    with pytest.raises(UsageError, match="not a regular file"):
        read_source(Path("/dev/null"))
    (tmp_path / "large.py").write_bytes(b"#" * (1 << 19))
    with pytest.raises(UsageError, match="256 KiB at most"):
        read_source(tmp_path / "large.py")


def test_a_saved_file_is_noticed_once_it_stays_the_same(tmp_path: Path) -> None:
    path, library = tmp_path / "mine.py", DisciplineLibrary()
    path.write_text(FIFO)
    library.add([path])
    assert library.changed() == []
    path.write_text(FIFO + "# more\n")
    assert library.changed() == []
    assert library.changed() == ["mine"]
    library.source("mine")
    assert library.changed() == []


def test_new_check_and_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["discipline", "new", "mine"]) == 0
    assert "ccplay --discipline mine.py" in capsys.readouterr().err
    assert main(["discipline", "check", "mine.py"]) == 0
    assert "works; choose it as 'mine'" in capsys.readouterr().out
    assert main(["discipline", "new", "mine"]) == 2
    path = tmp_path / "mine.py"
    path.write_text(path.read_text().replace("return packet\n", "return 1 / 0\n", 1))
    assert main(["discipline", "check", "mine.py"]) == 1
    said = capsys.readouterr().out
    assert "ZeroDivisionError: division by zero" in said
    assert "    return 1 / 0" in said
    assert main(["discipline", "check", "mine"]) == 1
    assert "did you mean mine.py?" in capsys.readouterr().err


def test_a_kind_that_is_open_has_no_form_and_no_limit() -> None:
    admit(queues=["mine"])
    assert disciplines.custom["mine"] == DisciplineKind("mine", "your own", (), open=True)
    assert "mine" in disciplines.kinds()
