"""The user's own algorithms and disciplines: files named on the command line only."""

from __future__ import annotations

import argparse
from pathlib import Path

from ccplay.errors import UsageError


def files(arguments: argparse.Namespace) -> list[Path]:
    """Return the files of ``--algorithm`` and ``--discipline``."""
    return [*getattr(arguments, "algorithm", []), *getattr(arguments, "discipline", [])]


def algorithms(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the user's algorithms by name, with the SHA-256 of their sources.

    The digest of a file on another machine is empty. Raises ``UsageError`` for an unreadable file.
    """
    files: list[Path] = getattr(arguments, "algorithm", [])
    if not files:
        return {}
    import hashlib

    from ccplay.bpf.custom_files import custom_algorithms, no_file

    found = custom_algorithms(files)
    if arguments.host is not None:
        return dict.fromkeys(found, "")
    try:
        return {n: hashlib.sha256(_content(path)).hexdigest() for n, path in found.items()}
    except FileNotFoundError as error:
        raise UsageError(f"--algorithm {no_file(Path(error.filename))}") from None
    except OSError as error:
        raise UsageError(f"--algorithm {error.filename}: {error.strerror}") from None


def disciplines(arguments: argparse.Namespace) -> dict[str, str]:
    """Add the user's disciplines to the model; return them by name, with their SHA-256.

    For a file on another machine the digest is empty and the parameters are unknown. Raises
    ``CcplayError`` with the line of a mistake.
    """
    files: list[Path] = getattr(arguments, "discipline", [])
    if not files:
        return {}
    import hashlib

    from ccplay.lab.custom.files import content, custom_disciplines
    from ccplay.lab.custom.library import library
    from ccplay.scenario.rules.custom_algorithms import admit_disciplines

    found = custom_disciplines(files)
    if arguments.host is not None:
        admit_disciplines(found)
        return dict.fromkeys(found, "")
    library.add(files)
    return {name: hashlib.sha256(content(path)).hexdigest() for name, path in found.items()}


def _content(path: Path) -> bytes:
    from ccplay.files.reading import open_regular

    with open_regular(path) as file:
        return file.read()
