"""``python -m tests.soak``: random keys, commands, kills and resizes against the real program.

Some sessions are long, and their memory is measured; the others are short screens, replays and runs
without a screen, and end in many ways. Their recordings are read back. Counts, memory and every
failure are printed at the end; the exit code is 1 if there was a failure. With ``--kills N`` only
random processes of random labs are killed, see ``tests.soak.kills``.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from tests.soak.kills import Kills
from tests.soak.sessions import Session
from tests.soak.tally import Tally
from tests.soak.terminal import ROOT

_LONG_EVERY, _LONG = 12, 1 / 6
"""Interval of long sessions (every 12th), and the fraction of the whole time that each takes."""

_SHIPPED = ROOT / "tests" / "ui" / "recordings" / "playground.ccplay"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long (default 60)")
    parser.add_argument("--seed", type=int, help="seed of all random choices (default: a new one)")
    parser.add_argument("--session", type=int, metavar="N", help="only this session of the seed")
    parser.add_argument("--kills", type=int, metavar="N", help="kill N processes, press no keys")
    parser.add_argument("--jobs", type=int, default=3, help="programs at a time with --kills")
    arguments = parser.parse_args()
    seed = random.randrange(10**6) if arguments.seed is None else arguments.seed
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    folder = Path(tempfile.mkdtemp(prefix="ccplay-soak-"))
    # Sessions are recorded automatically; these must not replace the user's.
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    os.environ["XDG_CONFIG_HOME"] = str(folder / "config")
    if arguments.kills is not None:
        kills = Kills(folder, seed)
        kills.run(arguments.kills, arguments.jobs)
        kills.show(console)
        shutil.rmtree(folder)
        return 1 if kills.failed else 0
    tally = Tally(seed)
    try:
        _soak(tally, folder, arguments.minutes * 60, arguments.session)
    except KeyboardInterrupt:
        console.print("interrupted")
    print(file=sys.stderr)
    tally.show(console)
    if tally.failures:
        console.print(f"the files of the sessions that failed are in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


def _soak(tally: Tally, folder: Path, seconds: float, only: int | None) -> None:
    begun, number, latest = time.monotonic(), only or 0, _SHIPPED
    while time.monotonic() < begun + seconds:
        session = Session(number, tally, folder / f"session-{number}")
        session.folder.mkdir()
        shutil.copy(latest, session.earlier)
        failed = len(tally.failures)
        try:
            if number % _LONG_EVERY == 0:
                session.long(seconds * _LONG)
            else:
                session.short()
        except KeyboardInterrupt:
            if session.terminal is not None:
                session.terminal.abort()
            raise
        tally.counts["sessions"] += 1
        if session.recording.exists():
            latest = folder / "latest.ccplay"
            shutil.copy(session.recording, latest)
        if len(tally.failures) == failed:
            shutil.rmtree(session.folder)
        said = f"{number + 1} sessions, {len(tally.failures)} failures"
        print(f"\r{said}", end="", file=sys.stderr, flush=True)
        number += 1
        if only is not None:
            return


if __name__ == "__main__":
    sys.exit(main())
