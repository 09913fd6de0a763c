"""Compiles an algorithm with clang and bpftool; its errors are explained by source line.

An object's name is the SHA-256 of everything it is made from: the source and its name, ccplay's
header, clang's version and options, and the types of this kernel (BTF), from which bpftool(8)
generates ``vmlinux.h``. An object that is damaged or not ccplay's is built again.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from platformdirs import user_cache_path

from ccplay.assets import ALGORITHMS, find_tool
from ccplay.bpf.libbpf import LoadError
from ccplay.bpf.support import BTF, TOOLS
from ccplay.errors import CcplayError, UnsupportedError
from ccplay.files.cache import Cache
from ccplay.files.writing import passing_folder

# --- compiles an algorithm with clang and bpftool, and keeps the object in the user's cache -------

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
            image, warnings = _compile(source, text, _vmlinux_header(types))
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


def _compile(source: Path, text: bytes, types: Path) -> tuple[bytes, list[str]]:
    """Run clang; return the object and the messages."""
    import tempfile  # noqa: PLC0415 - most objects are in the cache

    # Not in the cache: guests share it, and would delete each other's folders, whose locks they
    # can't see.
    with passing_folder(Path(tempfile.gettempdir()), "ccplay-build-") as folder:
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


# --- errors of clang and of the kernel's verifier, by source line and in plain words --------------


class Diagnostic(NamedTuple):
    """One error in a source."""

    line: int | None
    """Line of the source, from 1; None if unknown."""
    words: str
    """Message of clang or of the kernel."""
    hint: str
    """Explanation in plain words; empty if the message needs none."""


_CLANG_HINTS = {
    r"__\w+[sd]f\w*' is not supported": "there is no floating point in the kernel: use whole "
    "numbers, such as thousandths or 1024ths",
    r"[Ss]igned division": "BPF has only unsigned division: make both sides u32 or u64",
    r"stack limit": "the local variables of an operation may take 512 bytes in all",
    r"call to built-in function": "the kernel has no such function for BPF programs",
    r"implicit declaration of function|implicitly declaring|undeclared function": "no such "
    "function: ccplay_cc.h declares all available ones",
    r"undeclared identifier 'shown'": 'declare variables once, above, with SHOWN("...")',
    r"redefinition of 'shown": "declare all variables in one SHOWN",
    r"redefinition of 'cc_": "define each operation once",
    r"redefinition of": "the kernel or this file already uses that name: choose another",
    r"in 'struct sock'$|passing 'struct sock \*'": "TCP's fields are in tcp_sk(sk)",
    r"does not return a value": "SSTHRESH and UNDO_CWND return a window",
    r"104 bytes": "make the struct smaller",
    r"file not found": "the kernel has no C library: include only ccplay_cc.h",
    r"extraneous closing brace|expected '}'|definition is not allowed|expected identifier$": (
        "there is a { or } missing or too many, here or above"
    ),
}

_VERIFIER_HINTS = {
    r"no write support": "a program may write only snd_cwnd, snd_ssthresh, the pacing "
    "rate and its PRIVATE state",
    r"invalid variable offset|unbounded|min value|invalid access to|access beyond|outside of": (
        "the verifier must be able to prove that the access is within bounds: use a constant "
        "index, or a loop whose bounds are constants"
    ),
    r"infinite loop|back-edge|too many|too large|sequence of \d+ jumps|complexity": (
        "the verifier must be able to prove that every loop ends: for (int i = 0; i < 20; i++)"
    ),
    r"call stack": "no function may call itself",
    r"!read_ok": "this variable is not initialised on every path to here",
    r"invalid mem access": "not a pointer that may be dereferenced here, or it may be NULL",
    r"not found in kernel|calling kernel function|unknown func": (
        "congestion controls may not call this kernel function"
    ),
}

_STATE = re.compile(r"(cur|old) state:")

_UNNAMED = "it is defined, but the table CONGESTION_CONTROL does not name it"
_REQUIRED = "SSTHRESH, UNDO_CWND and CONG_AVOID must all be defined and named in the table"


def diagnostics(source: Path, error: BuildError | LoadError) -> list[Diagnostic]:
    """Return the errors of ``source``, at least one."""
    if isinstance(error, BuildError):
        # One mistake may cause several errors in one line.
        every = _of_clang(source.name, error.messages)
        found = list({(each.line, each.hint or each.words): each for each in every}.values())
    else:
        found = list(_of_kernel(source.name, error))
    return found or [Diagnostic(None, str(error), "")]


def summed_up(source: Path, error: BuildError | LoadError) -> str:
    """Return the first error on one line: ``mine.bpf.c:49: no write support …: …``."""
    first = diagnostics(source, error)[0]
    place = source.name if first.line is None else f"{source.name}:{first.line}"
    return ": ".join(each for each in (place, first.words, first.hint) if each)


def _of_clang(name: str, messages: list[str]) -> Iterator[Diagnostic]:
    located = re.compile(rf"^{re.escape(name)}:(\d+):\d+: (?:fatal )?error: (.*?)(?: \[-W\S+\])?$")
    included = re.compile(rf"^In file included from {re.escape(name)}:(\d+):")
    inside = re.compile(rf"source location for {re.escape(name)}:([1-9]\d*):")
    for at, text in enumerate(messages):
        if match := located.search(text):
            line, words = int(match[1]), match[2]
            # For inlined code the error has the operation's line; the true line is in a note.
            for note in messages[at + 1 :]:
                if "error:" in note:
                    break
                if deeper := inside.search(note):
                    line = int(deeper[1])
                    break
            yield Diagnostic(line, words, _hint(words, _CLANG_HINTS))
        elif match := included.match(text):
            # The error is in the included header, or in one that it includes.
            words = next(
                (note.partition("error: ")[2] for note in messages[at:] if "error: " in note), ""
            )
            if words:
                yield Diagnostic(int(match[1]), words, _hint(words, _CLANG_HINTS))
        elif match := re.match(r"Error at line (\d+): (Unsupport signed division)", text):
            yield Diagnostic(int(match[1]), match[2], _hint(match[2], _CLANG_HINTS))


def _of_kernel(name: str, error: LoadError) -> Iterator[Diagnostic]:
    lines = error.log.splitlines()
    place = re.compile(rf"^;.*@ {re.escape(name)}:(\d+)")
    line: int | None = None
    inside = False
    for at, text in enumerate(lines):
        if match := place.match(text):
            line, inside = int(match[1]), False
        elif text.startswith(";"):
            # A line of ccplay_cc.h, called by the next line of the source.
            inside = line is not None
        elif match := re.search(r"'(\w+)': not found in kernel", text):
            yield Diagnostic(None, text.removeprefix("libbpf: "), _hint(text, _VERIFIER_HINTS))
        elif text.startswith("processed ") and (words := _reason(lines[:at])):
            words += " (in the code that follows, or in a function that it calls)" * inside
            yield Diagnostic(line, words, _hint(words, _VERIFIER_HINTS))
        elif match := re.search(r"prog 'cc_(\w+)': failed to load: -524", text):
            yield Diagnostic(None, f"{match[1].upper()} is not used", _UNNAMED)
    if "to register" in str(error):
        yield Diagnostic(None, str(error), _REQUIRED)


def _reason(lines: list[str]) -> str:
    """Return the verifier's last message, without its dump of the state."""
    words = next((each for each in reversed(lines) if not _STATE.match(each)), "")
    return "" if words.startswith("libbpf") else words


def _hint(words: str, hints: dict[str, str]) -> str:
    return next((hint for pattern, hint in hints.items() if re.search(pattern, words)), "")
