"""The site builds strictly and loads nothing from elsewhere; its tutorials really work."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.terminals import on_terminal

ROOT = Path(__file__).parents[2]
TUTORIALS = {
    page.stem: "".join(re.findall(r"(?ms)^```sh\n(.*?)^```", page.read_text())).splitlines()
    for page in sorted((ROOT / "docs" / "tutorials").glob("*.md"))
}
"""Commands of each tutorial, in their order."""

SHORTER = {
    "ccplay evaluate bbr --only collapse,high-loss,harm --quick": "--only collapse",
    "ccplay evaluate mine.bpf.c --quick": "--only reordering",
    "ccplay evaluate mine.bpf.c": "--only reordering --repeats 1 --against cubic --jobs 4",
    "ccplay evaluate cubic --out evaluation-mine": "--only reordering --repeats 1 --against cubic",
    "ccplay lesson bufferbloat --headless": "--hz 10",
    "ccplay lesson bufferbloat-lab --headless": "--hz 10",
    "ccplay lesson queues.toml --share --web 0.0.0.0:8000": "--web 127.0.0.1:0",
    "ccplay run bufferbloat --jobs 4 --out bloat --report": "--case idle --hz 10",
    "ccplay run queues.toml --jobs 4 --out results --report": "--repeats 1 --case 400 --hz 10",
    "ccplay run race --algorithm mine.bpf.c --set timeline.0.cc=mine --jobs 2 --out mine"
    " --report": "--case '50 ms' --repeats 1 --set timeline.0.bytes=1MB --set timeline.1.bytes=1MB",
}
"""Options appended to commands that would take hours, or a port that may be in use; of an option
given twice the last one counts."""

SCREENS = {
    "ccplay": "Reno alone > cbbr\r > reno → bbr > q1\t20\r > → pfifo 20 pkt > w\r > download w1"
    " > l5Mbit\r > → 5 Mbit/s > z > undo",
    "ccplay replay last": "Reno alone",
    "ccplay --ghost last": "ghost",
    "ccplay race.toml": "flow 2 starts",
    "ccplay lesson bufferbloat-lab": "Part 1 > 1\r\r > reveal > \r > 0.99 s",
    "ccplay lesson queues.toml --share --web 0.0.0.0:8000": "127.0.0.1",
    "ccplay replay evaluation-bbr-quick/collapse/runs/algorithm-bbr-loss-30-1.ccplay": "1 starts",
    "ccplay --algorithm mine.bpf.c": "Reno alone > c > mine",
    "ccplay --discipline mine.py": "Reno alone > q > mine",
}
"""Commands that open a screen: by turns what is shown, and the keys that are pressed then."""


def test_the_site_builds_strictly_and_loads_nothing_from_other_servers(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-b", "html"]
    done = subprocess.run(
        [*build, ROOT / "docs", tmp_path], check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    pages = [*tmp_path.rglob("*.html")]
    assert len(pages) > 40
    for page in pages:
        text = page.read_text(encoding="utf-8")
        tags = re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", text)
        assert not [tag for tag in tags if re.search(r"""(?:src|href)=["'](?:https?:)?//""", tag)]
    for style in tmp_path.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"@import|url\(['\"]?(?:https?:)?//", text), style


def test_what_is_known_of_commands_is_known_of_commands_of_today() -> None:
    assert all(TUTORIALS.values())
    assert {*SHORTER, *SCREENS} <= {line for lines in TUTORIALS.values() for line in lines}


@pytest.mark.parametrize("name", TUTORIALS)
def test_the_commands_of_a_tutorial_work_one_after_another(name: str, tmp_path: Path) -> None:
    lines = TUTORIALS[name]
    if "mine.bpf.c" in " ".join(lines) and not (shutil.which("clang") and shutil.which("bpftool")):
        pytest.skip("clang or bpftool is not installed")
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    for line in lines:
        words = shlex.split(f"{line} {SHORTER.get(line, '')}", comments=True)
        argv = ["env", "-C", str(tmp_path), sys.executable, "-m", *words]
        if line in SCREENS:
            with on_terminal(argv, environment=environment) as shown:
                for turn, each in enumerate(SCREENS[line].split(" > ")):
                    shown.type(each.encode()) if turn % 2 else shown.read_until_shown(each)
                shown.type(b"\x11")  # ctrl+q
                code, said = shown.ended(60)
        else:
            done = subprocess.run(
                argv, check=False, env=environment, input=b"", capture_output=True, timeout=400
            )
            code, said = done.returncode, done.stdout + done.stderr
        # An algorithm may miss a bound, as BBR does, and so may the delay of a busy machine.
        judged = {"evaluate", "bufferbloat"} & {*words}
        assert code in ((0, 1) if judged else (0,)), f"{line}\n{said.decode()}"
        for file in tmp_path.glob("*.toml") if "new" in words else ():
            # A fifth of all times; and, as that page says, the matrix is a comment no more.
            text = re.sub(r'"(\d+) s"', lambda it: f'"{int(it[1]) / 5:g} s"', file.read_text())
            if name == "first-experiment":
                text = re.sub(r"(?m)^# (repeats =|\[matrix\]|\")", r"\1", text)
            file.write_text(text, encoding="utf-8")
