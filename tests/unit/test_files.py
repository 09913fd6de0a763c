"""Files that are written, by root and among strangers: where to, whose they are, and what stays."""

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ccplay.cli import main
from ccplay.errors import CcplayError, RecordingError
from ccplay.files import writing as files
from ccplay.stream.sinks import Recorder
from tests.events import PLAYGROUND

STRANGER, CALLER = 65533, (12345, 12346)

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be among strangers' files")


def strangers(path: Path) -> Path:
    os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
    return path


@contextmanager
def nearly_full(room: int) -> Iterator[None]:
    """Let no file grow beyond ``room`` bytes, as a disk does that becomes full in the middle."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


# --- the last name ------------------------------------------------------------------------------


@pytest.mark.parametrize("leads", ["precious", "nowhere"])
def test_a_new_file_is_not_made_through_a_symlink(tmp_path: Path, leads: str) -> None:
    (tmp_path / "precious").write_text("mine")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / leads)
    with pytest.raises(FileExistsError):
        files.create(link)
    with pytest.raises(FileExistsError):
        files.write(link, "new")
    with pytest.raises(RecordingError, match="exists"):
        Recorder(link)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "precious"]
    assert (tmp_path / "precious").read_text() == "mine"


def test_what_replaces_a_symlink_leaves_alone_what_that_leads_to(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "link").symlink_to("precious")
    files.write(tmp_path / "link", "new", replace=True)
    assert not (tmp_path / "link").is_symlink()
    assert ((tmp_path / "link").read_text(), (tmp_path / "precious").read_text()) == ("new", "mine")


def test_what_replaces_a_hard_link_leaves_the_other_name_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "link").hardlink_to(tmp_path / "precious")
    files.write(tmp_path / "link", "new", replace=True)
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_fifo_a_device_or_a_directory_is_refused_and_reported(tmp_path: Path) -> None:
    """A FIFO without a reader would block for ever."""
    os.mkfifo(tmp_path / "fifo")
    for path, what in (
        (tmp_path / "fifo", "a FIFO"),
        (Path("/dev/full"), "a device"),
        (tmp_path, "a directory"),
    ):
        for attempt in (
            files.create,
            lambda path: files.write(path, ""),
            lambda path: files.write(path, "", replace=True),
        ):
            with pytest.raises(OSError, match=f"it is {what}"):
                attempt(path)
        with pytest.raises(RecordingError, match=f"can't record to {path}: it is {what}"):
            Recorder(path)


# --- the way to it ------------------------------------------------------------------------------


@as_root
def test_a_stranger_s_symlink_on_the_way_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "link").symlink_to("precious")
    files.write(tmp_path / "link" / "a", "by our own symlink")
    strangers(tmp_path / "link")
    for write in (files.write, lambda path, _: files.create(path)):
        with pytest.raises(PermissionError, match="link is another user's symlink"):
            write(tmp_path / "link" / "b", "")
    with pytest.raises(PermissionError):
        files.make_directory(tmp_path / "link" / "b")
    assert [each.name for each in (tmp_path / "precious").iterdir()] == ["a"]


@as_root
def test_symlinks_of_sudo_s_caller_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    os.chown(tmp_path / "link", *CALLER, follow_symlinks=False)
    with pytest.raises(PermissionError):
        files.write(tmp_path / "link" / "a", "")
    monkeypatch.setenv("SUDO_UID", str(CALLER[0]))
    monkeypatch.setenv("SUDO_GID", str(CALLER[1]))
    files.write(tmp_path / "link" / "a", "")


def test_ways_are_found_as_the_kernel_finds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Absolute, relative, upwards; through symlinks one after the other."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to(tmp_path / "a/./b/../b")
    monkeypatch.chdir(tmp_path)
    for number, folder in enumerate(("one", "a/../one", str(tmp_path / "two"), "one/../b", ".")):
        files.write(Path(folder) / f"{number}", folder)
        assert (Path(folder) / f"{number}").read_text() == folder
    Path("loop").symlink_to("loop")
    for folder, reason in (("loop", "Too many levels"), ("a/x", "No such file"), ("0", "Not a d")):
        Path("0").touch()
        with pytest.raises(OSError, match=reason):
            files.write(Path(folder) / "x", "")


# --- whose it is --------------------------------------------------------------------------------


@as_root
def test_what_root_makes_under_sudo_is_its_caller_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", str(CALLER[0]))
    monkeypatch.setenv("SUDO_GID", str(CALLER[1]))
    files.make_directory(tmp_path / "deep" / "er")
    files.write(tmp_path / "deep" / "er" / "whole", "")
    files.write(tmp_path / "deep" / "er" / "whole", "anew", replace=True)
    files.create(tmp_path / "deep" / "er" / "growing").close()
    for each in (tmp_path / "deep").rglob("*"):
        assert (each.stat().st_uid, each.stat().st_gid) == CALLER, each
    assert (tmp_path / "deep").stat().st_uid == CALLER[0]
    assert tmp_path.stat().st_uid == 0


@as_root
@pytest.mark.parametrize("user", ["", "-1", "nobody", "4294967296", "9" * 30, "²"])
def test_a_caller_who_is_no_number_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: str
) -> None:
    monkeypatch.setenv("SUDO_UID", user)
    monkeypatch.setenv("SUDO_GID", user)
    files.write(tmp_path / "x", "")
    assert (tmp_path / "x").stat().st_uid == 0


def test_who_may_read_a_file_stays_so_when_it_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.touch(0o600)
    files.write(path, "new", replace=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# --- full disks and other ends ------------------------------------------------------------------


def test_nothing_half_written_stays_and_nothing_is_lost(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("before")
    for name in ("old", "new"):
        with nearly_full(1000), pytest.raises(OSError, match="File too large"):
            files.write(tmp_path / name, b"x" * 100_000, replace=True)
    with suppress(KeyboardInterrupt), files.written(tmp_path / "new") as file:
        file.write(b"x" * 100_000)
        raise KeyboardInterrupt
    assert [each.name for each in tmp_path.iterdir()] == ["old"]
    assert (tmp_path / "old").read_text() == "before"


def test_a_file_that_came_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    came = (tmp_path / "x").write_text
    with pytest.raises(FileExistsError), files.written(tmp_path / "x") as file:  # noqa: PT012
        file.write(b"ours")
        came("theirs")
    assert [each.name for each in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_text() == "theirs"


def test_file_systems_without_hard_links_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vfat has none, and says EPERM."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    files.write(tmp_path / "x", "a")
    with pytest.raises(FileExistsError):
        files.write(tmp_path / "x", "b")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("x", "a")]


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("x", "already exists: choose another name, or delete it"),
        ("none/x", "No such file or directory"),
        ("x/y", "Not a directory"),
        ("fifo", "it is a FIFO"),
    ],
)
def test_commands_name_file_and_reason(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    place: str,
    reason: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x").write_text("mine")
    os.mkfifo("fifo")
    some = str(PLAYGROUND)
    for words in (["script", some, "--to", place], ["export", some, "--to", f"{place}"]):
        if words[0] == "export" and place in ("none/x", "x/y"):
            continue
        assert main(words) != 0
        said = capsys.readouterr().err
        assert place in said
        assert reason in said or words[0] == "export"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["fifo", "x"]
    assert Path("x").read_text() == "mine"


def test_a_directory_takes_the_place_of_another_or_that_one_stays(tmp_path: Path) -> None:
    for name in ("made", "old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    with pytest.raises(FileNotFoundError):
        files.replace_directory(tmp_path / "none", tmp_path / "old", tmp_path / "aside")
    assert (tmp_path / "old" / "old").exists()
    files.replace_directory(tmp_path / "made", tmp_path / "old", tmp_path / "aside")
    assert (tmp_path / "old" / "made").exists()
    assert (tmp_path / "aside" / "old").exists()


def test_reasons_are_reported_with_the_file(tmp_path: Path) -> None:
    with (
        pytest.raises(CcplayError, match=f"can't write {tmp_path}/none/x: No such file"),
        files.explained(tmp_path / "none" / "x", CcplayError),
    ):
        files.write(tmp_path / "none" / "x", "")


# --- folders for a while ------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
from ccplay.files.writing import passing_folder
with passing_folder(Path(sys.argv[1]), ".x-") as made:
    (made / "earlier").mkdir()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_folder_that_a_killed_process_left_is_deleted_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders in use, with other names, or made by a user stay."""
    monkeypatch.setattr("ccplay.files.writing._SETTLED_S", -1.0)
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    (left,) = tmp_path.iterdir()
    (tmp_path / ".x-auserown").mkdir(mode=0o755)
    (tmp_path / ".x-longername").mkdir(mode=0o700)
    (tmp_path / ".x-aregular").touch()
    (tmp_path / ".x-asymlink").symlink_to(left)
    others = {*tmp_path.iterdir()} - {left}
    rescued: list[Path] = []
    with files.passing_folder(tmp_path, ".x-", rescued.append) as first:
        assert rescued == [left]
        with files.passing_folder(tmp_path, ".x-", rescued.append) as second:
            assert {*tmp_path.iterdir()} == {*others, first, second}
    assert {*tmp_path.iterdir()} == others
    assert rescued == [left]


def test_a_report_that_a_killed_process_moved_aside_is_put_back(tmp_path: Path) -> None:
    left = tmp_path / ".report-12345678"
    (left / "earlier" / "figures").mkdir(parents=True)
    files.put_back(left / "earlier", tmp_path / "report")
    assert (tmp_path / "report" / "figures").is_dir()
    (left / "earlier").mkdir()
    files.put_back(left / "earlier", tmp_path / "report")
    assert (left / "earlier").is_dir(), "there is a report"
