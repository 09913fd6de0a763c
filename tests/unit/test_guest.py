"""A guest: which kernel is taken, and how it is told what to run."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from ccplay.errors import CcplayError, LabError
from ccplay.guest import boot, fetch
from ccplay.guest.fetch import newest_of
from ccplay.model.values import Feature
from ccplay.ui.dialog_form import feature_items

DEBIAN = """\
linux-image-6.1.0-50-amd64 - Linux 6.1 for 64-bit PCs (signed)
linux-image-6.12-amd64 - Linux for 64-bit PCs (meta-package)
linux-image-6.12.101+deb12-amd64 - Linux 6.12 for 64-bit PCs (signed)
linux-image-6.12.117+deb12-amd64 - Linux 6.12 for 64-bit PCs (signed)
linux-image-6.12.117+deb12-cloud-amd64 - Linux 6.12 for x86-64 cloud (signed)
linux-image-6.12.117+deb12-rt-amd64 - Linux 6.12 for 64-bit PCs (signed), PREEMPT_RT
linux-image-6.12.99+deb12-amd64-unsigned - Linux 6.12 for 64-bit PCs
"""
UBUNTU = """\
linux-image-6.8.0-31-generic - Signed kernel image generic
linux-image-6.8.0-100-generic - Signed kernel image generic
linux-image-6.8.0-1005-gke - Signed kernel image gke
"""


@pytest.mark.parametrize(
    ("offered", "release"),
    [
        (DEBIAN, "6.12.117+deb12-amd64"),
        (UBUNTU, "6.8.0-100-generic"),
        # Its BPF algorithms would stay when the lab has gone.
        (DEBIAN.splitlines(keepends=True)[0], None),
        ("", None),
    ],
)
def test_the_newest_kernel_with_all_modules_is_taken(offered: str, release: str | None) -> None:
    assert newest_of(offered) == release


SPLIT = """\
linux-binary-7.3.4+deb13-amd64 - Linux 7.3 for 64-bit PCs (signed)
linux-image-7.3.4+deb13-amd64 - Linux 7.3 for 64-bit PCs (meta package)
linux-modules-7.3.4+deb13-amd64 - Linux 7.3 modules for 64-bit PCs
"""


def test_a_kernel_may_be_in_several_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def search(argv: list[str], _: Path) -> bytes:
        asked.append(argv[-1])
        return SPLIT.encode()

    monkeypatch.setattr(fetch, "run", search)
    names = [f"linux-{part}-7.3.4+deb13-amd64" for part in ("binary", "image", "modules")]
    assert fetch.packages_of("7.3.4+deb13-amd64") == names
    assert all(re.match(asked[0], name) for name in names)
    assert not re.match(asked[0], "linux-image-7.3.4+deb13-amd64-dbg")


@pytest.mark.parametrize(
    ("files", "held"),
    [
        ([], "neither"),
        (["boot/vmlinuz-6.17"], "Linux 6.17"),
        (["boot/vmlinuz-6.17", "lib/modules/6.18/kernel/a.ko"], "Linux 6.17, modules of 6.18"),
    ],
)
def test_packages_without_a_whole_kernel_are_refused(
    tmp_path: Path, files: list[str], held: str
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    with pytest.raises(CcplayError, match=f"one kernel and its modules, but hold {held}$"):
        fetch._settle(tmp_path)


def test_a_kernel_that_would_keep_algorithms_is_refused(tmp_path: Path) -> None:
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot" / "vmlinuz-6.1.0-50-amd64").touch()
    (tmp_path / "lib" / "modules" / "6.1.0-50-amd64" / "kernel").mkdir(parents=True)
    too_old = r"6\.1\.0-50-amd64 is too old: ccplay needs 6\.4 or newer"
    with pytest.raises(CcplayError, match=too_old):
        fetch._settle(tmp_path)


def test_words_may_be_empty_or_have_spaces_commas_and_quotes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """QEMU takes commas apart; a word is a line."""
    monkeypatch.setattr(boot, "find", lambda name: name)
    words = boot.argv(["HOME=/a b", "true", "", '"'], [Path("/my, own")], accelerator="tcg")
    assert any("path=/my,, own," in word for word in words)
    assert words[-1].endswith('\n/my,, own\nHOME=/a b\ntrue\n\n"\n')


def test_what_the_guest_can_not_receive_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot, "find", lambda name: name)
    with pytest.raises(LabError, match="names with line breaks"):
        boot.argv(["true", "a\nb"], accelerator="tcg")


@pytest.mark.parametrize(
    ("starter", "said"), [(os.getpid(), b"here\n"), (0, b"")], ids=["alive", "gone"]
)
def test_what_is_bound_to_a_starter_that_is_gone_does_not_begin(starter: int, said: bytes) -> None:
    """It may be killed before its child can ask to die with it."""
    argv = [*boot.bound_to(starter), "/bin/echo", "here"]
    assert subprocess.run(argv, capture_output=True, check=True).stdout == said


@pytest.mark.parametrize("paced", [True, False])
def test_only_an_emulated_clock_counts_instructions(
    monkeypatch: pytest.MonkeyPatch, paced: bool
) -> None:
    monkeypatch.setattr(boot, "find", lambda name: name)
    pace = f"shift=1,sleep={'on' if paced else 'off'}"
    assert pace in boot.argv(["true"], accelerator="tcg", paced=paced)
    assert "-icount" not in boot.argv(["true"], accelerator="kvm", paced=paced)


def test_only_an_emulated_machine_is_no_pc(monkeypatch: pytest.MonkeyPatch) -> None:
    """A microvm can't measure its time stamp counter, so its frequency is given."""
    monkeypatch.setattr(boot, "find", lambda name: name)
    emulated = " ".join(boot.argv(["true"], accelerator="tcg"))
    assert "-M microvm," in emulated
    assert "tsc_early_khz=1000000" in emulated
    accelerated = " ".join(boot.argv(["true"], accelerator="kvm"))
    assert "microvm" not in accelerated
    assert "tsc_early_khz" not in accelerated


def test_only_an_emulated_guest_boots_an_unpacked_kernel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And only where the kernel can be started so."""
    monkeypatch.setattr(boot, "find", lambda name: name)
    monkeypatch.setattr(boot, "UNPACKED", tmp_path / "vmlinux")
    monkeypatch.setattr(boot, "KERNEL", tmp_path / "vmlinuz")

    def booted(accelerator: str) -> str:
        words = boot.argv(["true"], accelerator=accelerator)
        return Path(words[words.index("-kernel") + 1]).name

    assert booted("tcg") == "vmlinuz"
    (tmp_path / "vmlinux").touch()
    assert (booted("tcg"), booted("kvm")) == ("vmlinux", "vmlinuz")


def test_a_menu_offers_a_guest_for_what_this_kernel_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without reading the guest's files, which would stop the screen for a quarter of a second."""

    def flaw(*_: object) -> None:
        pytest.fail("a menu reads the guest's files")

    monkeypatch.setattr(boot, "flaw", flaw)
    monkeypatch.setattr(boot, "is_possible", lambda: True)
    monkeypatch.setattr(boot, "absent", lambda: None)
    monkeypatch.setattr(boot, "cost", lambda: "costs little")
    sfb = Feature(name="sfb", available=False, reason="not in this kernel", remedy="modprobe")
    other = Feature(name="lia", available=False, reason="no clang", remedy="install it")
    has = Feature(name="pfifo", available=True)
    here = feature_items([sfb, other, has], os.uname().release)
    offer = "a full kernel has it: add --kernel guest, for a guest, which costs little"
    assert [each.missing for each in here] == [
        "",
        f"not in this kernel; {offer}",
        "no clang; install it",
    ]
    # In a guest, and on another machine, only the kernel's own remedy helps.
    assert feature_items([sfb], "another")[0].missing == "not in this kernel; modprobe"


@pytest.mark.parametrize(
    ("there", "taken"), [(["root", "user"], "root"), (["user"], "user"), ([], "root")]
)
def test_root_by_sudo_takes_the_guest_of_its_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, there: list[str], taken: str
) -> None:
    """``make guest`` made it as the user, ``sudo make test`` looks for it as root."""
    for name in there:
        (tmp_path / name / ".cache" / "ccplay" / "guest").mkdir(parents=True)
    monkeypatch.setenv("SUDO_USER", "somebody")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "root" / ".cache"))
    monkeypatch.setattr("os.path.expanduser", lambda _: str(tmp_path / "user"))
    assert boot.folder() == tmp_path / taken / ".cache" / "ccplay" / "guest"
