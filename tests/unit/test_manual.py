"""The man page, the completions and ``--help`` say what the parser does; older names still work."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ccplay import cli
from ccplay.cli import main, manual

PACKAGING = Path(__file__).parents[2] / "packaging"


@pytest.mark.parametrize("name", manual.FILES)
def test_what_the_wheel_installs_is_what_the_parser_says(name: str) -> None:
    """Made anew by ``python -m ccplay.cli.manual packaging``."""
    assert (PACKAGING / name).read_text(encoding="utf-8") == manual.files()[name]


def test_help_lists_at_most_twelve_commands_and_all_lists_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    listed = [name for names in cli.GROUPS.values() for name in names]
    assert len(listed) <= 12
    printed = _help([], capsys)
    assert all(f"\n  {name} " in printed for name in listed)
    assert not any(f"\n  {name} " in printed for name in (*cli.MORE, "lab", "sessions", "script"))
    everything = _help(["--all"], capsys)
    assert all(f"\n  {name} " in everything for name in (*listed, *cli.MORE))


def _help(more: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as end:
        main(["--help", *more])
    assert end.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "older",
    [
        *("play", "run", "lesson", "list", "replay", "sessions", "watch", "share", "report"),
        *("export", "compare", "script", "algorithm", "discipline", "schema", "config"),
        *("doctor", "guest", "cluster", "lab"),
    ],
)
def test_every_command_of_before_still_works(
    older: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main([older, "--help"])
    assert end.value.code == 0
    printed = capsys.readouterr()
    assert f"usage: ccplay {older}" in printed.out
    assert not printed.err


@pytest.mark.parametrize(
    ("older", "now"),
    [
        (["schema"], ["config", "schema"]),
        (["config"], ["config", "preferences"]),
        (["sessions"], ["list", "sessions"]),
        (["sessions", "--json"], ["list", "sessions", "--json"]),
        (["lesson"], ["list", "lessons"]),
        (["algorithm", "list"], ["list", "algorithms"]),
        (["list"], ["list", "scenarios"]),
    ],
)
def test_an_older_command_prints_what_the_new_one_prints(
    older: list[str], now: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(older) == 0
    before = capsys.readouterr()
    assert main(now) == 0
    assert capsys.readouterr() == before
    assert before.out or before.err


@pytest.mark.parametrize("kind", ["scenario", "lesson", "discipline"])
def test_a_template_has_no_mistake_and_overwrites_nothing(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", kind, "first"]) == 0
    printed = capsys.readouterr()
    file = printed.out.strip()
    assert f"next: ccplay check {file}; ccplay" in printed.err
    assert main(["check", file]) == 0
    assert main(["new", kind, "first"]) != 0
    assert main(["new", kind]) == 0
    assert len([*tmp_path.iterdir()]) == 2


def test_a_mistake_in_a_scenario_is_named_by_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["new", "scenario", "a"])
    file = tmp_path / "a.toml"
    file.write_text(file.read_text().replace("start-ping", "start-pin"), encoding="utf-8")
    capsys.readouterr()
    assert main(["check", "a.toml"]) == 3
    assert "start-pin" in capsys.readouterr().err
    file.write_text('duration = "3 s"\nmetrics = ["flows.7.bytes"]', encoding="utf-8")
    assert main(["check", "a.toml"]) == 3


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ccplay re", {"replay", "report"}),
        ("ccplay new sc", {"scenario"}),
        ("ccplay run --until", {"--until-ci"}),
        ("ccplay run --kernel g", {"guest"}),
        ("ccplay lesson aim", {"aimd"}),
        ("ccplay --no-r", {"--no-record"}),
    ],
)
def test_bash_completes(typed: str, offered: set[str], tmp_path: Path) -> None:
    words = typed.split()
    script = f"""
source {PACKAGING / "ccplay.bash"}
COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; _ccplay
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert set(done.stdout.split()) == offered


@pytest.mark.parametrize(("shell", "name"), [("zsh", "_ccplay"), ("fish", "ccplay.fish")])
def test_a_shell_reads_its_completion(shell: str, name: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n", PACKAGING / name], check=True)


def test_options_of_every_listed_command_are_in_the_man_page() -> None:
    page = manual.man().replace(r"\-", "-")
    for command in manual.commands():
        if command.group:
            assert f"ccplay {command.name}" in page
            assert all(option.spelling in page for option in command.options)


def test_help_is_instant() -> None:
    """It imports nothing heavy."""
    code = (
        "import sys; from ccplay.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    )
    code += "print(sorted({'msgspec','textual','mininet','pyroute2','rich'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
