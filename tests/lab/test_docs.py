"""The site builds strictly and loads nothing from elsewhere; its tutorials really work."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TUTORIALS = (
    "first-scenario",
    "first-lesson",
    "own-algorithm",
    "own-discipline",
    "first-experiment",
)


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


@pytest.mark.parametrize("name", TUTORIALS)
def test_the_commands_of_a_tutorial_work_one_after_another(name: str, tmp_path: Path) -> None:
    """Those that open a screen, or take a lesson that comes with ccplay, are tested elsewhere."""
    if name == "own-algorithm" and not (shutil.which("clang") and shutil.which("bpftool")):
        pytest.skip("clang or bpftool is not installed")
    page = (ROOT / "docs" / "tutorials" / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?ms)^```sh\n(.*?)^```", page)
    lines = [line for block in blocks for line in block.splitlines() if _runs(line)]
    assert len(lines) >= 2
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        done = subprocess.run(
            [sys.executable, "-m", "ccplay", *words],
            check=False,
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=400,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        for file in tmp_path.glob("queues.toml"):
            # As the tutorial says: the matrix is no comment any more.
            text = re.sub(r"(?m)^# (repeats =|\[matrix\]|\")", r"\1", file.read_text())
            file.write_text(text, encoding="utf-8")


def _runs(line: str) -> bool:
    words = line.split()
    if words[:2] == ["ccplay", "lesson"]:
        return "--headless" in words and "bufferbloat" not in words
    return (
        words[1:2] in ([each] for each in ("new", "check", "run", "compare", "export", "list"))
        and "last" not in words
        and "--algorithm" not in words
    )
