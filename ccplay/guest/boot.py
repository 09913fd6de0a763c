"""How to start a program under the guest's kernel: an argv of QEMU's, stdin and stdout its own.

The guest has the machine's own files; what it writes to them is forgotten, but for the folders that
it is lent. It ends with the program, the program with its stdin, and all with whoever started it.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from ccplay.errors import LabError, UnsupportedError
from ccplay.guest.contents import flaw
from ccplay.guest.kept import ACCELERATOR, ACCELERATORS, FOLDER, KERNEL, MODULES, RAMDISK
from ccplay.guest.tools import find

_KERNEL_IS_TOLD = "console=ttyS0 quiet loglevel=3 panic=-1 mitigations=off random.trust_cpu=1"

_TWO_NS = "shift=1"
"""Under emulation an instruction takes two nanoseconds of the guest's time, see argv()."""

_BOUND = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
"""Python that becomes a program which dies with its starter, unless that is dead already."""


def argv(
    command: Sequence[str], lent: Sequence[Path] = (), *, accelerator: str = "", paced: bool = False
) -> list[str]:
    """Return what runs ``command``, which begins with its environment, under the guest's kernel.

    For this process to start, with which it ends.

    Where the processor is emulated the guest's clock counts instructions, so a busy machine makes
    the guest slow, but not wrong: nothing in it comes late. While it idles its clock jumps to what
    comes next, also when it waits for a file; or, where it is to be ``paced``, goes on with the
    machine's. What begins by the clock, as the steps of a scenario do, has to be paced.
    ``accelerator`` is QEMU's; the one that was seen to work where nothing is said. Raises
    ``LabError``.
    """
    if not accelerator:
        if (missing := lack()) is not None:
            raise LabError(missing)
        accelerator = seen_to_work()
    emulated = accelerator == "tcg"
    pace = f"{_TWO_NS},sleep={'on' if paced else 'off'}"
    return [
        # However we die, QEMU dies too; a guest that still boots does not see its stdin end.
        *bound_to(os.getpid()),
        *(find("qemu-system-x86_64"), "-nodefaults", "-no-user-config", "-no-reboot"),
        *("-display", "none", "-m", "1G", "-accel", accelerator),
        *(("-cpu", "max", "-icount", pace) if emulated else ("-cpu", "host")),
        *("-kernel", str(KERNEL), "-initrd", str(RAMDISK)),
        *("-serial", "file:/dev/stderr"),
        *("-device", "virtio-serial"),
        *("-chardev", "stdio,id=in,signal=off", "-device", "virtserialport,chardev=in"),
        # Not the same, for a port is closed, both ways, when its stdin ends.
        *("-chardev", "file,id=out,path=/dev/stdout", "-device", "virtserialport,chardev=out"),
        *_share("machine", Path("/"), ",readonly=on"),
        *(word for at, each in enumerate(lent) for word in _share(f"share{at}", each)),
        *("-append", _KERNEL_IS_TOLD),
        # Not on the kernel's command line: that has room for 32 words, and none for empty ones.
        *("-fw_cfg", f"name=opt/ccplay,string={_told([str(MODULES), *map(str, lent), *command])}"),
    ]


def bound_to(starter: int) -> list[str]:
    """Return what stands before a program's argv so that it dies with the process ``starter``."""
    # -I: nothing from the surroundings; -S: no site-packages, which take a while to find.
    return [sys.executable, "-I", "-S", "-c", _BOUND, str(starter)]


def is_possible() -> bool:
    """Whether there is a guest for a machine like this, fetched or not."""
    return platform.machine() == "x86_64"


def lack() -> str | None:
    """Say what keeps the guest from being booted, and the remedy; None where nothing does."""
    if not is_possible():
        return f"there is no guest for {platform.machine()} yet, only for x86_64"
    if not seen_to_work():
        return f"there is no guest in {FOLDER}: make guest, or ccplay guest"
    if not RAMDISK.exists():
        return f"the guest in {FOLDER} is another version's: make guest, or ccplay guest"
    # The content of the modules is read by ``fetch`` alone.
    if (wrong := flaw(FOLDER, (KERNEL, RAMDISK))) is not None:
        return f"the guest in {FOLDER} can't be trusted: {wrong} (make guest, or ccplay guest)"
    try:
        find("qemu-system-x86_64")
    except UnsupportedError as error:
        return str(error)
    return None


def seen_to_work() -> str:
    """Return QEMU's accelerator that was seen to boot the guest; empty where none was."""
    try:
        name = ACCELERATOR.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    return name if name in ACCELERATORS else ""


def environment() -> list[str]:
    """Return ``NAME=VALUE`` of what a Python of ours needs to find itself again in the guest."""
    root = os.geteuid() == 0
    said = {
        "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(Path.home()),
        # Root in there is root for us: what it writes is ours, and ours are what it trusts.
        "SUDO_UID": os.environ.get("SUDO_UID", "") if root else str(os.getuid()),
        "SUDO_GID": os.environ.get("SUDO_GID", "") if root else str(os.getgid()),
        **{n: os.environ[n] for n in ("PYTHONPATH", "XDG_CACHE_HOME") if n in os.environ},
    }
    return [f"{name}={value}" for name, value in said.items()]


def _share(tag: str, folder: Path, option: str = "") -> list[str]:
    """Return a folder as a 9p device."""
    shared = f"local,id={tag},path={_spelt(folder)},security_model=none,multidevs=remap{option}"
    return ["-fsdev", shared, "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]


def _told(words: Sequence[str]) -> str:
    """Return the command of init, one word per line."""
    if "\n" in "".join(words):
        raise LabError(f"a guest can't use names with line breaks: {' '.join(words)!r}")
    return _spelt("".join(f"{word}\n" for word in words))


def _spelt(text: object) -> str:
    """Return a value as QEMU's options take it, with commas doubled."""
    return str(text).replace(",", ",,")
