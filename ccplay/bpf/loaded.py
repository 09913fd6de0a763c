"""The algorithms that this lab has loaded into the kernel, and those to choose from.

Congestion controls belong to the whole host and several labs run side by side, so in the kernel
each algorithm has a unique name such as ``cc3f2a_vegas``; people, commands and events use
``vegas.bpf``. The tables here map one name to the other.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.assets import SUFFIX, algorithms
from ccplay.bpf.support import Lack, custom_algorithms, feature, lack
from ccplay.errors import CommandError, UnsupportedError
from ccplay.files.reading import SavedFiles
from ccplay.model.values import Feature

if TYPE_CHECKING:
    from ccplay.bpf.libbpf import Registered, ShownVariables


# --- the algorithms that this lab has loaded into the kernel, and their names there ---------------

_OURS = re.compile(r"cc[0-9a-f]{4}_")


class AlgorithmLibrary:
    """The sources of algorithms by name, and the algorithms loaded; one instance per process."""

    def __init__(self) -> None:
        self.custom: dict[str, Path] = {}
        """Files of the user's algorithms, by the algorithm's name."""
        self.shown: dict[bytes, ShownVariables] = {}
        """Variables that loaded algorithms show, by the algorithm's name in the kernel."""
        self._kernel_names: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._registered: dict[str, Registered] = {}
        self._images: dict[str, bytes] = {}
        self._saved = SavedFiles()
        self._lock = threading.Lock()

    def add_custom(self, paths: Iterable[Path]) -> None:
        """Add the user's files. Raises ``UsageError`` for invalid or taken names."""
        self.custom |= custom_algorithms(paths)

    def source(self, cc: str) -> Path | None:
        """Return the source of an algorithm, None if there is none; ``.bpf`` may be left out."""
        return self.custom.get(cc) or algorithms().get(cc.removesuffix(SUFFIX) + SUFFIX)

    def name(self, cc: str) -> str:
        """Return the user's name of the algorithm requested as ``cc``."""
        return cc if cc in self.custom else cc.removesuffix(SUFFIX) + SUFFIX

    def kernel_name(self, cc: str) -> str | None:
        """Return the kernel's name of an algorithm; None if it is not loaded."""
        return self._kernel_names.get(self.name(cc))

    def display_name(self, kernel_name: str) -> str:
        """Return the name under which to show the algorithm that the kernel calls this."""
        return self._names.get(kernel_name, kernel_name)

    def load(self, cc: str, log: Callable[[str], None]) -> None:
        """Build, load and register an algorithm unless it is loaded; blocks.

        ``log`` receives a message before a slow step. Raises ``UnsupportedError``, and
        ``CommandError`` with the mistake in the source.
        """
        source, name = self.source(cc), self.name(cc)
        with self._lock:
            if source is not None and name not in self._kernel_names:
                self._load(name, source, log)

    def changed(self) -> list[str]:
        """Return the user's algorithms in use that were saved since they were last built.

        A file that changed since the last call is left out: an editor may still be writing it.
        """
        return self._saved.changed(self.custom.items())

    def renew(self, name: str) -> tuple[bool, Registered | None]:
        """Load a changed algorithm again under another kernel name; blocks.

        Returns whether the object is new, and the one it replaces, to close once nothing uses it.
        Raises the exceptions of ``load``; then the old algorithm stays.
        """
        with self._lock:
            old = self._registered.get(name)
            return self._load(name, self.custom[name], lambda _: None), old

    def _load(self, name: str, source: Path, log: Callable[[str], None]) -> bool:
        """Build, load and register an algorithm; return False if its object is unchanged."""
        if (missing := lack()) is not None:
            raise UnsupportedError(
                f"congestion control {name!r}: {missing.reason}; {missing.remedy}"
            )
        # Imported late, because these would delay the start of every lab.
        from ccplay.bpf.build import BuildError, build, summed_up  # noqa: PLC0415
        from ccplay.bpf.libbpf import LoadError, ShownVariables, names_in, register  # noqa: PLC0415

        if name in self.custom:
            self._saved.note(name, source)
        try:
            image, _ = build(source, log)
            if self._images.get(name) == image:
                return False
            shown = names_in(image)
            kernel_name, registered = register(image, name.removesuffix(SUFFIX))
        except (BuildError, LoadError) as error:
            raise CommandError(summed_up(source, error)) from error
        if name in self.custom:
            self._images[name] = image
        self._registered[name] = registered
        self.shown.pop(self._kernel_names.get(name, "").encode(), None)
        if shown:
            self.shown[kernel_name.encode()] = ShownVariables(shown, registered)
        self._names[kernel_name] = name
        self._kernel_names[name] = kernel_name
        return True

    def close(self) -> None:
        """Unregister all algorithms."""
        with self._lock:
            self.shown.clear()
            for name, registered in self._registered.items():
                registered.close()
                del self._kernel_names[name]
            self._registered.clear()


library = AlgorithmLibrary()
"""The algorithms loaded by this process; like the kernel's own list, one for the host."""


def is_ours(kernel_name: str) -> bool:
    """Return whether a name in the kernel's list belongs to an algorithm loaded by any lab."""
    return _OURS.match(kernel_name) is not None


# --- the available BPF congestion controls, each with the summary from its source -----------------

_HEADER = re.compile(r"/\*(.*?)\*/", re.DOTALL)


def offers() -> Iterator[Feature]:
    """Yield every algorithm of ccplay and of the user, available or not."""
    missing = lack()
    lacks = {}
    if not Path("/proc/sys/net/mptcp").exists():
        reason = "it couples subflows of MPTCP, which this kernel lacks"
        lacks["lia.bpf"] = Lack(reason, "one with CONFIG_MPTCP")
    for name, path in (algorithms() | library.custom).items():
        yield feature(name, summary(path), missing or lacks.get(name))


def summary(path: Path) -> str:
    """Return the first sentence of a source's first comment, on one line."""
    if not path.is_file():
        return "can't be read: not a regular file"
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            text = file.read(4096)
    except OSError as error:
        return f"can't be read: {error.strerror}"
    comment = _HEADER.search(text)
    lines = [line.strip(" \t*") for line in comment[1].splitlines()] if comment else []
    plain = "\n".join(line for line in lines if not line.startswith("SPDX-"))
    paragraph = " ".join(plain.strip().partition("\n\n")[0].split())
    return paragraph.removesuffix(".") or "no description"
