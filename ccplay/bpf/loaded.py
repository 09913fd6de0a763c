"""The algorithms that this lab has brought into the kernel, and what each is called there.

Congestion controls belong to the whole host and several labs run side by side, so the kernel knows
each by a name that no other has, such as ``cc3f2a_vegas``; people, commands and events call it
``vegas.bpf``, and these tables lead from one to the other.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ccplay.assets import SUFFIX, algorithms
from ccplay.bpf.own_files import own_algorithms
from ccplay.bpf.support import lack
from ccplay.errors import CommandError, UnsupportedError

if TYPE_CHECKING:
    from ccplay.bpf.libbpf import Registered
    from ccplay.bpf.shown import Shown

_Stamp: TypeAlias = tuple[int, int, int]

_OURS = re.compile(r"cc[0-9a-f]{4}_")


class Library:
    """Sources by name, and those that are in the kernel; one in a process."""

    def __init__(self) -> None:
        self.own: dict[str, Path] = {}
        """Files of the user's own, by what they are called."""
        self.shown: dict[bytes, Shown] = {}
        """By the kernel's name, what those that show values show."""
        self._kernel_names: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._registered: dict[str, Registered] = {}
        self._images: dict[str, bytes] = {}
        self._stamps: dict[str, _Stamp | None] = {}
        self._seen: dict[str, _Stamp | None] = {}
        self._lock = threading.Lock()

    def add_own(self, paths: Iterable[Path]) -> None:
        """Take files of the user's own in. Raises ``UsageError`` for names that can't be."""
        self.own |= own_algorithms(paths)

    def source(self, cc: str) -> Path | None:
        """Return the file of an algorithm: ``vegas.bpf``, or ``vegas`` where Linux has none."""
        return self.own.get(cc) or algorithms().get(cc.removesuffix(SUFFIX) + SUFFIX)

    def name(self, cc: str) -> str:
        """Return what people call what they have asked for as ``cc``."""
        return cc if cc in self.own else cc.removesuffix(SUFFIX) + SUFFIX

    def kernel_name(self, cc: str) -> str | None:
        """Return what the kernel calls it; None where it has not been brought in."""
        return self._kernel_names.get(self.name(cc))

    def spoken(self, kernel_name: str) -> str:
        """Return what people call what the kernel calls ``kernel_name``."""
        return self._names.get(kernel_name, kernel_name)

    def bring_in(self, cc: str, tell: Callable[[str], None]) -> None:
        """Build, load and register an algorithm, where that is not done yet; blocks.

        ``tell`` hears of what takes long. Raises ``UnsupportedError``, and ``CommandError`` with
        what is wrong with the source.
        """
        source, name = self.source(cc), self.name(cc)
        with self._lock:
            if source is not None and name not in self._kernel_names:
                self._load(name, source, tell)

    def changed(self) -> list[str]:
        """Return what was asked for of the user's own and has been saved anew since.

        Only what lies still since the last call counts: an editor may still write.
        """
        found = []
        # One may be brought in meanwhile.
        for name in list(self._stamps):
            now = _stamp(self.own[name])
            if now not in (None, self._stamps[name]) and self._seen.get(name) == now:
                found.append(name)
            self._seen[name] = now
        return found

    def renew(self, name: str) -> tuple[bool, Registered | None]:
        """Bring a changed algorithm in anew under another kernel name; blocks.

        Returns whether what was built is new, and what it takes the place of, to be closed once
        nothing uses it. Raises as ``bring_in`` does, and then the old one stays.
        """
        with self._lock:
            old = self._registered.get(name)
            return self._load(name, self.own[name], lambda _: None), old

    def _load(self, name: str, source: Path, tell: Callable[[str], None]) -> bool:
        """Build, load and register; return whether there was anything new."""
        if (missing := lack()) is not None:
            raise UnsupportedError(
                f"congestion control {name!r}: {missing.reason}; {missing.remedy}"
            )
        # Not before they are needed: every lab would start later for them.
        from ccplay.bpf.build import BuildError, build  # noqa: PLC0415
        from ccplay.bpf.diagnostics import summed_up  # noqa: PLC0415
        from ccplay.bpf.libbpf import LoadError  # noqa: PLC0415
        from ccplay.bpf.registry import register  # noqa: PLC0415
        from ccplay.bpf.shown import Shown, names_in  # noqa: PLC0415

        if name in self.own:
            self._stamps[name] = _stamp(source)
        try:
            image, _ = build(source, tell)
            if self._images.get(name) == image:
                return False
            shown = names_in(image)
            kernel_name, registered = register(image, name.removesuffix(SUFFIX))
        except (BuildError, LoadError) as error:
            raise CommandError(summed_up(source, error)) from error
        if name in self.own:
            self._images[name] = image
        self._registered[name] = registered
        self.shown.pop(self._kernel_names.get(name, "").encode(), None)
        if shown:
            self.shown[kernel_name.encode()] = Shown(shown, registered)
        self._names[kernel_name] = name
        self._kernel_names[name] = kernel_name
        return True

    def close(self) -> None:
        """Take all of them back."""
        with self._lock:
            self.shown.clear()
            for name, registered in self._registered.items():
                registered.close()
                del self._kernel_names[name]
            self._registered.clear()


def _stamp(path: Path) -> _Stamp | None:
    """Return what changes when a file is saved; None while there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


library = Library()
"""What this process has brought in: as host-wide as the kernel's own list."""


def is_ours(kernel_name: str) -> bool:
    """Say whether a name in the kernel's list is some lab's BPF program."""
    return _OURS.match(kernel_name) is not None
