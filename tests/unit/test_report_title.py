"""A recording keeps the title of its scenario, which is the title of its report."""

from pathlib import Path

import pytest

from ccplay.cli.runs import gather
from ccplay.errors import RecordingError
from ccplay.model.events import Hello
from ccplay.stream import wire
from ccplay.stream.sinks import Recorder
from ccplay.stream.sources import recorded_events
from tests.ui.synthetic import stream


def recorded(path: Path, title: str) -> Path:
    recorder = Recorder(path, title)
    for event in stream(seconds=3):
        recorder.put(event)
    recorder.close()
    return path


def test_a_report_has_the_title_of_the_scenario(tmp_path: Path) -> None:
    material = gather([recorded(tmp_path / "x.ccplay", "The race: 50 ms")])
    assert material.title == material.result.title == "The race: 50 ms"
    assert 'title = "The race: 50 ms"' in (material.scenario_text or "")
    assert material.name == "x"


def test_two_recordings_of_one_scenario_say_it_once(tmp_path: Path) -> None:
    paths = [recorded(tmp_path / f"{name}.ccplay", "The race") for name in "xy"]
    assert gather(paths).title == "The race"


def test_a_recording_without_a_title_is_called_by_its_name(tmp_path: Path) -> None:
    assert gather([recorded(tmp_path / "x.ccplay", "")]).title == "x"


def test_a_copy_keeps_the_title(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "copy.ccplay")
    for event in recorded_events(recorded(tmp_path / "x.ccplay", "The race")):
        recorder.put(event)
    recorder.close()
    assert gather([tmp_path / "copy.ccplay"]).title == "The race"


def test_a_strangers_title_is_text_of_some_length(tmp_path: Path) -> None:
    path = recorded(tmp_path / "x.ccplay", "a\x1b[2Jb")
    assert gather([path]).title == "a\N{REPLACEMENT CHARACTER}[2Jb"
    first = next(each for each in stream() if isinstance(each, Hello))
    line = wire.encode(first).replace(
        b'{"event":"hello"', b'{"event":"hello","title":"%s"' % (b"x" * 501)
    )
    (tmp_path / "long.ccplay").write_bytes(line)
    with pytest.raises(RecordingError, match=r"500 - at `\$\.title`"):
        gather([tmp_path / "long.ccplay"])
