"""Errors of clang and of the kernel's verifier, by source line and in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ccplay.bpf.build import BuildError
from ccplay.bpf.libbpf import LoadError


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
