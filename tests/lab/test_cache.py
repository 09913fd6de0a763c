"""Objects that were built once: whatever becomes of them in the cache, an algorithm still runs."""

import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from ccplay.assets import algorithms
from ccplay.bpf import build as building
from ccplay.bpf.build import build
from ccplay.bpf.libbpf import try_out
from ccplay.bpf.support import lack
from ccplay.errors import CcplayError

_missing = lack()
pytestmark = pytest.mark.skipif(_missing is not None, reason=f"{_missing}")

SOURCE = algorithms()["vegas.bpf"]
NOBODY = 65534


def kept(folder: Path) -> Path:
    """Return the only object in the cache."""
    (found,) = (folder / "ccplay" / "algorithms").glob("*.o")
    return found


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def give_away(path: Path) -> None:
    os.chown(path, NOBODY, NOBODY)


def open_up(path: Path) -> None:
    path.chmod(0o666)


def link(path: Path) -> None:
    """Replace the object by a link to a valid file."""
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def swap(path: Path) -> None:
    """Replace the object by a valid one of another source."""
    before = path.read_bytes()
    path.unlink()
    build(algorithms()["illinois.bpf"])
    (other,) = path.parent.glob("*.o")
    assert other.read_bytes() != before
    other.rename(path)


@pytest.mark.parametrize("harm", [truncate, empty, flip, give_away, open_up, link, swap])
def test_an_object_that_is_harmed_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], None]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    told: list[str] = []
    image, _ = build(SOURCE, told.append)
    assert build(SOURCE, told.append) == (image, [])
    assert len(told) == 1
    harm(kept(tmp_path))
    again, _ = build(SOURCE, told.append)
    assert len(told) == 2
    try_out(again, "vegas")
    found = kept(tmp_path)
    assert not found.is_symlink()
    assert (found.stat().st_uid, found.stat().st_mode & 0o777) == (0, 0o644)
    assert build(SOURCE, told.append) == (again, [])
    assert len(told) == 2


def test_nothing_is_built_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guests share it, and do not see each other's locks on a folder of a running clang."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run, hidden = building._run, list[Path]()

    def watched(argv: list[str], text: bytes = b"") -> CompletedProcess[bytes]:
        hidden.extend((tmp_path / "ccplay" / "algorithms").glob(".*"))
        return run(argv, text)

    monkeypatch.setattr(building, "_run", watched)
    build(SOURCE)
    assert hidden == []


def test_types_of_the_kernel_that_are_cut_short_are_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    build(SOURCE)
    kept(tmp_path).unlink()
    (header,) = tmp_path.glob("ccplay/algorithms/*/vmlinux.h")
    size = header.stat().st_size
    truncate(header)
    image, _ = build(SOURCE)
    try_out(image, "vegas")
    assert header.stat().st_size == size


def test_a_cache_that_others_may_write_is_closed_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "ccplay" / "algorithms").mkdir(parents=True)
    (tmp_path / "ccplay" / "algorithms").chmod(0o777)
    build(SOURCE)
    assert (tmp_path / "ccplay" / "algorithms").stat().st_mode & 0o777 == 0o755


def test_a_cache_of_a_stranger_s_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "ccplay" / "algorithms").mkdir(parents=True)
    os.chown(tmp_path / "ccplay" / "algorithms", NOBODY, NOBODY)
    with pytest.raises(
        CcplayError, match=r"can't write to .*algorithms: it belongs to another user"
    ):
        build(SOURCE)


def test_a_header_in_the_current_directory_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody may have put it there, for example into /tmp."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for name in ("ccplay_cc.h", "vmlinux.h"):
        (tmp_path / name).write_text("#error a stranger's\n")
    image, warnings = build(SOURCE)
    assert not warnings
    try_out(image, "vegas")
