"""Records are encoded and decoded: newer ones are kept, invalid ones refused with a message."""

import pytest

from ccplay.errors import RecordingError, WireError
from ccplay.model.commands import Mark
from ccplay.model.events import Applied, Ready
from ccplay.model.values import LinkSetting
from ccplay.stream import wire


def test_an_event_of_an_unknown_kind_is_kept_as_it_came() -> None:
    line = b'{"event":"eclipse","t":4.5,"depth":[1,2]}\n'
    event = wire.decode_event(line)
    assert isinstance(event, wire.UnknownEvent)
    assert (event.kind, event.t) == ("eclipse", 4.5)
    assert wire.encode(event) == line


def test_a_new_field_of_a_known_event_is_no_reason_to_stop() -> None:
    assert wire.decode_event(b'{"event":"ready","t":1.0,"colour":"red"}') == Ready(t=1.0)


@pytest.mark.parametrize("line", [b"", b"hello", b'{"event":"ready"}', b"[1]", b"\xff\xfe"])
def test_what_is_no_event_is_refused(line: bytes) -> None:
    with pytest.raises(WireError):
        wire.decode_event(line)


@pytest.mark.parametrize("line", [b"{}", b'{"do":"reboot"}', b'{"do":"mark","text":"x","y":1}'])
def test_what_is_no_command_is_refused(line: bytes) -> None:
    with pytest.raises(WireError, match="not a command"):
        wire.decode_command(line)


def test_no_text_of_a_recording_reaches_the_terminal_as_an_order() -> None:
    """ESC, BEL, C1's CSI and a change of writing direction in a text never reach the terminal."""
    hostile = Mark(text="a\x1b]0;owned\x07b\x9bc\u202ed\ne→")
    event = wire.decode_event(wire.encode(Applied(t=1.0, command=hostile)))
    assert isinstance(event, Applied)
    assert isinstance(event.command, Mark)
    assert event.command.text.isprintable()
    assert event.command.text.endswith(" e→")


def test_a_recording_begins_with_hello() -> None:
    with pytest.raises(RecordingError, match="does not begin with hello"):
        wire.decode_hello(wire.encode(Ready(t=0)), "x.ccplay")


def test_a_newer_recording_is_refused_whatever_else_its_hello_says() -> None:
    newer = b'{"event":"hello","format":99,"version":"7.1","t":"a word by then"}\n'
    with pytest.raises(RecordingError, match=r"x\.ccplay: recorded by ccplay 7\.1 in format 99"):
        wire.decode_hello(newer, "x.ccplay")


def test_defaults_cost_no_bytes() -> None:
    assert wire.encode(Mark(text="x")) == b'{"do":"mark","text":"x"}\n'
    assert LinkSetting() == LinkSetting()
