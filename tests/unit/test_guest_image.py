"""A guest's kernel, as distributions pack it and as an emulated guest boots it."""

import gzip
import lzma
import shutil
import struct
import subprocess
from collections.abc import Callable

import pytest

from ccplay.errors import CcplayError
from ccplay.guest.image import unpacked
from ccplay.guest.ramdisk import _unsigned

PHYS32_ENTRY = 18


def elf(*notes: tuple[bytes, int]) -> bytes:
    """Return an ELF file with nothing but a segment of notes, which follows another one."""
    body = b"".join(
        struct.pack("<III", len(name), 4, kind)
        + name.ljust(-(-len(name) // 4) * 4, b"\0")
        + b"here"
        for name, kind in notes
    )
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 64, 64, 4096)
    note = struct.pack("<IIQQQQQQ", 4, 4, 64 + 112, 0, 0, len(body), len(body), 4)
    return head + load + note + body


def image(packed: bytes, length: int, version: int = 0x20F, magic: bytes = b"HdrS") -> bytes:
    """Return a bzImage: its header in the first of three sectors, the payload not at their end."""
    payload = packed + (b"" if packed.startswith(b"\x1f\x8b") else struct.pack("<I", length))
    made = bytearray(3 * 512)
    made[0x1F1] = 2
    made[0x202:0x206] = magic
    struct.pack_into("<H", made, 0x206, version)
    struct.pack_into("<II", made, 0x248, 100, len(payload))
    return bytes(made) + bytes(100) + payload + b"what unpacks it"


def zstd(content: bytes) -> bytes:
    if shutil.which("zstd") is None:
        pytest.skip("zstd is not installed")
    return subprocess.run(["zstd", "-c"], input=content, capture_output=True, check=True).stdout


KERNEL = elf((b"Linux\0", 257), (b"Xen\0", 6), (b"Xen\0", PHYS32_ENTRY))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstd])
def test_what_the_image_holds_is_found(pack: Callable[[bytes], bytes]) -> None:
    assert unpacked(image(pack(KERNEL), len(KERNEL))) == KERNEL


@pytest.mark.parametrize(
    "kernel",
    [elf((b"Xen\0", 6), (b"GNU\0", PHYS32_ENTRY)), elf(), KERNEL.replace(b"ELF\x02", b"ELF\x01")],
    ids=["other notes", "no notes", "32 bits"],
)
def test_a_kernel_that_qemu_can_not_start_stays_packed(kernel: bytes) -> None:
    assert unpacked(image(lzma.compress(kernel), len(kernel))) is None


@pytest.mark.parametrize(
    "other",
    [
        b"",
        KERNEL,
        image(b"\x04\x22\x4d\x18 as lz4 begins", 100),
        image(lzma.compress(KERNEL), len(KERNEL), version=0x207),
        image(lzma.compress(KERNEL), len(KERNEL), magic=b"MZxx"),
    ],
    ids=["nothing", "no image", "lz4", "an old protocol", "no header"],
)
def test_what_can_not_be_unpacked_stays_as_it_is(other: bytes) -> None:
    assert unpacked(other) is None


@pytest.mark.parametrize(
    "broken",
    [image(lzma.compress(KERNEL), len(KERNEL) + 1), image(lzma.compress(KERNEL)[:-9], len(KERNEL))],
    ids=["another length", "cut"],
)
def test_a_damaged_image_is_refused(broken: bytes) -> None:
    with pytest.raises(CcplayError):
        unpacked(broken)


def test_a_signature_is_cut_off_a_module() -> None:
    signature = b"PKCS#7"
    tail = struct.pack(">8xI", len(signature)) + b"~Module signature appended~\n"
    assert _unsigned(b"\x7fELF code" + signature + tail) == b"\x7fELF code"
    assert _unsigned(b"\x7fELF code") == b"\x7fELF code"
