"""Labs that one warm process forks: like those that are spawned, in all that can be seen."""

import os
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from ccplay.errors import LabError
from ccplay.model.commands import Build
from ccplay.model.network import Topology
from ccplay.model.values import LinkSetting
from ccplay.session import launch
from ccplay.session.launch import WarmLabs
from ccplay.stream.sources import LabSource, spawn
from ccplay.traffic.flow import StartFlow
from tests.lab.conftest import RunningLab
from tests.lab.test_leaks import KINDS, lives, nothing_left

BUILD = Build(topology=Topology(kind="linear"))


@pytest.fixture(scope="module")
def labs() -> Iterator[WarmLabs]:
    """Return an opener that forks every lab, not only those after the first."""
    with pytest.MonkeyPatch.context() as patch:
        labs = WarmLabs()
        patch.setattr(labs, "_labs", 1)
        yield labs
        # There is none yet if all tests were skipped.
        warm = psutil.Process(labs.process) if labs.process else None
        labs.close()
        assert warm is None or not lives(warm)


@asynccontextmanager
async def running(labs: WarmLabs, argv: Sequence[str] = ()) -> AsyncIterator[RunningLab]:
    lab = RunningLab(LabSource(argv or launch.lab_argv(), BUILD, start=labs.start))
    try:
        await lab.until(lambda state: state.phase == "ready")
        yield lab
    finally:
        await lab.close()


def processes(lab: RunningLab) -> list[psutil.Process]:
    """Return the process that waits for the lab, the lab, and the processes that it has started."""
    first = psutil.Process(lab.source.pid)
    return [first, *first.children(recursive=True)]


def is_forked(lab: RunningLab) -> bool:
    return "unshare" not in processes(lab)[0].cmdline()[0]


def handled(folder: Path) -> list[int]:
    """Return the signals that a process blocks, ignores and catches, without the C library's."""
    status = dict(line.split(":") for line in (folder / "status").read_text().splitlines())
    return [int(status[name], 16) & 0x7FFFFFFF for name in ("SigBlk", "SigIgn", "SigCgt")]


async def test_a_forked_lab_has_its_own_of_all_that_a_spawned_one_has(labs: WarmLabs) -> None:
    seen = {}
    for start in (labs.start, spawn):
        lab = RunningLab(LabSource(launch.lab_argv(), BUILD, start=start))
        await lab.until(lambda state: state.phase == "ready")
        folders = [Path(f"/proc/{each}") for each in (processes(lab)[1].pid, os.getpid())]
        theirs, here = [{k: (f / "ns" / k).readlink() for k in KINDS} for f in folders]
        assert all(theirs[kind] != here[kind] for kind in KINDS)
        assert os.getpgid(processes(lab)[1].pid) == lab.source.pid
        seen[start] = (
            [each.name() for each in processes(lab)[2:]],
            (folders[0] / "cwd").readlink(),
            sorted(int(each.name) for each in (folders[0] / "fd").iterdir())[:3],
            handled(folders[0]),
        )
        lab.send(StartFlow(flow="1", bytes=100_000))
        await lab.until(lambda state: state.flows["1"].ended if "1" in state.flows else False)
        await lab.close()
        assert lab.session.error is None
    assert seen[labs.start] == seen[spawn]


def is_in(pid: int, folder: Path) -> bool:
    """Whether a process is in a folder, which the kernel may call by the path outside a chroot."""
    return Path(f"/proc/{pid}/cwd").samefile(folder)


async def test_a_fork_takes_over_directory_and_environment(
    labs: WarmLabs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CCPLAY_OF_NOW", "\udc80")
    async with running(labs) as lab:
        assert is_forked(lab)
        assert is_in(processes(lab)[1].pid, tmp_path)
        node = next(each for each in processes(lab) if each.name() == "cat")
        assert node.environ()["CCPLAY_OF_NOW"] == "\udc80"


async def test_a_forked_lab_may_be_root_of_its_user_namespace_alone(labs: WarmLabs) -> None:
    if (refusal := launch.rootless_refusal()) is not None:
        pytest.skip(f"no user namespaces here: {refusal}")
    argv = [*launch.UNSHARE, *launch.ROOTLESS, *launch.inner_argv()[-4:]]
    async with running(labs, argv) as lab:
        assert is_forked(lab)
        folder = Path(f"/proc/{processes(lab)[1].pid}")
        assert (folder / "uid_map").read_text().split() == ["0", str(os.geteuid()), "1"]


@pytest.mark.parametrize("part", [0, 1])
async def test_a_forked_lab_that_is_killed_leaves_nothing(labs: WarmLabs, part: int) -> None:
    async with running(labs) as lab:
        every = processes(lab)
        every[part].send_signal(signal.SIGKILL)
        await lab._pump
        assert not await nothing_left(lambda: [each for each in every if lives(each)])
        assert isinstance(lab.session.error, str)
        assert "signal" in lab.session.error


async def test_what_ends_a_forked_lab_is_reported(labs: WarmLabs) -> None:
    told = []
    build = Build(topology=Topology(kind="linear"), links={"nowhere": LinkSetting(rate=1_000_000)})
    for start in (labs.start, spawn):
        source = LabSource(launch.lab_argv(), build, start=start)
        with pytest.raises(LabError) as caught:
            async for _ in source.events():
                pass
        told.append(str(caught.value))
    assert told[0] == told[1]
    assert "nowhere" in told[0]


async def test_where_no_lab_can_be_forked_one_is_spawned(monkeypatch: pytest.MonkeyPatch) -> None:
    labs = WarmLabs()
    async with running(labs) as lab:
        assert not is_forked(lab)
    with monkeypatch.context() as patch:
        for name in ("ONE", "TWO", "THREE"):
            patch.setenv(f"CCPLAY_LONG_{name}", "x" * 100_000)
        async with running(labs) as lab:
            assert not is_forked(lab)
    async with running(labs) as lab:
        assert is_forked(lab)
        # Its own lab goes on without it.
        os.kill(labs.process, signal.SIGKILL)
        await lab.swept()
    async with running(labs) as lab:
        assert not is_forked(lab)
    labs.close()
