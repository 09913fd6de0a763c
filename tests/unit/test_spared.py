"""Stand-ins for modules serve one import and are removed after it."""

import subprocess
import sys
from types import ModuleType

from ccplay.lab.import_stubs import bare_package, in_place_of


def test_a_stand_in_is_found_and_taken_away() -> None:
    stand_in = ModuleType("ccplay_test_absent")
    with in_place_of({"ccplay_test_absent": stand_in}):
        assert __import__("ccplay_test_absent") is stand_in
    assert "ccplay_test_absent" not in sys.modules


def test_what_is_imported_already_stays() -> None:
    with in_place_of({"sys": ModuleType("sys")}):
        assert sys.modules["sys"] is sys


def test_no_stand_in_for_a_package_that_is_not_installed() -> None:
    assert bare_package("ccplay_test_absent") == {}


def test_all_of_pyroute2_still_imports_after_the_lab() -> None:
    """pyroute2 can be imported as a whole after the lab's parts of it, in a fresh process."""
    code = (
        "import sys, ccplay.lab.rtnl as ours; assert 'pyroute2' not in sys.modules;"
        "assert 'pyroute2.iproute' not in sys.modules;"
        "from pyroute2 import IPRoute; from pyroute2.netlink import nlmsg;"
        "assert nlmsg is ours.nlmsg"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
