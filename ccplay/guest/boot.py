"""Boots a program under the guest's kernel: its files, QEMU's command line, and its stdio.

The guest sees the machine's own files; what it writes is lost, except in the shared folders.
The guest ends with the program, the program ends with its stdin, and both end with the process
that started them.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
from platformdirs import user_cache_path

from ccplay.assets import find_tool
from ccplay.errors import CcplayError, LabError, UnsupportedError
from ccplay.files.cache import Cache
from ccplay.files.writing import is_safe

# --- paths of the guest's files in the user's cache -----------------------------------------------


def folder() -> Path:
    """Return the user's guest folder; if root has none, that of sudo's caller."""
    own, user = user_cache_path("ccplay") / "guest", os.environ.get("SUDO_USER")
    if own.is_dir() or not user:
        return own
    theirs = Path(os.path.expanduser(f"~{user}")) / ".cache" / "ccplay" / "guest"  # noqa: PTH111 - does not raise
    return theirs if theirs.is_dir() else own


FOLDER = folder()

KERNEL = FOLDER / "vmlinuz"
UNPACKED = FOLDER / "vmlinux"
"""Unpacked kernel, which an emulated guest boots; missing if QEMU can't start it unpacked."""

MODULES = FOLDER / "lib" / "modules"
ACCELERATOR = FOLDER / "accelerator"
"""File with the name of the accelerator that booted the guest; written last."""

ACCELERATORS = ("kvm", "tcg")

INIT = Path(__file__).parent / "init"
_MADE_BY = (INIT, *map(INIT.with_name, ("ramdisk.py", "image.py")))
_DIGEST = sha256(b"".join(file.read_bytes() for file in _MADE_BY)).hexdigest()
RAMDISK = FOLDER / f"ramdisk-{_DIGEST[:8]}"
"""Ramdisk, named by the digest of the code that makes it and ``UNPACKED``, which may differ
between versions."""


# --- programs of the host that build and boot a guest ---------------------------------------------

_PACKAGES = {"qemu-system-x86_64": "qemu-system-x86", "depmod": "kmod", "xz": "xz-utils"}
"""Package of a program in Debian and Ubuntu, if it has another name, by the program's name."""

UNPACKERS = {".xz": ["xz", "-dc"], ".zst": ["zstd", "-dc"], ".gz": ["gzip", "-dc"]}
"""Command lines that unpack a file or stdin to stdout, by the suffix of the packed file."""


def find(name: str) -> str:
    """Return the path of a program. Raises ``UnsupportedError`` with its package if missing."""
    path = find_tool(name)
    if path is None:
        package = _PACKAGES.get(name, name)
        raise UnsupportedError(f"{name} is not installed (apt install {package})")
    return path


def run(argv: Sequence[str], folder: Path, text: bytes = b"") -> bytes:
    """Run a program in ``folder`` and return what it prints. Raises ``CcplayError``."""
    words = [find(argv[0]), *argv[1:]]
    done = subprocess.run(words, cwd=folder, input=text, capture_output=True, check=False)
    if done.returncode != 0:
        messages = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise CcplayError(f"{argv[0]} failed: {messages[-1]}")
    return done.stdout


# --- the list of a guest's files with size and digest, checked before the guest runs --------------

CONTENTS = "contents"
_NOT_LISTED = (CONTENTS, "accelerator")


def seal(folder: Path) -> None:
    """Write the list of the files in a guest's folder. Raises ``OSError``."""
    listed = {
        str(path.relative_to(folder)): (path.stat().st_size, _digest(path))
        for path in folder.rglob("*")
        if path.is_file()
        and not path.is_symlink()
        and str(path.relative_to(folder)) not in _NOT_LISTED
    }
    with Cache(folder) as cache:
        cache.keep(CONTENTS, msgspec.json.encode(listed))


def flaw(folder: Path, read: tuple[Path, ...] | None = None) -> str | None:
    """Return the first flaw of a guest's files, such as a changed one; None if they are intact.

    A flaw is a file that changed, is missing or is writable by others. Content is checked only for
    the files in ``read``; None means all.
    """
    try:
        return _flaw(folder, read)
    except OSError as error:
        return f"{Path(error.filename or folder).name}: {error.strerror}"


def _flaw(folder: Path, read: tuple[Path, ...] | None) -> str | None:
    if not is_safe(folder.lstat()):
        return "it is writable by others"
    with Cache(folder) as cache:
        content = cache.find(CONTENTS)
    if content is None:
        return "its list of contents is missing"
    listed: dict[str, tuple[int, str]] = msgspec.json.decode(content)
    for place, _, _ in os.walk(folder):
        if not is_safe(Path(place).lstat()):
            return f"{place} is writable by others"
    for name, (size, digest) in listed.items():
        path = folder / name
        found = path.lstat()
        if not (stat.S_ISREG(found.st_mode) and is_safe(found) and found.st_size == size):
            return f"{name} was changed"
        if (read is None or path in read) and _digest(path) != digest:
            return f"{name} was changed"
    for path in read or ():
        if str(path.relative_to(folder)) not in listed:
            return f"{path.name} is not in its list of contents"
    return None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- QEMU's command line, which runs a program under the guest's kernel, with its stdio -----------

_KERNEL_PARAMETERS = (
    "console=ttyS0 quiet loglevel=3 panic=-1 mitigations=off random.trust_cpu=1 "
    # Clearing every page as Debian's kernels do, self-tests, and measuring clock jitter for random
    # numbers would only make an emulated boot longer.
    "init_on_alloc=0 cryptomgr.notests initcall_blacklist=jent_mod_init"
)

_EMULATED_MACHINE = ("-M", "microvm,pcie=on,acpi=on,rtc=on")
"""Options for QEMU's machine without a PC's devices, for which an emulated boot would search."""

_EMULATED_CLOCK = " tsc_early_khz=1000000"
"""Kernel option: kHz of an emulated time stamp counter; a microvm has no clock to measure it by."""

_TWO_NS = "shift=1"
"""QEMU's option by which each emulated instruction takes 2 ns of the guest's time, see argv()."""

_BOUND = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
"""Python code that runs a program which dies with its starter; exits if that is already dead."""


def argv(
    command: Sequence[str],
    shared: Sequence[Path] = (),
    *,
    accelerator: str = "",
    paced: bool = False,
) -> list[str]:
    """Return the argv that runs ``command``, which begins with its environment, in the guest.

    This process must start the program, which ends with it.

    With an emulated processor the guest's clock counts instructions, so a busy machine makes the
    guest slow, but not wrong: nothing in it is late. While the guest idles, or waits for a file,
    its clock jumps to the next timer; if ``paced``, it follows the machine's clock instead.
    Anything started by the clock, such as the steps of a scenario, needs ``paced``. ``accelerator``
    is QEMU's; by default the one that has booted the guest. Raises ``LabError``.
    """
    if not accelerator:
        if (missing := lack()) is not None:
            raise LabError(missing)
        accelerator = seen_to_work()
    words = [str(MODULES), *map(str, shared), *command]
    if "\n" in "".join(words):
        raise LabError(f"a guest can't use names with line breaks: {' '.join(words)!r}")
    # The guest's init reads a word a line.
    lines = "".join(f"{word}\n" for word in words)
    emulated = accelerator == "tcg"
    pace = f"{_TWO_NS},sleep={'on' if paced else 'off'}"
    return [
        # QEMU dies with us; a guest that is still booting would not see its stdin end.
        *bound_to(os.getpid()),
        *(find("qemu-system-x86_64"), "-nodefaults", "-no-user-config", "-no-reboot"),
        *("-display", "none", "-m", "1G", "-accel", accelerator),
        *(_EMULATED_MACHINE if emulated else ()),
        *(("-cpu", "max", "-icount", pace) if emulated else ("-cpu", "host")),
        *("-kernel", str(_kernel(accelerator)), "-initrd", str(RAMDISK)),
        *("-serial", "file:/dev/stderr"),
        *("-device", "virtio-serial"),
        *("-chardev", "stdio,id=in,signal=off", "-device", "virtserialport,chardev=in"),
        # Two ports, because a port is closed in both directions when its stdin ends.
        *("-chardev", "file,id=out,path=/dev/stdout", "-device", "virtserialport,chardev=out"),
        *_share("machine", Path("/"), ",readonly=on"),
        *(word for at, each in enumerate(shared) for word in _share(f"share{at}", each)),
        *("-append", _KERNEL_PARAMETERS + (_EMULATED_CLOCK if emulated else "")),
        # Not on the kernel's command line, which takes 32 words and no empty ones.
        *("-fw_cfg", f"name=opt/ccplay,string={_escaped(lines)}"),
    ]


def bound_to(starter: int) -> list[str]:
    """Return the prefix of an argv that makes its program die with the process ``starter``."""
    # -I: nothing from the environment; -S: no site-packages, which take time to find.
    return [sys.executable, "-I", "-S", "-c", _BOUND, str(starter)]


def is_possible() -> bool:
    """Whether guests exist for this kind of machine, installed or not."""
    return platform.machine() == "x86_64"


def lack() -> str | None:
    """Return what keeps the guest from booting, with the remedy; None if nothing does.

    Reads the guest's files, which takes a quarter of a second.
    """
    if (reason := absent()) is not None:
        return reason
    # The content of the modules is checked only by ``fetch``.
    if (wrong := flaw(FOLDER, (_kernel(seen_to_work()), RAMDISK))) is not None:
        return f"the guest in {FOLDER} can't be trusted: {wrong} (run make guest, or ccplay guest)"
    return None


def absent() -> str | None:
    """Return which part of the guest is missing, with the remedy; None if it is installed."""
    if not is_possible():
        return f"there is no guest for {platform.machine()} yet, only for x86_64"
    if not seen_to_work():
        return f"no guest is installed in {FOLDER}: run make guest, or ccplay guest"
    if not RAMDISK.exists():
        return f"the guest in {FOLDER} belongs to another version: run make guest, or ccplay guest"
    try:
        find("qemu-system-x86_64")
    except UnsupportedError as error:
        return str(error)
    return None


def _kernel(accelerator: str) -> Path:
    """Return the kernel to boot: packed with KVM, where unpacking takes no time."""
    return UNPACKED if accelerator == "tcg" and UNPACKED.exists() else KERNEL


def seen_to_work() -> str:
    """Return QEMU's accelerator that has booted the guest; empty if none has."""
    try:
        name = ACCELERATOR.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    return name if name in ACCELERATORS else ""


def cost() -> str:
    """Return what a lab in the guest costs, in words that follow ``which``."""
    if seen_to_work() == "kvm":
        return "takes a few seconds to start"
    return "is emulated: it takes about half a minute to start, and carries about 10 Mbit/s"


def offer(kernel: str, what: str, option: str) -> str:
    """Return how to get ``what`` from a full kernel, with its cost; empty if no guest helps.

    ``kernel`` is the release that lacks it, ``option`` what to add to the command line. If it is
    not this machine's kernel, the lab already runs in a guest, or on another machine.
    """
    if kernel != os.uname().release or not is_possible():
        return ""
    # The guest's files are checked when it boots; a menu must not wait for that.
    if absent() is not None:
        return (
            f"a full kernel has {what}: make guest (or ccplay guest) fetches one, then add {option}"
        )
    return f"a full kernel has {what}: add {option}, for a guest, which {cost()}"


def environment() -> list[str]:
    """Return the environment, ``NAME=VALUE``, that our Python needs in the guest."""
    root = os.geteuid() == 0
    variables = {
        "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(Path.home()),
        # Root in the guest writes files as this user and trusts this user's symlinks.
        "SUDO_UID": os.environ.get("SUDO_UID", "") if root else str(os.getuid()),
        "SUDO_GID": os.environ.get("SUDO_GID", "") if root else str(os.getgid()),
        **{n: os.environ[n] for n in ("PYTHONPATH", "XDG_CACHE_HOME") if n in os.environ},
    }
    return [f"{name}={value}" for name, value in variables.items()]


def _share(tag: str, folder: Path, option: str = "") -> list[str]:
    """Return QEMU's options for a folder shared as a 9p device."""
    shared = f"local,id={tag},path={_escaped(folder)},security_model=none,multidevs=remap{option}"
    return ["-fsdev", shared, "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]


def _escaped(text: object) -> str:
    """Return a value as QEMU's options take it, with commas doubled."""
    return str(text).replace(",", ",,")
