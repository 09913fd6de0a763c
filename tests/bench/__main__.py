"""``python -m tests.bench [NAME ...]``: prints the results of the named benchmarks, or of all.

``python -m tests.bench lessons [LESSON ...] [--repeats N]`` takes lessons in real labs.
``--seconds S`` sets the time of benchmarks that can measure for any time.

A benchmark is a module of this folder with a function or coroutine function ``run(console)`` that
prints tables: each value with its peer's, measured in the same run, their ratio, and the aim.
"""

import argparse
import asyncio
import compileall
import importlib
import inspect
import pkgutil
import sys
from pathlib import Path

from rich.console import Console

import ccplay


def main() -> int:
    """Run the benchmarks one after another, because parallel ones would distort each other."""
    there = sorted(
        module.name
        for module in pkgutil.iter_modules([str(Path(__file__).parent)])
        if not module.name.startswith("_")
    )
    if sys.argv[1:2] == ["lessons"]:
        # Only this benchmark has its own arguments.
        from tests.bench import lessons

        asyncio.run(lessons.run(Console(highlight=False), sys.argv[2:]))
        return 0
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--seconds", type=float, metavar="S")
    asked = parser.parse_args()
    names = asked.names or there
    if unknown := [name for name in names if name not in there]:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(there)}", file=sys.stderr)
        return 2
    # Compiled as pip installs it: without bytecode, half of a start would be compiling.
    compileall.compile_dir(str(Path(ccplay.__file__).parent), quiet=2)
    # Tables in a file need not fit a terminal.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    for name in names:
        run = importlib.import_module(f"tests.bench.{name}").run
        timed = asked.seconds is not None and "seconds" in inspect.signature(run).parameters
        options = {"seconds": asked.seconds} if timed else {}
        if inspect.iscoroutinefunction(run):
            asyncio.run(run(console, **options))
        else:
            run(console, **options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
