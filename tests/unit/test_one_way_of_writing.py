"""Only ``ccplay.files`` writes files: the source is searched for other calls that may."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import ccplay

PACKAGE = Path(ccplay.__file__).parent

WRITERS = {
    *("write_text", "write_bytes", "touch", "mkdir", "makedirs", "rename", "renames", "mkfifo"),
    *("symlink_to", "hardlink_to", "symlink", "mknod", "truncate", "savefig", "save"),
    *("save_screenshot", "deliver_screenshot", "copy2", "copyfile", "copytree"),
    *("mkstemp", "NamedTemporaryFile", "TemporaryFile", "mktemp", "make_archive", "to_csv"),
    *("extractall", "imsave", "write_image", "FileHandler", "ParquetWriter"),
}
"""Names of methods that create or change files on any object, unless they write into an open file
(those are in ``ALLOWED``)."""

FUNCTIONS = {"copy", "move", "link"}
"""Names that write files as functions of ``MODULES``; other objects have harmless methods of these
names."""

MODULES = {"os", "shutil", "tempfile", "io", "gzip", "bz2", "lzma", "zipfile", "tarfile", "sqlite3"}

NOT_FILES = {"self", "state", "self._bypass", "self.account", "outlet", "self._directory", "here"}
"""Objects with an ``open`` that opens no file, or opens one only for reading."""

ALLOWED = {
    ("files/writing.py", "os.open"): "the one way",
    ("files/writing.py", "open"): "by a descriptor of its own",
    ("files/writing.py", "os.mkdir"): "the one way",
    ("files/writing.py", "os.replace"): "the one way",
    ("files/writing.py", "os.link"): "the one way",
    ("files/writing.py", "tempfile.TemporaryFile"): "without a name",
    ("files/writing.py", "path.rename"): "of whole directories",
    ("files/writing.py", "made.rename"): "of whole directories",
    ("files/writing.py", "aside.rename"): "of whole directories",
    ("lab/netns.py", "Path('/proc/sys', *key.split('.')).write_text"): "a setting of the kernel",
    ("traffic/flow/transfer.py", "(_SYSCTLS / name).write_text"): "a setting of the kernel",
    ("lab/child.py", "os.fdopen"): "a pipe",
    ("lab/packet_loop.py", "os.open"): "/dev/null",
    ("lab/custom/limits.py", "os.fdopen"): "a pipe",
    ("lab/custom/limits.py", "os.open"): "/dev/null",
    ("lab/warm.py", "(own / 'setgroups').write_text"): "a setting of its own process",
    ("lab/warm.py", "(own / 'uid_map').write_text"): "the same",
    ("lab/warm.py", "(own / 'gid_map').write_text"): "the same",
    ("files/reading.py", "os.open"): "for reading only",
    ("cli/__init__.py", "os.open"): "/dev/null",
    ("cli/manual.py", "Path(sys.argv[1], name).write_text"): "files of the wheel, by its developer",
    ("guest/fetch.py", "found.replace"): "in a folder of its own",
    ("guest/fetch.py", "images[modules[0]].replace"): "the same",
    ("report/data/export.py", "parquet.ParquetWriter"): "into an open file",
    ("report/data/export.py", "ParquetWriter"): "the same",
    ("report/figures/style.py", "font.save"): "into an open file, or a buffer",
    ("report/figures/style.py", "figure.savefig"): "into a buffer, or an open file",
    ("ui/pictures.py", "drawn.save"): "the same",
}
"""Permitted calls, as file and called expression, each with the reason why it is permitted."""


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def writes(words: str, call: ast.Call) -> bool:
    """Return whether a call may write a file."""
    subject, _, name = words.rpartition(".")
    if name == "open" and subject in ("", "io", *MODULES - {"os"}):
        return not _reads(call, 1)
    if words in ("os.open", "os.fdopen"):
        flags = " ".join(ast.unparse(each) for each in call.args[1:])
        return any(word not in _HARMLESS for word in flags.replace("|", " ").split())
    if name == "open" and subject not in NOT_FILES:
        return not _reads(call, 0)
    if name == "replace":
        return subject == "os" or (bool(subject) and len(call.args) == 1 and not call.keywords)
    if name in FUNCTIONS:
        return subject in MODULES
    return name in WRITERS and bool(subject or name[0].isupper())


def _reads(call: ast.Call, at: int) -> bool:
    """Return whether a call of ``open`` only reads; its mode is argument ``at`` or a keyword."""
    given = [*call.args[at : at + 1], *(each.value for each in call.keywords if each.arg == "mode")]
    return all(isinstance(mode, ast.Constant) and mode.value in ("r", "rb") for mode in given)


_HARMLESS = {
    *("os.O_RDONLY", "os.O_CLOEXEC", "os.O_NOFOLLOW", "os.O_DIRECTORY", "os.O_PATH"),
    *("os.O_NONBLOCK", "'w'"),
}


def found(text: str) -> list[str]:
    return [words for words, call in calls(ast.parse(text)) if writes(words, call)]


def test_nothing_else_in_the_package_writes_files() -> None:
    others = [
        (str(path.relative_to(PACKAGE)), words)
        for path in sorted(PACKAGE.rglob("*.py"))
        for words in found(path.read_text(encoding="utf-8"))
    ]
    assert {each for each in others if each not in ALLOWED} == set(), "use ccplay.files"
    assert set(ALLOWED) - set(others) == set(), "these are gone: take them off the list"


@pytest.mark.parametrize(
    "text",
    [
        "open(path, 'w')",
        "open(path, mode)",
        "open(path, mode='a')",
        "path.open('wb')",
        "path.open(mode='x')",
        "io.open(path, 'r+')",
        "gzip.open(path, 'wb')",
        "os.open(path, os.O_WRONLY | os.O_CREAT)",
        "os.open(path, flags)",
        "path.write_text('')",
        "path.parent.mkdir(parents=True)",
        "os.replace(a, b)",
        "path.replace(other)",
        "path.rename(other)",
        "path.touch()",
        "shutil.copy(a, b)",
        "tempfile.NamedTemporaryFile()",
        "figure.savefig(path)",
        "self.app.save_screenshot(name)",
    ],
)
def test_the_search_finds_ways_of_writing(text: str) -> None:
    assert found(text)


@pytest.mark.parametrize(
    "text",
    [
        "open(path)",
        "path.open('rb')",
        "path.open(encoding='utf-8')",
        "os.open(path, os.O_RDONLY | os.O_CLOEXEC)",
        "text.replace('a', 'b')",
        "tempfile.TemporaryDirectory(dir=place)",
        "self._open(name)",
        "values.copy()",
    ],
)
def test_the_search_leaves_reading_alone(text: str) -> None:
    assert not found(text)
