"""A lab imports few modules before it reads its first command: each delays every start."""

import json
import os
import subprocess
import sys
from functools import cache

SPARED = {
    "psutil": "health is reported a second later",
    "ssl": "asyncio does without",
    "multiprocessing": "pyroute2's servers want it",
    "pyroute2": "all of its interfaces",
    "pyroute2.iproute": "one of them",
    "setuptools": "Mininet wants distutils",
    "mininet": "imported while Hello is on its way",
    "tomllib": "scenario files are read on the other side of the pipe",
    "textual": "the screen is there, too",
    "rich": "the same",
    "ccplay.bpf.build": "most labs compile nothing",
    "ccplay.lab.capture_writer": "most labs capture nothing, and the program does in its process",
}
"""Modules that a lab must not import at its start, each with the reason."""

ROOMS = {
    "bpf",
    "errors",
    "assets",
    "files",
    "lab",
    "model",
    "stream",
    "trace",
    "traffic",
    "units",
    "visible",
}
"""Packages and modules of ccplay that a lab imports at its start."""


@cache
def imported() -> frozenset[str]:
    """Return the modules of a lab that is about to read its first command."""
    code = "import json, sys, ccplay.lab.__main__; print(json.dumps(list(sys.modules)))"
    # A developer's PYTHONSTARTUP may import more.
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONSTARTUP"}
    argv = [sys.executable, "-P", "-c", code]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, env=plain)
    return frozenset(json.loads(done.stdout))


def test_a_start_is_spared_what_no_lab_needs() -> None:
    assert imported() & SPARED.keys() == set()


def test_a_lab_stands_on_few_rooms() -> None:
    ours = [name.split(".") for name in imported() if name.startswith("ccplay.")]
    assert {words[1] for words in ours} == ROOMS


def test_what_is_installed_beside_ccplay_is_two_packages() -> None:
    """A lab imports only msgspec and, of pyroute2, the modules that encode netlink messages."""
    outside = {name for name in imported() if _is_installed(name)}
    assert {name.partition(".")[0] for name in outside} == {"msgspec", "pyroute2"}
    others = {name for name in outside if name.startswith("pyroute2.")} - {
        "pyroute2.common",
        "pyroute2.config",
    }
    assert all(name.startswith("pyroute2.netlink") for name in others)


def _is_installed(name: str) -> bool:
    top = name.partition(".")[0]
    return top not in sys.stdlib_module_names and top not in _OF_NO_PACKAGE and "__" not in top


_OF_NO_PACKAGE = {"ccplay", "sitecustomize", "usercustomize", "_distutils_hack", "org"}
"""Top-level names of ccplay, and of modules that the start of any interpreter may import."""
