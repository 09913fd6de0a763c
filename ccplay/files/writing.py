"""Writes files completely or not at all, and never through another user's symlink.

On the path to a file only symlinks of root, of this user and of sudo(8)'s caller are followed; the
last component is never followed as a symlink. Files that root writes under sudo belong to the
caller.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Self, cast

from ccplay.errors import CcplayError

_MOST_SYMLINKS = 40
"""Greatest number of symlinks followed on a path, as in the kernel; see path_resolution(7)."""

_MOST_NUMBERS = 1000

_SETTLED_S = 10.0
"""Seconds after which a passing folder without a lock belongs to no process any more."""

_STEP = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_HARD_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)

_NUMBER = re.compile(r"[0-9]{1,9}|[1-3][0-9]{9}")
"""Pattern of a user or group ID, kept below 2**32: chown(2) takes 32 bits."""

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFLNK: "a symlink",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


class Directory:
    """A directory held by its file descriptor, so it stays the same one if its path changes.

    Use it in a ``with`` statement, or ``close`` it. Failures raise ``OSError`` with the reason as
    ``strerror``.
    """

    def __init__(self, path: Path, descriptor: int | None = None, *, make: bool = False) -> None:
        """Open ``path``, unless it is open already; ``make`` creates missing directories."""
        self.path = path
        """Path of the directory, for messages only; files are opened by descriptor."""
        self.descriptor = _walk(path, make=make) if descriptor is None else descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the directory and release its lock."""
        os.close(self.descriptor)

    def enter(self, name: str, mode: int = 0o777) -> Directory:
        """Open a subdirectory, created with ``mode`` if missing; a symlink is refused."""
        there = _enter(self.descriptor, name, make=True, mode=mode)
        try:
            return Directory(self.path / name, os.open(".", _DIRECTORY, dir_fd=there))
        finally:
            os.close(there)

    def open(self, name: str) -> BinaryIO:
        """Open a regular file for reading; anything else, such as a symlink, is refused."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(name, flags, dir_fd=self.descriptor)
        kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
        if kind != stat.S_IFREG:
            os.close(descriptor)
            raise OSError(errno.EINVAL, f"it is {_KINDS.get(kind, 'not a regular file')}")
        return open(descriptor, "rb")  # noqa: PTH123 - by descriptor

    def create(self, name: str) -> BinaryIO:
        """Open a new file. Raises ``FileExistsError`` if the name is taken."""
        try:
            descriptor = os.open(name, _NEW, 0o644, dir_fd=self.descriptor)
        except FileExistsError:
            self._refuse_oddities(name)
            raise
        _give(descriptor)
        return open(descriptor, "wb")  # noqa: PTH123 - by descriptor

    @contextlib.contextmanager
    def written(self, name: str, *, replace: bool = False) -> Iterator[BinaryIO]:
        """Open a file that gets its name once it is complete and on the disk, or never.

        Without ``replace``, raises ``FileExistsError`` if the name is taken.
        """
        earlier = self._refuse_oddities(name)
        if earlier is not None and not replace:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        passing = f".ccplay-{os.urandom(8).hex()}"
        try:
            with self.create(passing) as file:
                if earlier is not None and stat.S_ISREG(earlier.st_mode) and is_safe(earlier):
                    os.fchmod(file.fileno(), stat.S_IMODE(earlier.st_mode) & 0o777)
                yield file
                file.flush()
                os.fsync(file.fileno())
            self._publish(passing, name, replace=replace)
        except BaseException:
            self.discard(passing)
            raise
        with contextlib.suppress(OSError):
            os.fsync(self.descriptor)

    def discard(self, name: str) -> None:
        """Delete a file, if there is one."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.descriptor)

    def _publish(self, passing: str, name: str, *, replace: bool) -> None:
        here = self.descriptor
        if not replace:
            try:
                os.link(passing, name, src_dir_fd=here, dst_dir_fd=here, follow_symlinks=False)
            except OSError as error:
                if error.errno not in _NO_HARD_LINKS:
                    raise
                if self._refuse_oddities(name) is not None:
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
            else:
                os.unlink(passing, dir_fd=here)
                return
        os.replace(passing, name, src_dir_fd=here, dst_dir_fd=here)

    def _refuse_oddities(self, name: str) -> os.stat_result | None:
        """Return the status of the file with this name, if any; raise ``OSError`` if not a file.

        A symlink counts as a file and may be replaced, because its target is not lost.
        """
        try:
            found = os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None
        kind = stat.S_IFMT(found.st_mode)
        if kind not in (stat.S_IFREG, stat.S_IFLNK):
            raise OSError(errno.EINVAL, f"it is {_KINDS.get(kind, 'not a regular file')}")
        return found


def create(path: Path) -> BinaryIO:
    """Open a new file that grows while others read it; see ``Directory.create``."""
    with Directory(path.parent) as folder:
        return folder.create(path.name)


def create_unnamed() -> BinaryIO:
    """Open a new file without a name, for reading and writing; it is deleted when closed."""
    import tempfile  # noqa: PLC0415 - few need it

    return cast("BinaryIO", tempfile.TemporaryFile(prefix="ccplay-"))


def create_numbered(folder: Path, stem: str, suffix: str) -> tuple[Path, BinaryIO]:
    """Open a new file ``stem`` + ``suffix``; if that exists, a number is added."""
    for path in _numbered(folder, stem, suffix):
        with contextlib.suppress(FileExistsError):
            return path, create(path)
    raise FileExistsError(errno.EEXIST, f"{stem}{suffix} and all its numbered names already exist")


def write_numbered(folder: Path, stem: str, suffix: str, content: bytes | str) -> Path:
    """Write a new file, completely or not at all, and return its path.

    Its name is ``stem`` + ``suffix``; if that exists, a number is added.
    """
    for path in _numbered(folder, stem, suffix):
        with contextlib.suppress(FileExistsError):
            write(path, content)
            return path
    raise FileExistsError(errno.EEXIST, f"{stem}{suffix} and all its numbered names already exist")


def _numbered(folder: Path, stem: str, suffix: str) -> Iterator[Path]:
    """Yield the free paths: without a number first, then with 2, 3, …."""
    for number in range(1, _MOST_NUMBERS):
        path = folder / f"{stem}{'' if number == 1 else f'-{number}'}{suffix}"
        if not os.path.lexists(path):
            yield path


@contextlib.contextmanager
def written(path: Path, *, replace: bool = False) -> Iterator[BinaryIO]:
    """Open a file that appears once it is complete, or never; see ``Directory.written``."""
    with Directory(path.parent) as folder, folder.written(path.name, replace=replace) as file:
        yield file


def write(path: Path, content: bytes | str, *, replace: bool = False) -> None:
    """Write a file completely or not at all; see ``Directory.written``."""
    with written(path, replace=replace) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def make_directory(path: Path) -> None:
    """Create a directory and its missing parents. Raises ``OSError``."""
    Directory(path, make=True).close()


def open_safe(path: Path, mode: int = 0o700) -> Directory:
    """Open a directory into which only trusted users can write; create it with ``mode`` if missing.

    Raises ``OSError``.
    """
    with Directory(path.parent, make=True) as parent:
        here = parent.enter(path.name, mode=mode)
    if not is_safe(os.fstat(here.descriptor)):
        here.close()
        raise OSError(errno.EACCES, "other users can write there")
    return here


@contextlib.contextmanager
def passing_folder(
    folder: Path, prefix: str, rescue: Callable[[Path], object] = lambda _: None
) -> Iterator[Path]:
    """Make a private folder in ``folder``; delete it at the end.

    Those that killed processes of this user left are deleted first; ``rescue`` may save what is
    precious in them. Raises ``OSError``.
    """
    import shutil  # noqa: PLC0415 - few need it
    import tempfile  # noqa: PLC0415 - the same

    for left in folder.glob(f"{glob.escape(prefix)}????????"):
        with contextlib.suppress(OSError), _locked(left) as is_dead:
            if is_dead:
                rescue(left)
                shutil.rmtree(left, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=prefix, dir=folder))
    try:
        # Held until the process has ended, however it ends.
        with _locked(made):
            yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Lock a passing folder; yield whether no process held it any more. Raises ``OSError``."""
    descriptor = os.open(folder, _DIRECTORY)
    try:
        found = os.fstat(descriptor)
        # As mkdtemp(3) makes them; one that was just made is not locked yet.
        ours = found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == 0o700
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield ours and time.time() - found.st_ctime > _SETTLED_S
    finally:
        os.close(descriptor)


def give_all(folder: Path) -> None:
    """Under sudo, change the owner of a folder and of all files in it to the caller."""
    if (caller := sudo_caller()) is not None:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, *caller, follow_symlinks=False)


def replace_directory(made: Path, path: Path, aside: Path) -> None:
    """Rename the complete directory ``made`` to ``path``; an older one is moved ``aside`` first."""
    with contextlib.suppress(FileNotFoundError):
        path.rename(aside)
    try:
        made.rename(path)
    except OSError:
        with contextlib.suppress(OSError):
            aside.rename(path)
        raise


def put_back(aside: Path, path: Path) -> None:
    """Undo what ``replace_directory`` had done when its process was killed between its renames."""
    if aside.is_dir() and not os.path.lexists(path):
        aside.rename(path)


@contextlib.contextmanager
def explained(path: Path, kind: type[CcplayError]) -> Iterator[None]:
    """Turn an ``OSError`` into ``kind``, with the file that can't be written and the reason."""
    try:
        yield
    except FileExistsError:
        raise kind(f"{path} already exists: choose another name, or delete it") from None
    except OSError as error:
        raise kind(f"can't write {path}: {error.strerror or error}") from None


def trusts(user: int) -> bool:
    """Whether to follow symlinks of ``user``: root, this user or sudo's caller."""
    if user in (0, os.geteuid()):
        return True
    caller = sudo_caller()
    # In a user namespace real root appears as nobody, who owns /.
    return (caller is not None and user == caller[0]) or user == Path("/").stat().st_uid


def is_safe(found: os.stat_result) -> bool:
    """Whether only trusted users can have written this file or directory."""
    return trusts(found.st_uid) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _walk(path: Path, *, make: bool) -> int:
    """Open the directory ``path`` one component at a time."""
    here = os.open("/" if path.is_absolute() else ".", _STEP)
    try:
        left = list(reversed(path.parts))
        symlinks = 0
        while left:
            name = left.pop()
            there = _enter(here, name, make=make)
            found = os.fstat(there)
            if not stat.S_ISLNK(found.st_mode):
                os.close(here)
                here = there
                continue
            try:
                symlinks += 1
                if not trusts(found.st_uid):
                    raise OSError(errno.EACCES, f"{name} is another user's symlink")
                if symlinks > _MOST_SYMLINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                left += reversed(Path(os.readlink("", dir_fd=there)).parts)
            finally:
                os.close(there)
        return os.open(".", _DIRECTORY, dir_fd=here)
    finally:
        os.close(here)


def _enter(here: int, name: str, *, make: bool, mode: int = 0o777) -> int:
    """Open this name without following a symlink; ``make`` creates a missing directory."""
    try:
        return os.open(name, _STEP, dir_fd=here)
    except FileNotFoundError:
        if not make:
            raise
    try:
        os.mkdir(name, mode, dir_fd=here)
    except FileExistsError:
        return os.open(name, _STEP, dir_fd=here)
    made = os.open(name, _DIRECTORY, dir_fd=here)
    _give(made)
    return made


def sudo_caller() -> tuple[int, int] | None:
    """Return the user and group ID of sudo's caller; None without sudo."""
    words = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if os.geteuid() != 0 or not all(_NUMBER.fullmatch(word) for word in words):
        return None
    return int(words[0]), int(words[1])


def _give(descriptor: int) -> None:
    """Under sudo, change the owner of a file that was just created to the caller."""
    if (caller := sudo_caller()) is not None:
        # Root of a user namespace can't give files away.
        with contextlib.suppress(OSError):
            os.fchown(descriptor, *caller)
