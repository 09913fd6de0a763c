"""``ccplay list``: lists the scenarios that come with ccplay and those in the current folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ccplay.visible import printable

if TYPE_CHECKING:
    from ccplay.scenario.file.library import Entry


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument("--json", action="store_true", help="print a JSON array")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run this command and return the exit code."""
    from ccplay.scenario.file.library import in_folder, shipped_entries

    ours, here = shipped_entries(), in_folder(Path())
    if arguments.json:
        import msgspec

        sys.stdout.write(msgspec.json.encode([*ours, *here]).decode() + "\n")
        return 0
    width = max(len(printable(each.name)) for each in (*ours, *here))
    for each in ours:
        print(_line(each, width))
    if here:
        print("\nin this folder:")
    for each in here:
        print(_line(each, width))
    return 0


def _line(entry: Entry, width: int) -> str:
    cases = f"  ({entry.cases} cases)" if entry.cases > 1 else ""
    text = f"{entry.title}{cases}" if entry.cases else f"refused: ccplay run {entry.name} shows why"
    return printable(f"{printable(entry.name):{width}}  {text}")
