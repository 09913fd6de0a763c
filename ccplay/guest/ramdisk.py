"""Builds the guest's ramdisk: what mounts the host's files, and the modules of every lab."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ccplay.files.writing import make_directory, write
from ccplay.guest.boot import INIT, UNPACKERS, run

_NEEDED = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay", "qemu_fw_cfg")
"""Modules for the host's files and the consoles; a kernel may have some built in."""

_OF_LABS = (
    *("veth", "ifb", "tcp_diag", "inet_diag", "cls_u32", "act_mirred"),
    *("iptable_mangle", "iptable_raw", "nfnetlink_queue"),
    *("xt_NFQUEUE", "xt_mark", "xt_MARK", "xt_CLASSIFY", "xt_DSCP", "xt_dscp"),
    *("sch_htb", "sch_ingress", "sch_netem", "sch_tbf", "sch_sfq", "sch_red", "sch_choke"),
    *("sch_codel", "sch_fq_codel", "sch_pie", "sch_fq_pie", "sch_cake", "sch_fq", "sch_drr"),
    *("sch_prio", "sch_hhf", "sch_sfb", "sch_dualpi2"),
)
"""Modules that each lab tries or uses.

Without them in the ramdisk the kernel would start modprobe(8) for each, which unpacks it from the
machine's files: 130 ms of an emulated guest's time."""

_MODPROBE = '#!/bin/sh\nexec chroot /lab /sbin/modprobe "$@"\n'
"""Script that the kernel runs to load a module."""

_SIGNED = b"~Module signature appended~\n"
_SIGNATURE = struct.Struct(">8xI")
"""``struct module_signature``, which ends with the signature's length; see Linux's
include/linux/module_signature.h."""


def ramdisk(busybox: Path, modules: Path) -> bytes:
    """Return the cpio archive for a kernel with its modules in the folder ``modules``."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for folder in ("sbin", "modules"):
            make_directory(root / folder)
        write(root / "busybox", busybox.read_bytes())
        write(root / "init", INIT.read_bytes())
        write(root / "sbin" / "modprobe", _MODPROBE)
        for program in ("busybox", "init", "sbin/modprobe"):
            (root / program).chmod(0o755)
        for at, module in enumerate(_in_order(modules)):
            write(root / "modules" / f"{at:02}.ko", _unsigned(_unpacked(modules / module)))
        files = sorted(str(each.relative_to(root)) for each in root.rglob("*"))
        archive = [str(root / "busybox"), "cpio", "-o", "-H", "newc"]
        return run(archive, root, "\n".join(files).encode())


def _in_order(modules: Path) -> list[str]:
    """Return the files of the needed modules, each after its dependencies."""
    depends = {}
    for line in (modules / "modules.dep").read_text(encoding="utf-8").splitlines():
        file, _, others = line.partition(":")
        depends[file] = others.split()
    files = {Path(file).name.partition(".")[0]: file for file in depends}

    def with_others(file: str) -> Iterator[str]:
        for each in depends[file]:
            yield from with_others(each)
        yield file

    wanted = (
        each for name in (*_NEEDED, *_OF_LABS) if name in files for each in with_others(files[name])
    )
    return list(dict.fromkeys(wanted))


def _unpacked(module: Path) -> bytes:
    unpacker = UNPACKERS.get(module.suffix)
    return run([*unpacker, str(module)], module.parent) if unpacker else module.read_bytes()


def _unsigned(module: bytes) -> bytes:
    """Return a module without its signature, which takes an emulated processor 20 ms to check.

    Distributions' kernels load unsigned modules unless Secure Boot is on; in a guest it is off.
    """
    if not module.endswith(_SIGNED):
        return module
    body = module[: -len(_SIGNED)]
    (length,) = _SIGNATURE.unpack(body[-_SIGNATURE.size :])
    return body[: -_SIGNATURE.size - length]
