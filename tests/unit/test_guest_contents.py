"""The files of a guest: whatever becomes of one of them, the guest is refused and says which."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ccplay.guest.boot import CONTENTS, flaw, seal


@pytest.fixture
def guest(tmp_path: Path) -> Path:
    folder = tmp_path / "guest"
    modules = folder / "lib" / "modules" / "6.12"
    modules.mkdir(parents=True)
    for path in (folder / "vmlinuz", folder / "ramdisk-1", modules / "tcp_bbr.ko"):
        path.write_bytes(path.name.encode() * 1000)
    # As distributions have it, and it leads nowhere here.
    (modules / "build").symlink_to("/usr/src/none")
    seal(folder)
    (folder / "accelerator").write_text("kvm")
    return folder


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)


def test_a_whole_guest_has_no_flaw(guest: Path) -> None:
    assert flaw(guest) is None
    assert flaw(guest, (guest / "vmlinuz", guest / "ramdisk-1")) is None


@pytest.mark.parametrize(
    ("name", "harm", "told"),
    [
        ("vmlinuz", flip, "vmlinuz was changed"),
        ("vmlinuz", lambda path: os.truncate(path, 100), "vmlinuz was changed"),
        ("ramdisk-1", Path.unlink, "ramdisk-1: No such file"),
        ("ramdisk-1", lambda path: path.chmod(0o666), "ramdisk-1 was changed"),
        (
            "lib/modules/6.12/tcp_bbr.ko",
            lambda path: os.truncate(path, 9),
            "tcp_bbr.ko was changed",
        ),
        ("lib/modules", lambda path: path.chmod(0o777), "lib/modules.* is writable by others"),
        (".", lambda path: path.chmod(0o775), "it is writable by others"),
        (CONTENTS, flip, "its list of contents is missing"),
        (CONTENTS, Path.unlink, "its list of contents is missing"),
    ],
)
def test_what_was_harmed_is_named(
    guest: Path, name: str, harm: Callable[[Path], None], told: str
) -> None:
    harm(guest / name)
    for found in (flaw(guest), flaw(guest, (guest / "vmlinuz", guest / "ramdisk-1"))):
        assert found is not None
        assert re.search(told, found)


def test_modules_are_read_when_a_guest_is_made_ready(guest: Path) -> None:
    """Not at each start, for they have a hundred megabytes."""
    flip(guest / "lib" / "modules" / "6.12" / "tcp_bbr.ko")
    assert flaw(guest) == "lib/modules/6.12/tcp_bbr.ko was changed"
    assert flaw(guest, (guest / "vmlinuz",)) is None


def test_a_kernel_that_is_not_listed_is_refused(guest: Path) -> None:
    (guest / "ramdisk-2").touch()
    assert flaw(guest, (guest / "ramdisk-2",)) == "ramdisk-2 is not in its list of contents"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", [".", "vmlinuz", "lib", CONTENTS])
def test_what_belongs_to_a_stranger_is_refused(guest: Path, name: str) -> None:
    os.chown(guest / name, 65533, 65533)
    assert flaw(guest) is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_guest_of_sudo_s_caller_is_trusted(
    guest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (guest, *guest.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    assert flaw(guest) == "it is writable by others"
    monkeypatch.setenv("SUDO_UID", "12345")
    monkeypatch.setenv("SUDO_GID", "12345")
    assert flaw(guest) is None
