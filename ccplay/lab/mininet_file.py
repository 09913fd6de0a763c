"""Runs a Mininet file and prints as JSON the network that one of its ``topos`` builds.

``python -m ccplay.lab.mininet_file FILE TOPO``: FILE follows the conventions of
``mn --custom`` and is empty for Mininet's own topologies; TOPO is ``NAME[,ARGUMENT …]``. A Python
file can do whatever its user can, so it runs in a process of its own, in the namespaces of a lab.
The output is only data: ``hosts``, ``routers``, ``links`` and ``remarks`` as in a scenario's
``topology``, or ``error``.
"""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ccplay.lab.import_stubs import distutils, in_place_of
from ccplay.model.quantities import did_you_mean, quote

QUEUE = 1000
"""Default queue limit in packets of a link with a rate: that of Mininet's links without
``max_queue_size``."""

_SILENT = frozenset({"node1", "node2", "port1", "port2", "cls", "use_htb", "isSwitch", "dpid"})
"""Names of options that need no remark: they do not concern a network of routers, or ccplay
applies them anyway."""

_UNITS = {
    **dict.fromkeys(("s", "sec", "secs"), 1e6),
    **dict.fromkeys(("ms", "msec", "msecs"), 1e3),
    **dict.fromkeys(("us", "usec", "usecs", ""), 1.0),
}
"""Microseconds in each unit of time of tc(8)."""
_TIME = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([a-z]*)\s*")


class MininetFileError(Exception):
    """Raised for a file that makes no network; the message is the reason."""


def main() -> int:
    """Print the network of the file and topology that the command line names."""
    file, topo = sys.argv[1:3]
    # Send what the file itself prints to stderr, so that stdout has only the answer.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        with in_place_of(distutils()):
            description: Mapping[str, Any] = describe(*_made(file, topo))
    except MininetFileError as error:
        description = {"error": str(error)}
    json.dump(description, answer)
    answer.close()
    return 0


# --- the file -------------------------------------------------------------------------------


def _made(file: str, asked: str) -> tuple[Any, str]:
    """Return the requested ``Topo`` and its display name."""
    name, *words = asked.split(",")
    plain = [_number(word) for word in words if "=" not in word]
    named = {key: _number(value) for key, _, value in (w.partition("=") for w in words if "=" in w)}
    topos = _topos_of(file) if file else _mininet_s()
    where = Path(file).name if file else "Mininet"
    if name not in topos:
        known = did_you_mean(name, map(str, topos))
        raise MininetFileError(f"{where}: topos has no {quote(name)}{known}")
    topo = _run(file, lambda: topos[name](*plain, **named), f"{where}: {asked}: ")
    if not all(hasattr(topo, each) for each in ("hosts", "switches", "links", "nodeInfo")):
        raise MininetFileError(
            f"{where}: {name} makes a {type(topo).__name__}, not a mininet.topo.Topo"
        )
    return topo, f"{asked} of {where}"


def _mininet_s() -> dict[str, Any]:
    """Return the topologies that ``mn --topo`` offers without a file."""
    from mininet import topo, topolib  # noqa: PLC0415 - the stubs come first

    return {
        "minimal": topo.MinimalTopo,
        "linear": topo.LinearTopo,
        "reversed": topo.SingleSwitchReversedTopo,
        "single": topo.SingleSwitchTopo,
        "tree": topolib.TreeTopo,
        "torus": topolib.TorusTopo,
    }


def _topos_of(file: str) -> dict[str, Any]:
    """Run a file and return its ``topos``."""
    path = Path(file)
    try:
        source = path.read_bytes()
    except OSError as error:
        raise MininetFileError(f"{file}: {error.strerror}") from None
    space: dict[str, Any] = {"__name__": path.stem, "__file__": file, "__builtins__": __builtins__}
    # mn(1) runs it the same way, so nothing below `if __name__ == "__main__"` runs.
    _run(file, lambda: exec(compile(source, file, "exec"), space))  # noqa: S102 - its user asked
    topos = space.get("topos")
    if not isinstance(topos, dict) or not topos:
        raise MininetFileError(f'{path.name}: has no topos, such as topos = {{"mytopo": MyTopo}}')
    return topos


def _run(file: str, what: Any, before: str = "") -> Any:
    """Return the result of ``what``, which runs code of the file.

    Raises ``MininetFileError`` with one line if the code fails.
    """
    try:
        return what()
    except SyntaxError as error:
        raise MininetFileError(f"{Path(file).name}:{error.lineno}: {error.msg}") from None
    except MininetFileError:
        raise
    except BaseException as error:  # noqa: BLE001 - it is the user's file
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if file and frame.filename == file]
        place = f"{Path(file).name}:{lines[-1]}: " if lines else before
        text = str(error).strip().partition("\n")[0]
        raise MininetFileError(
            f"{place}{type(error).__name__}{f': {text}' if text else ''}"
        ) from None


def _number(word: str) -> Any:
    """Return an argument as mn(1) passes it: as an int, else a float, else text."""
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


# --- the network ----------------------------------------------------------------------------


def describe(topo: Any, name: str) -> dict[str, Any]:
    """Return a ``Topo`` as a scenario's topology. Raises ``MininetFileError``."""
    unused: dict[str, list[str]] = {}
    links = [
        {"ends": [str(a), str(b)], **_link(f"{a}-{b}", options, unused)}
        for a, b, options in _run("", lambda: topo.links(sort=True, withInfo=True))
    ]
    routers = [str(each) for each in topo.switches()]
    hosts: list[str] = []
    for each in map(str, topo.hosts()):
        options = topo.nodeInfo(each)
        several = sum(each in link["ends"] for link in links) > 1
        # A host with several links and a class of its own forwards: LinuxRouter in the examples.
        (routers if several and options.get("cls") else hosts).append(each)
    for each in [*hosts, *routers]:
        for option in topo.nodeInfo(each).keys() - _SILENT:
            unused.setdefault(option, []).append(each)
    remarks = [f"{_listed(where)}: {option} has no effect" for option, where in unused.items()]
    return {
        "kind": "written",
        "name": name[:200],
        **({"remarks": remarks} if remarks else {}),
        "hosts": hosts,
        "routers": routers,
        "links": links,
    }


def _link(name: str, options: Mapping[str, Any], unused: dict[str, list[str]]) -> dict[str, Any]:
    """Return the settings of a link from the options of Mininet's TCLink."""
    setting: dict[str, Any] = {}
    known = {key: value for key, value in options.items() if value is not None}
    if "bw" in known:
        setting["rate"] = f"{_amount(name, 'bw', known['bw']):.12g} Mbit/s"
    for key in ("delay", "jitter"):
        if key in known:
            setting[key] = f"{_microseconds(name, key, known[key]):.12g} us"
    if "loss" in known:
        setting["loss"] = f"{_amount(name, 'loss', known['loss']):.12g} %"
    if "bw" in known:
        size = _amount(name, "max_queue_size", known.get("max_queue_size", QUEUE))
        setting["queue"] = {"kind": "pfifo", "limit": int(size)}
    elif "max_queue_size" in known:
        unused.setdefault("max_queue_size without bw", []).append(name)
    for option in known.keys() - _SILENT - {"bw", "delay", "jitter", "loss", "max_queue_size"}:
        unused.setdefault(option, []).append(name)
    return setting


def _amount(link: str, option: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise MininetFileError(
            f"link {link}: {option} must be a number, not {quote(value)}"
        ) from None


def _microseconds(link: str, option: str, value: Any) -> float:
    """Return a time of tc(8) in us: ``5ms`` for example, or a plain number of microseconds."""
    found = _TIME.fullmatch(str(value))
    if found is None or found[2] not in _UNITS:
        raise MininetFileError(
            f"link {link}: {option} must be a time such as '5ms', not {quote(value)}"
        )
    return float(found[1]) * _UNITS[found[2]]


def _listed(names: Iterable[str]) -> str:
    first, *others = names
    return first if not others else f"{first} and {len(others)} other{'s'[: len(others) > 1]}"


if __name__ == "__main__":
    sys.exit(main())
