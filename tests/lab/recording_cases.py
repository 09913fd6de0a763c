"""Recordings on a disk that fills up; called inside private namespaces."""

import os
from pathlib import Path
from typing import Any

from ccplay.model.commands import Build
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting
from ccplay.session import launch
from ccplay.session.archive import read_recording
from ccplay.stream.sinks import Recorder
from ccplay.traffic.flow import StartFlow
from tests.lab.conftest import RunningLab, forked

DISK = Path("/run")
"""Folder of a small tmpfs that only these namespaces have; see ``make_run_private``."""

LEFT = 100_000


async def fill_the_disk() -> dict[str, Any]:
    """Record a lab with flows until the disk is full, and run on for a second."""
    free = os.statvfs(DISK).f_bavail * os.statvfs(DISK).f_bsize
    (DISK / "ballast").write_bytes(bytes(free - LEFT))
    path = DISK / "x.ccplay"
    build = Build(
        topology=Topology(kind="linear"),
        links={"bottleneck": LinkSetting(rate=10_000_000)},
        sample_hz=200.0,
    )
    lab = RunningLab(forked(launch.lab_argv(), build), Recorder(path))
    await lab.until(lambda state: state.phase == "ready")
    lab.send(StartFlow(streams=8))
    await lab.until(lambda state: any(each.kind == "error" for each in state.log))
    stopped = next(each.t for each in lab.state.log if each.kind == "error")
    acked = lab.state.flows["1"].acked
    await lab.run_for(1.0)
    words = [each.text for each in lab.state.log if each.kind == "error"]
    await lab.close()
    kept = read_recording(path)
    return {
        "words": words,
        "error": lab.session.error,
        "stopped": stopped,
        "acked_since": lab.state.flows["1"].acked - acked,
        "bytes": path.stat().st_size,
        "kept_until": kept.now,
        "kept_build": kept.hello is not None and kept.hello.build == build,
        "kept_flows": list(kept.flows),
    }
