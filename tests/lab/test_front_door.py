"""What a lab does with what it can't take: endless lines, and machines that allow no namespaces."""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from ccplay.errors import ROOT_REMEDY, LabError
from ccplay.model.commands import Build, Mark
from ccplay.model.events import Applied, Ended, Failed, Hello
from ccplay.session import launch
from ccplay.stream import wire
from ccplay.stream.sources import LabSource

NEEDED = "a lab can't start here, because it needs its own namespaces: "
_CLONE_NEWUSER = 0x10000000


def ccplay_lab(
    before: Sequence[str] = (), stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run ``ccplay lab`` until its stdin ends."""
    argv = [*before, sys.executable, "-m", "ccplay", "lab"]
    return subprocess.run(argv, input=stdin, capture_output=True, check=False, timeout=120)


def test_a_line_of_any_length_is_refused_and_the_next_one_obeyed() -> None:
    after = Mark(text="after", name="m1")
    endless = b"x" * (wire.LONGEST_COMMAND + (1 << 20)) + b"\n"
    done = ccplay_lab(stdin=wire.encode(Build()) + endless + wire.encode(after).rstrip())
    events = [wire.decode_event(line) for line in done.stdout.splitlines()]
    (refused,) = [each for each in events if isinstance(each, Failed)]
    assert refused.message.startswith("a command has at most 4,194,304 bytes: xxx")
    assert [each.command for each in events if isinstance(each, Applied)] == [after]
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_end_drops_the_commands_that_wait() -> None:
    """They arrive while the network is built, so none of them has begun."""
    pipe = subprocess.PIPE
    argv = [sys.executable, "-m", "ccplay", "lab"]
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe) as lab:
        assert lab.stdin is not None
        assert lab.stdout is not None
        lab.stdin.write(wire.encode(Build()))
        lab.stdin.flush()
        assert isinstance(wire.decode_event(lab.stdout.readline()), Hello)
        rest, _ = lab.communicate(wire.encode(Mark(text="now")) * 9 + wire.END, timeout=120)
    events = [wire.decode_event(line) for line in rest.splitlines()]
    assert isinstance(events[-1], Ended)
    assert not [each for each in events if isinstance(each, Applied | Failed)]


def test_an_endless_first_line_is_refused() -> None:
    done = ccplay_lab(stdin=b"x" * (wire.LONGEST_COMMAND + 9))
    assert done.stderr.startswith(b"ccplay lab: a command has at most 4,194,304 bytes")
    assert done.stderr.count(b"\n") == 1
    assert done.returncode == 7


async def words_of(argv: Sequence[str]) -> str:
    """Return the reason why a lab ended."""
    with pytest.raises(LabError) as caught:
        async for _ in LabSource(argv, Build()).events():
            pass
    return str(caught.value)


@pytest.mark.parametrize("stream", [1, 2])
async def test_what_a_far_host_says_may_be_of_any_length(stream: int) -> None:
    """An endless line is cut; the line with the reason is still found."""
    say = f"head -c 3000000 /dev/zero | tr '\\0' x >&{stream}; echo >&{stream}"
    found = await words_of(["sh", "-c", f"{say}; echo 'ccplay lab: no room' >&2; exit 5"])
    assert found == "no room"
    found = await words_of(["sh", "-c", f"{say}; exit 5"])
    assert found.startswith("the lab ended with exit code 5: xxx")
    assert len(found) < 3_000


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up what root may do")


@needs_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="no setpriv")
async def test_root_without_its_capabilities_hears_what_to_do() -> None:
    """As in a container. A screen starts unshare(1) itself, so unshare's message is explained."""
    confined = ["setpriv", "--bounding-set", "-sys_admin"]
    said = f"{NEEDED}unshare: unshare failed: Operation not permitted ({ROOT_REMEDY})"
    done = ccplay_lab(confined)
    assert done.stderr.decode() == f"ccplay: {said}\n"
    assert done.returncode == LabError.exit_code
    assert await words_of([*confined, *launch.inner_argv()]) == said


@needs_root
def test_a_user_without_user_namespaces_hears_what_to_do() -> None:
    """On a machine that allows none; in a user namespace the limit is its own."""
    if (refusal := launch.rootless_refusal()) is not None:
        pytest.skip(f"no user namespaces here: {refusal}")
    done = ccplay_lab([sys.executable, __file__])
    remedy = "user.max_user_namespaces is 0 (remedy: sysctl user.max_user_namespaces=10000"
    assert done.stderr.decode() == f"ccplay: {NEEDED}{remedy}, or use sudo)\n"
    assert done.returncode == LabError.exit_code


def test_the_server_alone_touches_nothing() -> None:
    """As root outside of private namespaces it would mount over the host's /run."""
    mounted = Path("/proc/self/mounts").read_text()
    argv = [sys.executable, "-m", "ccplay.lab"]
    done = subprocess.run(
        argv, input=msgspec.json.encode(Build()), capture_output=True, check=False, timeout=60
    )
    said = b"ccplay lab: a lab needs namespaces of its own: start it with 'ccplay lab'\n"
    assert (done.stderr, done.stdout) == (said, b"")
    assert Path("/proc/self/mounts").read_text() == mounted


def main() -> None:
    """Become an ordinary user who can't make user namespaces, and run a command."""
    there, here = os.pipe()
    if (child := os.fork()) == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(_CLONE_NEWUSER) != 0:
            os._exit(99)
        os.write(here, b"x")
        while Path("/proc/self/uid_map").read_text() == "":
            os.sched_yield()
        Path("/proc/sys/user/max_user_namespaces").write_text("0")
        os.execv(sys.argv[1], sys.argv[1:])
    # Then a child that ends without a word is not waited for.
    os.close(here)
    if os.read(there, 1):
        Path(f"/proc/{child}/uid_map").write_text("1000 0 1\n")
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    main()
