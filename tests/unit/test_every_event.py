"""Every event, at its smallest and its largest, is read back from the pipe and from a recording."""

import socket
import struct
from pathlib import Path
from typing import Any, ClassVar

import pytest
from msgspec import inspect
from msgspec.structs import replace

from ccplay.lab.netns import Namespace
from ccplay.lab.probe import Probe
from ccplay.model import blocks
from ccplay.model.events import Hello
from ccplay.model.samples import Sweep, Sweeps
from ccplay.state.lab_state import LabState
from ccplay.stream import wire
from ccplay.stream.sources import recorded_events
from tests.events import recorded
from tests.unit.test_probe import DONE, TWO_CONNECTIONS, Answers, record

KINDS = wire.EVENTS
(HELLO,) = (each for each in KINDS if getattr(each, "__origin__", None) is Hello)
FURTHEST = 1 << 53
"""Where a field has no bounds: the greatest integer that every reader of JSON knows."""


def extreme(kind: inspect.Type, *, largest: bool, number: int = 0) -> Any:
    """Return the smallest or the largest value of a type; ``number`` tells members of a list."""
    match kind:
        case inspect.UnionType(types=types):
            if not largest and any(isinstance(each, inspect.NoneType) for each in types):
                return None
            # A row may be a list, too, but then of as many values as there are sweeps.
            first = min(types, key=lambda each: isinstance(each, inspect.NoneType))
            return extreme(first, largest=largest, number=number)
        case inspect.StructType(cls=cls, fields=fields):
            needed = [each for each in fields if largest or each.required]
            return cls(
                **{each.name: extreme(each.type, largest=largest, number=number) for each in needed}
            )
        case inspect.ListType(item_type=item):
            return [extreme(item, largest=True, number=n) for n in range(2)] if largest else []
        case inspect.TupleType(item_types=items):
            return tuple(extreme(each, largest=largest) for each in items)
        case inspect.DictType(key_type=key, value_type=value):
            if not largest:
                return {}
            names = [extreme(key, largest=True, number=n) for n in range(2)]
            return {each: extreme(value, largest=True) for each in names}
        case inspect.IntType(ge=low, le=high) | inspect.FloatType(ge=low, le=high):
            bound = high if largest else low
            return (FURTHEST if largest else -FURTHEST) if bound is None else bound
        case inspect.StrType(max_length=most):
            return "ab"[number] * (most or 300) if largest else "a"
        case inspect.BoolType():
            return largest
        case inspect.NoneType():
            return None
    raise AssertionError(f"no extremes of {kind}")


def event(kind: type[Any], *, largest: bool) -> Any:
    if kind is Sweeps:
        # As recordings make them.
        return blocks.pack([event(Sweep, largest=largest)] * 3)
    return extreme(inspect.type_info(kind), largest=largest)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_an_event_comes_back_from_the_pipe(kind: type[Any], largest: bool) -> None:
    made = event(kind, largest=largest)
    line = wire.encode(made)
    assert (line[-1:], line.count(b"\n")) == (b"\n", 1)
    assert wire.decode_event(line) == made
    LabState().apply(made)


def test_all_of_them_come_back_from_a_recording(tmp_path: Path) -> None:
    hello = replace(event(HELLO, largest=True), format=wire.FORMAT)
    made = [event(each, largest=size) for size in (False, True) for each in KINDS]
    made = [hello, *(each for each in made if not isinstance(each, Hello | Sweeps))]
    read = list(recorded_events(recorded(tmp_path / "r.ccplay", made)))
    assert [each for each in made if not isinstance(each, Sweep)] == [
        each for each in read if not isinstance(each, Sweeps)
    ]
    swept = [each for each in read if isinstance(each, Sweeps)]
    assert [len(blocks.moments(each)) for each in swept] == [1, 1]


class OneHost(Namespace, frozen=True):
    """A host whose kernel says what it is told to."""

    answers: ClassVar[tuple[bytes, ...]] = ()

    def socket(self, *_: int) -> socket.socket:
        return Answers(*self.answers)


def swept(*answers: bytes) -> Sweep:
    """Return a sweep of a monitored flow whose packets take 7 us, as the pipe hands it on."""
    host = OneHost("h1", 0)
    type(host).answers = answers
    probe = Probe({"h1": host}, [])
    probe.track("1", "h1", sport=10000, dport=5201)
    probe.sample_delay("1", lambda: 7)
    found = wire.decode_event(wire.encode(probe.sweep(1.0)))
    probe.close()
    assert isinstance(found, Sweep)
    return found


def test_a_monitored_flow_that_is_not_open_yet_spoils_no_sweep() -> None:
    assert swept(DONE) == Sweep(t=1.0)
    assert swept(record(TWO_CONNECTIONS), DONE).own == {"monitor_one_way_delay_us": [7]}


def test_a_pacing_rate_that_means_nothing_spoils_no_sweep() -> None:
    """A BPF program may set any: 2**60 bytes a second is no number that a reader takes."""
    answer = bytearray(record(TWO_CONNECTIONS))
    for at in range(len(answer) - 208):
        # tcp_info follows the header of its attribute: INET_DIAG_INFO.
        if struct.unpack_from("=HH", answer, at) in ((length, 2) for length in range(212, 300)):
            struct.pack_into("=Q", answer, at + 4 + 104, 1 << 60)
    found = swept(bytes(answer), DONE)
    assert found.tcp is not None
    assert found.tcp.pacing_rate == [0]


def test_a_recording_of_a_lab_that_named_variables_of_no_flows_is_read() -> None:
    line = b'{"event":"sweep","t":1.0,"own":{"monitor_one_way_delay_us":[]}}\n'
    found = wire.decode_event(line)
    assert isinstance(found, Sweep)
    LabState().apply(found)
    block = blocks.pack([found, found])
    assert wire.decode_event(wire.encode(block)) == block
    LabState().apply(block)
