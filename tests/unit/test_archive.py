"""Every live session is recorded, within bounds, where only its user looks; ``last`` names it."""

import fcntl
import json
import os
import pwd
import stat
from pathlib import Path

import pytest

from ccplay import cli
from ccplay.cli.screen import _notify_recording
from ccplay.errors import CcplayError, RecordingError, UsageError
from ccplay.model.events import Applied, Log, Ready
from ccplay.session import archive
from ccplay.session.archive import Bounds, SessionRecorder, Unsaved, read_recording
from ccplay.session.session import Session
from ccplay.stream import wire
from ccplay.stream.sinks import Recorder
from ccplay.traffic.flow import FlowStarted, StartFlow
from tests.events import HEALTH, HELLO
from tests.unit.test_session import Told

FLOW = FlowStarted(t=0.5, flow="1", src="s1", dst="d1", cc="bbr", port=5201)
ROOMY = Bounds(keep_free=0)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where sessions go; the current folder is another."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "state" / "ccplay" / "sessions"


def kept(place: Path, *stems: str, size: int = 10) -> None:
    """Put sessions there."""
    place.mkdir(parents=True, mode=0o700, exist_ok=True)
    for stem in stems:
        start = Applied(t=0.5, command=StartFlow(flow="1", src="s1", dst="d1", cc="bbr"))
        events = (HELLO, Ready(t=0.1), FLOW, start)
        lines = b"".join(map(wire.encode, events))
        (place / f"{stem}.ccplay").write_bytes(lines.ljust(size, b" "))


def recorded(bounds: Bounds = ROOMY, label: str = "race") -> Path:
    sink = SessionRecorder(label, "A race", bounds)
    for event in (HELLO, Ready(t=0.0), FLOW):
        sink.put(event)
    sink.close()
    assert sink.path is not None
    return sink.path


def test_a_session_is_recorded_where_nobody_else_looks(place: Path) -> None:
    path = recorded(label="My Race: 50 ms/../x")
    assert path.parent == place
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert archive.label_of(path) == "my-race-50-ms-..-x"
    state = read_recording(path)
    assert state.hello is not None
    assert state.hello.title == "A race"
    assert archive.sessions() == [path]


def test_a_session_that_never_began_leaves_nothing(place: Path) -> None:
    SessionRecorder("race").close()
    assert not place.exists()


def test_a_name_without_a_real_date_is_a_session_like_any_other(place: Path) -> None:
    kept(place, "20209999-999999-x")
    ((name, path),) = archive.earlier(None)
    assert (name, path.name) == ("last session", "20209999-999999-x.ccplay")
    assert archive.started(path).year >= 2026


def test_two_sessions_of_one_second_are_two_files(place: Path) -> None:
    assert len({recorded(), recorded(), recorded()}) == 3
    assert len(archive.sessions()) == 3


@pytest.mark.parametrize(
    ("bounds", "left"),
    [
        (Bounds(keep_free=0, sessions=3), ["3", "4"]),
        (Bounds(keep_free=0, bytes=50_000, longest=10_000), ["2", "3", "4"]),
        (Bounds(keep_free=0, bytes=20_000, longest=20_000), []),
        (ROOMY, ["1", "2", "3", "4"]),
    ],
)
def test_a_new_session_pushes_the_oldest_out(place: Path, bounds: Bounds, left: list[str]) -> None:
    kept(place, *(f"20200101-00000{n}-x" for n in (1, 2, 3, 4)), size=12_000)
    (place / "mine.ccplay").write_text("not of the archive")
    new = recorded(bounds)
    there = {path.name for path in place.iterdir()}
    assert there == {*(f"20200101-00000{n}-x.ccplay" for n in left), new.name, "mine.ccplay"}


def test_one_that_is_still_recorded_is_never_deleted(place: Path) -> None:
    running = SessionRecorder("long", bounds=ROOMY)
    running.put(HELLO)
    assert running.path is not None
    assert archive.is_running(running.path)
    recorded(Bounds(keep_free=0, sessions=1))
    assert running.path.exists()
    assert archive.delete([running.path]) == [running.path]
    running.close()
    assert not archive.is_running(running.path)
    assert archive.delete([running.path]) == []
    assert not running.path.exists()


async def test_a_session_outlives_the_bound_of_its_recording_and_reports_it(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sink = SessionRecorder("race", bounds=Bounds(keep_free=0, longest=10))
    session = Session(Told(HELLO, FLOW, HEALTH, Log(t=2.0, level="info", text="on")), sinks=[sink])
    await session.run()
    assert "on" in [each.text for each in session.state.log]
    assert any("the recording of this session ends here" in e.text for e in session.state.log)
    assert session.failure is None
    (path,) = archive.sessions()
    assert read_recording(path).flows.keys() == {"1"}
    assert not archive.is_running(path)
    assert session.cut_off == HEALTH.t
    _notify_recording(session)
    assert "recorded until 00:01: ccplay replay last shows that much" in capsys.readouterr().err
    (place / "29990101-000000-later.ccplay").touch()
    _notify_recording(session)
    assert "ccplay replay @2 shows" in capsys.readouterr().err


async def test_a_disk_that_is_nearly_full_is_left_alone(place: Path, tmp_path: Path) -> None:
    sink = SessionRecorder("race", bounds=Bounds(keep_free=1 << 60))
    session = Session(Told(HELLO, Ready(t=1.0)), sinks=[sink])
    await session.run()
    (entry,) = session.state.log
    assert entry.text.startswith(f"this session is not recorded: can't write to {place}: less than")
    assert session.state.phase == "ready"
    assert archive.sessions() == []
    assert session.unsaved is not None
    session.unsaved.write_to(tmp_path / "saved.ccplay")
    assert read_recording(tmp_path / "saved.ccplay").phase == "ready"


@pytest.mark.usefixtures("place")
async def test_what_a_file_records_besides_is_not_asked_about(tmp_path: Path) -> None:
    refused = SessionRecorder("race", bounds=Bounds(keep_free=1 << 60))
    sinks = (Recorder(tmp_path / "x.ccplay"), refused)
    session = Session(Told(HELLO, Ready(t=1.0)), sinks=sinks)
    await session.run()
    assert session.unsaved is None


async def test_the_end_of_sharing_is_no_error_of_what_is_measured() -> None:
    class Ended:
        def put(self, _: object) -> None:
            raise CcplayError("sharing has ended: its server is gone")

        def close(self) -> None:
            pass

    session = Session(Told(HELLO, Ready(t=1.0)), sinks=[Ended()])
    await session.run()
    assert [(each.kind, each.text) for each in session.state.log] == [
        ("warning", "sharing has ended: its server is gone")
    ]


def test_a_disk_that_fills_up_ends_the_recording_in_time(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = SessionRecorder("race", bounds=ROOMY)
    sink.put(HELLO)
    sink.put(HEALTH)
    monkeypatch.setattr(os, "fstatvfs", lambda _: os.statvfs_result((4096, 1, 9, 0, 0, *[0] * 5)))
    monkeypatch.setattr(sink, "_bounds", Bounds(keep_free=1))
    with pytest.raises(RecordingError, match="are free on its disk"):
        sink.put(HEALTH)
    sink.close()


@pytest.mark.parametrize("obstacle", ["file", "relative"])
def test_where_nothing_can_be_written_the_reason_is_reported(
    place: Path, obstacle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if obstacle == "file":
        place.parent.mkdir(parents=True)
        place.write_text("")
    else:
        # A user without a home.
        monkeypatch.setattr(archive, "folder", lambda: Path("state"))
    with pytest.raises(RecordingError, match=r"this session is not recorded: .*(direct|XDG)"):
        SessionRecorder("race", bounds=ROOMY).put(HELLO)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("trick", ["owner", "mode", "symlink"])
def test_root_writes_into_no_folder_of_a_stranger(place: Path, trick: str) -> None:
    place.parent.mkdir(parents=True)
    elsewhere = place.parent / "elsewhere"
    elsewhere.mkdir()
    if trick == "symlink":
        place.symlink_to(elsewhere)
    else:
        place.mkdir()
        if trick == "owner":
            os.chown(place, 12345, 12345)
        else:
            place.chmod(0o777)
    with pytest.raises(RecordingError, match="this session is not recorded"):
        SessionRecorder("race", bounds=ROOMY).put(HELLO)
    assert not any(elsewhere.iterdir())
    assert trick == "symlink" or not any(place.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_under_sudo_sessions_are_the_callers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, 12345, 12346)
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("SUDO_UID", "12345")
    monkeypatch.setenv("SUDO_GID", "12346")
    entry = pwd.struct_passwd(("u", "x", 12345, 12346, "", str(home), "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", {12345: entry}.__getitem__)
    path = recorded()
    assert path.parent == home / ".local" / "state" / "ccplay" / "sessions"
    made = [path, *(each for each in path.parents if home in each.parents)]
    assert {(each.stat().st_uid, each.stat().st_gid) for each in made} == {(12345, 12346)}


# --- on the command line --------------------------------------------------------------------


def test_last_and_numbers_name_sessions_newest_first(place: Path) -> None:
    kept(place, "20200101-000001-a", "20200102-000001-b")
    assert archive.named("last") == archive.named("@1") == place / "20200102-000001-b.ccplay"
    assert archive.named("@2") == place / "20200101-000001-a.ccplay"
    assert archive.named("@0") == Path("@0")
    assert archive.named("run.ccplay") == Path("run.ccplay")
    with pytest.raises(UsageError, match="no session @3: ccplay list sessions shows 2"):
        archive.named("@3")
    Path("last").touch()
    assert archive.named("last") == Path("last")


@pytest.mark.parametrize(
    "words",
    [
        ["replay", "last"],
        ["script", "last"],
        ["report", "last"],
        ["export", "last"],
        ["compare", "last", "@2"],
        ["play", "--ghost", "last"],
    ],
    ids=lambda words: words[0],
)
def test_where_none_is_recorded_a_line_reports_it(
    place: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 2
    said = capsys.readouterr().err
    assert said == f"ccplay: there is no last session: none is recorded in {place}\n"


def test_a_session_becomes_a_scenario_and_a_table(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept(place, "20200101-000001-a")
    assert cli.main(["script", "last"]) == 0
    assert 'title = "20200101-000001-a"' in capsys.readouterr().out
    assert cli.main(["export", "@1", "--table", "events"]) == 0
    assert "20200101-000001-a" in capsys.readouterr().out


def test_sessions_are_listed_newest_first(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept(place, "20200101-000001-race", "20200102-000001-b")
    (place / "20200103-000001-broken.ccplay").write_text("nothing\n")
    assert cli.main(["sessions"]) == 0
    head, broken, b, race = capsys.readouterr().out.splitlines()
    assert head.split() == [
        *("started", "scenario", "length", "size", "flows"),
        *("congestion", "control"),
    ]
    assert b.split()[0::3][:2] == ["@2", "b"]
    assert race.split()[-2:] == ["1", "bbr"]
    assert "not a ccplay" in broken
    assert cli.main(["sessions", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["number"], row["scenario"], row["flows"]) for row in rows] == [
        (1, "broken", 0),
        (2, "b", 1),
        (3, "race", 1),
    ]
    assert rows[2]["congestion_controls"] == ["bbr"]
    assert rows[0]["problem"]


def test_one_that_runs_is_listed_as_such(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept(place, "20200101-000001-race")
    with (place / "20200101-000001-race.ccplay").open("rb") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        assert cli.main(["sessions"]) == 0
        assert capsys.readouterr().out.rstrip().endswith("still running")
        assert cli.main(["sessions", "--clear"]) == 1
        assert len(archive.sessions()) == 1


def test_sessions_are_deleted_by_number_or_all(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept(place, *(f"2020010{n}-000001-x" for n in (1, 2, 3, 4)))
    (place / "mine.ccplay").touch()
    assert cli.main(["sessions", "--delete", "1", "@3"]) == 0
    assert [path.name[:8] for path in archive.sessions()] == ["20200103", "20200101"]
    assert cli.main(["sessions", "--delete", "3"]) == 2
    assert cli.main(["sessions", "--clear"]) == 0
    assert archive.sessions() == []
    assert (place / "mine.ccplay").exists()
    capsys.readouterr()
    assert cli.main(["sessions"]) == 0
    assert capsys.readouterr().err == f"no session is recorded in {place}\n"


# --- recorded nowhere -----------------------------------------------------------------------


def test_what_is_only_in_memory_can_be_saved_while_it_runs_and_after(tmp_path: Path) -> None:
    sink = Unsaved("A race")
    for event in (HELLO, Ready(t=0.0)):
        sink.put(event)
    sink.write_to(tmp_path / "half.ccplay")
    sink.put(FLOW)
    sink.close()
    sink.write_to(tmp_path / "all.ccplay")
    assert not read_recording(tmp_path / "half.ccplay").flows
    whole = read_recording(tmp_path / "all.ccplay")
    assert whole.flows.keys() == {"1"}
    assert whole.hello is not None
    assert whole.hello.title == "A race"
    with pytest.raises(FileExistsError):
        sink.write_to(tmp_path / "all.ccplay")


def test_what_has_grown_too_long_for_memory_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ccplay.session.archive._MOST_BYTES", 10)
    sink = Unsaved()
    sink.put(HELLO)
    with pytest.raises(RecordingError, match="can't be saved"):
        sink.put(HEALTH)
    assert sink.lost
