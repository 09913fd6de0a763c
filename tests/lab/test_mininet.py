"""Mininet files run unchanged, in namespaces of their own; what leaves them is data."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ccplay.cli import main
from ccplay.model.events import Hello
from ccplay.model.topologies import plan
from ccplay.scenario.reading import parse
from ccplay.stream import wire

TWO_SWITCHES = """
from mininet.topo import Topo

class MyTopo( Topo ):
    def build( self ):
        leftHost = self.addHost( 'h1' )
        rightHost = self.addHost( 'h2' )
        leftSwitch = self.addSwitch( 's3' )
        rightSwitch = self.addSwitch( 's4' )
        self.addLink( leftHost, leftSwitch )
        self.addLink( leftSwitch, rightSwitch )
        self.addLink( rightSwitch, rightHost )

topos = { 'mytopo': ( lambda: MyTopo() ) }
if __name__ == '__main__':
    raise SystemExit( 'only where it is run as a program' )
"""

SHAPED = """
from mininet.link import TCLink
from mininet.net import Mininet
from mininet.topo import Topo
from mininet.topolib import TorusTopo

print("what a file prints is no part of its network")

class Chain(Topo):
    def build(self, k=2, n=1):
        last = None
        for i in range(1, k + 1):
            s = self.addSwitch('s%d' % i, dpid='%x' % i)
            for j in range(1, n + 1):
                h = self.addHost('h%ds%d' % (j, i), cpu=.5)
                self.addLink(h, s, cls=TCLink, bw=10, delay='5ms', loss=1, max_queue_size=50)
            if last:
                self.addLink(last, s, bw=2.5, delay=250, jitter='0.1ms', use_hfsc=True)
            last = s

class Router(Topo):
    def build(self):
        r = self.addNode('r0', cls=object)
        for name in 'ab':
            self.addLink(self.addHost(name), r, max_queue_size=5)

def broken():
    return Chain(k='two')

topos = {'chain': Chain, 'torus': TorusTopo, 'router': Router, 'broken': broken, 'no': int}
"""


def asked(file: Path | None, topo: str) -> dict[str, Any]:
    argv = [sys.executable, "-m", "ccplay", "lab", "--topo", topo]
    argv += ["--custom", str(file)] if file else []
    done = subprocess.run(argv, capture_output=True, check=True, timeout=60)
    said: dict[str, Any] = json.loads(done.stdout)
    return said


@pytest.fixture
def two(tmp_path: Path) -> Path:
    path = tmp_path / "topo-2sw-2host.py"
    path.write_text(TWO_SWITCHES)
    return path


@pytest.fixture
def shaped(tmp_path: Path) -> Path:
    path = tmp_path / "shaped.py"
    path.write_text(SHAPED)
    return path


def test_switches_become_routers(two: Path) -> None:
    assert asked(two, "mytopo") == {
        "kind": "written",
        "name": "mytopo of topo-2sw-2host.py",
        "hosts": ["h1", "h2"],
        "routers": ["s3", "s4"],
        "links": [{"ends": ["h1", "s3"]}, {"ends": ["s3", "s4"]}, {"ends": ["s4", "h2"]}],
    }


def test_arguments_and_options_of_links_are_taken_and_others_named(shaped: Path) -> None:
    said = asked(shaped, "chain,2,n=2")
    assert said["hosts"] == ["h1s1", "h1s2", "h2s1", "h2s2"]
    access, *_, trunk = said["links"]
    assert access == {
        "ends": ["h1s1", "s1"],
        "rate": "10 Mbit/s",
        "delay": "5000 us",
        "loss": "1 %",
        "queue": {"kind": "pfifo", "limit": 50},
    }
    assert trunk == {
        "ends": ["s1", "s2"],
        "rate": "2.5 Mbit/s",
        "delay": "250 us",
        "jitter": "100 us",
        "queue": {"kind": "pfifo", "limit": 1000},
    }
    assert said["remarks"] == [
        "s1-s2: use_hfsc has no effect",
        "h1s1 and 3 others: cpu has no effect",
    ]


def test_a_host_of_a_class_of_its_own_with_several_links_forwards(shaped: Path) -> None:
    said = asked(shaped, "router")
    assert (said["hosts"], said["routers"]) == (["a", "b"], ["r0"])
    assert said["remarks"] == ["a-r0 and 1 other: max_queue_size without bw has no effect"]


def test_mininet_s_own_topologies_need_no_file() -> None:
    said = asked(None, "tree,depth=2,fanout=3")
    assert (len(said["hosts"]), len(said["routers"]), len(said["links"])) == (9, 4, 12)


@pytest.mark.parametrize(
    ("topo", "words"),
    [
        ("chain,k=two", "shaped.py:12: TypeError: "),
        ("broken", "shaped.py:12: TypeError: "),
        ("chian", 'shaped.py: topos has no "chian"; did you mean "chain"?'),
        ("no", "shaped.py: no makes a int, not a mininet.topo.Topo"),
        ("chain,1,2,3,4", "shaped.py: chain,1,2,3,4: TypeError: "),
        ("torus,2,2", "shaped.py: torus,2,2: Exception: Please use 3x3 or greater"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(
    shaped: Path, topo: str, words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    said = asked(shaped, topo)["error"]
    assert "\n" not in said
    assert words in said
    assert main(["run", "--custom", str(shaped), "--topo", topo]) == 3
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("topos = {\n  'a' 3\n}\n", "own.py:2: invalid syntax"),
        ("import os\nx = 1 / 0\n", "own.py:2: ZeroDivisionError"),
        ("raise SystemExit(4)\n", "own.py:1: SystemExit: 4"),
        ("x = 3\n", "own.py: has no topos"),
    ],
)
def test_a_file_that_can_t_be_run_reports_where(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "own.py").write_text(text)
    assert words in asked(tmp_path / "own.py", "a")["error"]


def test_a_recorded_run_needs_the_file_no_more(
    shaped: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A torus has loops, in which a network of switches would fail."""
    record = tmp_path / "run.ccplay"
    words = ["--custom", str(shaped), "--topo", "torus,3,3", "--record", str(record)]
    assert main(["run", *words, "--set", 'duration="1 s"']) == 0
    shaped.unlink()
    with record.open("rb") as file:
        hello = wire.decode_event(file.readline())
    assert isinstance(hello, Hello)
    assert len(hello.network.routers) == 9
    assert max(len(hello.network.paths("h1x1", each)) for each in hello.network.hosts) > 1
    capfd.readouterr()
    assert main(["script", str(record)]) == 0
    again = capfd.readouterr().out
    assert "torus,3,3 of shaped.py" in again
    assert plan(parse(again, tmp_path / "again.toml").case().build.topology) == hello.network
