"""Lists the recordings in a folder, from a quick look at each file."""

from __future__ import annotations

import contextlib
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ccplay.errors import CcplayError, WireError
from ccplay.files.reading import open_regular
from ccplay.model.base import Event
from ccplay.model.events import Hello
from ccplay.model.traffic_events import FlowStarted
from ccplay.stream import wire
from ccplay.stream.sources import check_recording, complete_lines

PATTERNS = ("*.ccplay", "runs/*.ccplay", "*/runs/*.ccplay")
"""Glob patterns of recordings in a folder and in its run directories."""

_MOST = 50
"""Greatest number of recordings listed."""

_FLOW_STARTED = b'{"event":"flow-started"'
"""First bytes of a line that reports the start of a flow."""

_HEAD, _TAIL = 1 << 16, 1 << 18
"""Bytes read for a quick look, at the beginning and at the end of a recording."""


class Found(msgspec.Struct, frozen=True):
    """A recording in a list, and what is known of its content."""

    path: Path
    name: str
    """Path of the recording, relative to the folder that was searched."""
    size: int
    """Size of the recording in bytes."""
    began: datetime
    seconds: float | None = None
    """Seconds from the recording's start to its end; None if unknown after a quick look."""
    algorithms: tuple[str, ...] = ()
    """Congestion controls of all flows, or of the first ones after a quick look."""
    flows: int = 0
    """Number of flows that were started; 0 after a quick look."""
    problem: str = ""
    """Reason why the recording can't be read; empty if it can."""


def find(folder: Path) -> list[Found]:
    """Return the recordings below a folder, newest first; those that can't be read last."""
    paths = {path for pattern in PATTERNS for path in folder.glob(pattern) if path.is_file()}
    newest = sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)[:_MOST]
    found = [glance(path, folder) for path in newest]
    return sorted(found, key=lambda each: (not each.problem, each.began), reverse=True)


def glance(path: Path, folder: Path) -> Found:
    """Return what is known of a recording from its beginning and its end."""
    name = wire.printable(str(path.relative_to(folder)))
    facts = path.stat()
    began = datetime.fromtimestamp(facts.st_mtime).astimezone()
    try:
        check_recording(path)
        with path.open("rb") as file:
            head = file.read(_HEAD)
            file.seek(max(facts.st_size - _TAIL, 0))
            tail = file.read()
    except (CcplayError, OSError) as error:
        problem = str(error).removeprefix(f"{path}: ")
        return Found(path, name, facts.st_size, began, problem=problem)
    early = [event for line in head.split(b"\n")[:-1] if (event := _event(line))]
    hello = early[0] if early else None
    if isinstance(hello, Hello):
        began = datetime.fromtimestamp(hello.wall_time).astimezone()
    algorithms = [each.cc for each in early if isinstance(each, FlowStarted) and each.cc]
    last = _event(tail.rsplit(b"\n", 2)[-2]) if tail.count(b"\n") > 1 else None
    return Found(
        path,
        name,
        facts.st_size,
        began,
        seconds=last.t if last else None,
        algorithms=tuple(dict.fromkeys(algorithms)),
    )


def scan(path: Path, folder: Path) -> Found:
    """Return what is known of a recording, all of its flows included; reads every line."""
    found = glance(path, folder)
    if found.problem:
        return found
    flows = []
    with contextlib.suppress(OSError, WireError), open_regular(path) as file:
        started = (line for line in complete_lines(file) if line.startswith(_FLOW_STARTED))
        flows = [event for line in started if isinstance(event := _event(line), FlowStarted)]
    algorithms = tuple(dict.fromkeys(each.cc for each in flows if each.cc))
    return replace(found, flows=len(flows), algorithms=algorithms)


def _event(line: bytes) -> Event | None:
    try:
        event = wire.decode_event(line)
    except WireError:
        return None
    return event if isinstance(event, Event) else None
