"""Compiles an algorithm with clang and bpftool, and keeps the object in the user's cache.

An object's name is the SHA-256 of everything it is made from: the source and its name, ccplay's
header, clang's version and options, and the types of this kernel (BTF), from which bpftool(8)
generates ``vmlinux.h``. An object that is damaged or not ccplay's is built again.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

from platformdirs import user_cache_path

from ccplay.assets import ALGORITHMS, find_tool
from ccplay.bpf.support import BTF, TOOLS
from ccplay.errors import CcplayError, UnsupportedError
from ccplay.files.cache import Cache
from ccplay.files.writing import passing_folder

HEADER = ALGORITHMS / "ccplay_cc.h"

_OPTIONS = (
    *("-target", "bpf", "-mcpu=v3", "-std=gnu11", "-O2", "-g"),
    *("-Wall", "-Wno-unused-function", "-Wno-missing-declarations", "-Werror=implicit"),
    # Warnings are not shown when a file is saved under a running flow; these are always mistakes.
    *("-Werror=return-type", "-Werror=uninitialized", "-Werror=sometimes-uninitialized"),
    *("-Werror=int-conversion", "-Werror=incompatible-pointer-types"),
    *("-Werror=division-by-zero", "-Werror=null-dereference"),
    *("-fno-color-diagnostics", "-fno-caret-diagnostics", "-ferror-limit=5"),
)

_TYPES = "vmlinux.h"

_MOST_KEPT = 64
"""Greatest number of objects in the cache, each of about 700 kB."""

_LONGEST = 1 << 20
"""Bytes of the largest source accepted; ccplay's own have up to 6000."""

_CLANG_S = 900.0
"""Seconds that clang or bpftool may take. A PC needs less than one; in an emulated guest, whose
clock jumps to the next timer whenever everything waits for the disk, minutes may pass."""


class BuildError(CcplayError):
    """clang refuses a source; ``messages`` has the lines of its messages."""

    def __init__(self, source: Path, messages: list[str]) -> None:
        errors = [line for line in messages if "error:" in line]
        first = (errors or messages or ["clang gives no reason"])[0]
        super().__init__(f"{source.name} does not compile: {first}")
        self.messages = messages


def build(source: Path, report: Callable[[str], None] = lambda _: None) -> tuple[bytes, list[str]]:
    """Return the object file of ``source``, and clang's warnings if it was run.

    ``report`` is called with a message before a slow step.
    Raises ``BuildError``, ``UnsupportedError``, ``CcplayError``.
    """
    text = _text(source)
    types = _types()
    # The object contains the name: the kernel uses it to locate errors.
    inputs = (source.name, types, _clang_version(), *_OPTIONS)
    name = f"{_digest(text, HEADER.read_bytes(), '|'.join(inputs).encode())}.o"
    folder = _folder()
    try:
        with Cache(folder) as cache:
            if (image := cache.find(name)) is not None:
                return image, []
            report(f"building {source.name}, which takes a moment the first time")
            image, warnings = _compile(source, text, _vmlinux_header(types), folder)
            if not warnings:
                # With warnings nothing is cached, so that they appear again the next time.
                cache.keep(name, image)
                # Every save of a user's algorithm makes an object.
                cache.forget(".o", _MOST_KEPT)
            return image, warnings
    except OSError as error:
        raise CcplayError(
            f"can't write to the cache of algorithms, {folder}: {error.strerror}"
        ) from None


def _text(source: Path) -> bytes:
    try:
        # A pipe would never end.
        if source.exists() and not source.is_file():
            raise CcplayError(f"can't read {source}: not a regular file")
        with source.open("rb") as file:
            text = file.read(_LONGEST + 1)
    except OSError as error:
        raise CcplayError(f"can't read {source}: {error.strerror}") from None
    if len(text) > _LONGEST:
        raise CcplayError(f"{source} is too large for an algorithm: more than {_LONGEST >> 20} MiB")
    return text


def _compile(source: Path, text: bytes, types: Path, place: Path) -> tuple[bytes, list[str]]:
    """Run clang, with a temporary folder in ``place``; return the object and the messages."""
    with passing_folder(place, ".build-") as folder:
        made = folder / "object"
        argv = [
            *(_tool("clang"), *_OPTIONS, f"-I{types.parent}", f"-I{HEADER.parent}"),
            # clang reads the text from stdin, so that exactly the hashed text is built.
            *("-x", "c", "-c", "-o", str(made), "-"),
        ]
        line = f'#line 1 "{source.name}"\n'.encode()
        result = _run(argv, line + text.removeprefix(codecs.BOM_UTF8))
        messages = result.stderr.decode(errors="replace").strip().splitlines()
        if result.returncode != 0:
            raise BuildError(source, messages)
        return made.read_bytes(), messages


@cache
def _types() -> str:
    """Return the digest of this kernel's types."""
    try:
        return _digest(BTF.read_bytes())
    except OSError as error:
        raise UnsupportedError(f"this kernel has no type information (BTF): {error}") from None


def _vmlinux_header(types: str) -> Path:
    """Return ``vmlinux.h`` of this kernel, in a folder of its own."""
    folder = _folder() / types
    with Cache(folder) as cache:
        if cache.find(_TYPES) is None:
            result = _run([_tool("bpftool"), "btf", "dump", "file", str(BTF), "format", "c"])
            if result.returncode != 0 or not result.stdout:
                reason = result.stderr.decode(errors="replace").strip()
                raise UnsupportedError(f"bpftool can't read this kernel's types: {reason}")
            cache.keep(_TYPES, result.stdout)
    return folder / _TYPES


@cache
def _clang_version() -> str:
    return _run([_tool("clang"), "--version"]).stdout.decode(errors="replace")


def _folder() -> Path:
    return user_cache_path("ccplay").absolute() / "algorithms"


def _tool(name: str) -> str:
    path = find_tool(name)
    if path is None:
        raise UnsupportedError(f"{name} is not installed (apt install {' '.join(TOOLS)})")
    return path


def _run(argv: list[str], text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        return subprocess.run(
            argv,
            input=text,
            capture_output=True,
            check=False,
            timeout=_CLANG_S,
            env=environment,
            # clang looks for headers in the current directory first, which others may write to.
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        raise CcplayError(f"{argv[0]} did not end within {_CLANG_S:.0f} s") from None


def _digest(*parts: bytes) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()[:32]
