"""Any scenario file is read or refused in bounded time and memory, even a hostile one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ccplay.errors import ScenarioError
from ccplay.scenario.document import MOST_PARTS, TooMuchError, loads
from ccplay.scenario.reading import load
from tests.terminals import PATIENCE_S

HEAD = 'duration = "30 s"\nlinks.bottleneck.rate = "1 Mbit/s"\n'
LONGEST_S = 3.0
"""Limit of CPU time in s per file, for a busy or slow machine: an idle one takes less than 1 s.
Without ccplay's bounds most files take more than 8 s, and some take minutes."""
MOST_KB = 200_000


def steps(*lines: str) -> str:
    return "timeline = [\n" + "".join(f"{{ {line} }},\n" for line in lines) + "]\n"


def matrix(points: int) -> str:
    return f"[matrix]\nseed = {list(range(points))}\n"


def listed(member: str, count: int) -> str:
    return "[" + f"{member}," * count + "]"


LINKS = [f"{one}-{other}" for n in range(1, 9) for one, other in ((f"s{n}", "r1"), ("r2", f"d{n}"))]
START = 'at = "1 s", do = "start-flow"'
ATTACKS = {
    "axes of one value": HEAD
    + "[matrix]\n"
    + "".join(f'"about.a{i}" = [1]\n' for i in range(12_000)),
    "paths of an axis": HEAD
    + "[matrix]\na = { values = [1], path = "
    + listed('"about"', 70_000)
    + " }\n",
    "a path of many parts": HEAD
    + f'[matrix]\na = {{ path = "{"a." * 400_000}a", values = [1] }}\n',
    "links": HEAD + "".join(f'links.l{i}.rate = "1 Mbit/s"\n' for i in range(15_000)),
    "links by all their names": 'duration = "1 s"\ntopology = { kind = "dumbbell", pairs = 8 }\n'
    + "".join(
        f'links."{link}".delay = "1 ms"\nlinks."{link.replace("-", "->")}".loss = "1 %"\n'
        for link in LINKS
    )
    + matrix(1000),
    "dotted keys": HEAD + "a." * 490_000 + "a = 1\n",
    "quoted keys": HEAD
    + "".join(f'{".".join(["a"] * 7)}."\\u0041{i}" = 1\n' for i in range(8_000)),
    "headers": "".join(f"[{'a.' * 7}b{i}]\n" for i in range(8_000)),
    "a deep header": "[" + "a." * 490_000 + "a]\n",
    "keys": HEAD + "".join(f"k{i} = 1\n" for i in range(70_000)),
    "published values": HEAD
    + f'published = [{{ metric = "jain", values = {listed("1", 70_000)} }}]\n'
    + matrix(1000),
    "misspelt names": HEAD
    + steps(*(f'{START}, flow = "aflow{i:06}"' for i in range(999)))
    + matrix(1)
    + "".join(f'"timeline.{i}.cc" = ["cubik"]\n' for i in range(20)),
    "misspelt names at many points": HEAD
    + steps(*(f'{START}, flow = "aflow{i:06}"' for i in range(300)))[:-2]
    + "".join(f'{{ at = "2 s", do = "stop-flow", flow = "aflwo{i:06}" }},\n' for i in range(90))
    + "]\n"
    + matrix(100),
    "misspelt keys": HEAD
    + steps(*(f'{START}, durtion{i} = "x"' for i in range(999)))
    + matrix(100),
    "valid steps": HEAD + steps(*([START] * 9_999)),
    "steps that wait": HEAD
    + steps(
        'at = "0 s", do = "start-ping", ping = "p0", count = 1',
        *(f'after = "p{i}", do = "start-ping", ping = "p{i + 1}", count = 1' for i in range(5_000)),
    ),
    "steps in a circle": HEAD
    + steps(
        *(
            f'after = "p{(i + 1) % 5_000}", do = "start-ping", ping = "p{i}", count = 1'
            for i in range(5_000)
        )
    ),
    "steps at many points": HEAD + steps(*([START] * 999)) + matrix(1000),
    "changes of classes": HEAD
    + steps(
        *(['at = "1 s", do = "set-classes", classes = []'] * 3_000),
        *(['at = "1 s", do = "set-qdisc", kind = "pfifo", class = "a"'] * 3_000),
    ),
    "a tree where text belongs": HEAD + f"about = {listed('1', 70_000)}\n" + matrix(1000),
    "text at many points": HEAD + f'about = " {"x" * 900_000}"\n' + matrix(1000),
    "spaces in a quantity": f'duration = "1{" " * 900_000}x"\n',
    "spaces": " " * 999_999,
    "comments": "#\n" * 499_999,
    "brackets": "a = " + "[" * 70_000,
    "tables in tables": "a = " + "{a=" * 30_000,
    "a long number": "seed = " + "9" * 900_000,
    "a long hexadecimal number": "seed = 0x" + "f" * 900_000,
    "a long string": f'title = "{"x" * 900_000}"\n',
    "escapes": 'title = "' + r"\u0041" * 160_000 + '"\n',
    "a string without an end": 'a = "' + "\\" * 999_990,
    "a list on whose members paths lie": HEAD
    + f"published = {listed('{}', 20_000)}\n[matrix]\nseed = {list(range(500))}\n"
    + "a = { values = [1], path = ["
    + ",".join(f'"published.{i}.metric"' for i in range(1000))
    + "] }\n",
}
READ = """
import json, re, sys, time
from pathlib import Path
from ccplay.errors import ScenarioError
from ccplay.scenario.reading import load
took = {}
for path in map(Path, sys.argv[1:]):
    began = time.process_time()
    try:
        load(path)
    except ScenarioError as error:
        assert len(str(error)) < 20_000
    took[path.stem] = time.process_time() - began
# Not ru_maxrss: that counts what the parent had when it forked.
peak = re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())
print(json.dumps([took, int(peak[1])]))
"""


def test_any_file_is_read_or_refused_soon(tmp_path: Path) -> None:
    """Hostile files are read or refused within limits of time and memory, in a fresh process."""
    files = []
    for name, text in ATTACKS.items():
        files.append(tmp_path / f"{name}.toml")
        assert len(text) <= 1_000_000, name
        files[-1].write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", READ, *files],
        capture_output=True,
        check=True,
        text=True,
        timeout=max(PATIENCE_S, 300),
    )
    took, most_kb = json.loads(done.stdout)
    assert took.keys() == ATTACKS.keys()
    assert {name: t for name, t in took.items() if t > LONGEST_S} == {}
    assert most_kb < MOST_KB


def test_the_most_that_makes_sense_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(ATTACKS["valid steps"])
    assert len(load(path).case().timeline) == 9_999
    path.write_text(HEAD + steps(*([START] * 30)) + matrix(1000))
    assert len(load(path).cases) == 1000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (".".join("a" * (MOST_PARTS + 1)) + " = 1", "a key of more than 8 parts"),
        ("a = " + "[" * 17 + "]" * 17, "nested too deeply"),
        ("a = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ("a = [" + "1," * 80_000 + "]", "more than 80,000 keys and values"),
    ],
)
def test_what_would_take_long_is_not_parsed(text: str, reason: str) -> None:
    with pytest.raises(TooMuchError, match=reason):
        loads(text)


def test_text_and_comments_are_not_counted() -> None:
    dots = "a." * 50_000 + "[" * 50_000
    text = f'# {dots}\na = "{dots}"\nb = \'{dots}\'\nc = """{dots}"\\"\\\n"""\nd = 1.5'
    assert loads(text)["b"] == dots


def test_only_a_file_is_a_scenario(tmp_path: Path) -> None:
    """Pipes, devices and folders are refused: a pipe may block forever, a device never ends."""
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    cases = {pipe: "not a regular file", Path("/dev/zero"): "not a regular file"}
    for path, reason in {**cases, tmp_path: "Is a directory"}.items():
        with pytest.raises(ScenarioError, match=reason) as caught:
            load(path)
        assert "\n" not in str(caught.value)


def test_a_setting_is_bounded_too(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(HEAD)
    for setting, reason in {
        f"about={{{'a.' * 60_000}a = 1}}": "a key of more than 8 parts",
        "about=" + "[" * 10_000: "nested too deeply",
        f"{'a.' * 60_000}a=1": "is not PATH=VALUE",
    }.items():
        with pytest.raises(ScenarioError, match=rf"a.toml: --set .*{reason}"):
            load(path, [setting])
    with pytest.raises(ScenarioError, match="is given more than 1000 times"):
        load(path, ["seed=1"] * 1001)
