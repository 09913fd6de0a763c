"""Installs a wheel into a fresh virtual environment, and tries there what it offers; needs root.

``python -m tests.wheel FILE.whl``, as ``make dist`` does. The working directory is empty, so that
nothing of the checkout can be found.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_INSTALLED = (
    "share/man/man1/ccplay.1",
    "share/bash-completion/completions/ccplay",
    "share/zsh/site-functions/_ccplay",
    "share/fish/vendor_completions.d/ccplay.fish",
)

_TRIED = (
    ("--version", 0),
    ("--help", 0),
    ("completion bash", 0),
    ("list --json", 0),
    ("list lessons", 0),
    ("config schema", 0),
    ("config", 0),
    ("doctor", 0),
    ("new scenario first", 0),
    ("check first.toml", 0),
    ("new lesson first-lesson", 0),
    ("lesson first-lesson.toml --check", 0),
    ("new discipline mine", 0),
    ("check mine.py", 0),
    ("list disciplines", 0),
    # Without a terminal the playground runs headless.
    ("--record first.ccplay", 0),
    ("lesson first-lesson.toml --headless", 0),
    ("run first.toml --out results --report --discipline mine.py", None),
    ("report first.ccplay --out page", 0),
    ("replay first.ccplay --picture 0:10 --out first.png", 0),
    ("export first.ccplay --to first.parquet", 0),
)
"""Commands of a new user, and the exit codes that they must end with; None for 0 or 1, as an
expectation about physics may fail on a busy machine."""

_IN_C = (("new algorithm own", 0), ("check own.bpf.c", 0))


def main(wheel: Path) -> int:
    """Try a wheel; return 1 if something fails."""
    with tempfile.TemporaryDirectory(prefix="ccplay-wheel-") as folder:
        place = Path(folder)
        subprocess.run([sys.executable, "-m", "venv", place / "env"], check=True)
        pip = place / "env" / "bin" / "pip"
        subprocess.run([pip, "install", "--quiet", f"{wheel.resolve()}[report,web]"], check=True)
        (place / "home").mkdir()
        missing = [each for each in _INSTALLED if not (place / "env" / each).exists()]
        for each in missing:
            print(f"not installed: {each}")
        clang = shutil.which("clang") and shutil.which("bpftool")
        tried = (*_TRIED, *(_IN_C if clang else ()))
        failed = [line for line, code in tried if not _works(place, line, code)]
    print(f"{len(tried) - len(failed)} commands of the wheel work, {len(failed)} failed")
    return 1 if failed or missing else 0


def _works(place: Path, line: str, code: int | None) -> bool:
    known = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "XDG_CONFIG_HOME", "XDG_STATE_HOME"}
    own = {name: value for name, value in os.environ.items() if name not in known}
    done = subprocess.run(
        [place / "env" / "bin" / "ccplay", *line.split()],
        check=False,
        cwd=place / "home",
        env={**own, "HOME": str(place / "home")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    good = done.returncode in ((0, 1) if code is None else (code,))
    print(f"{'works ' if good else 'FAILED'} ccplay {line}", flush=True)
    if not good:
        print(done.stdout[-2000:], done.stderr[-2000:], sep="\n")
    return good


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
