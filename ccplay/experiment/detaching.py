"""The moments at which the user leaves an experiment to its cluster."""

from __future__ import annotations

import asyncio
import sys

from ccplay.experiment.bench import Away
from ccplay.experiment.handover import Handover
from ccplay.experiment.run_options import RunOptions
from ccplay.visible import notify

_QUESTION = "Press Enter to leave the rest to the cluster, or c and Enter to cancel it: "


async def at_once(benches: Away, handover: Handover, wanted: RunOptions) -> None:
    """Hand an experiment over, or cancel it, as the command line requests. Raises ``LabError``."""
    if wanted.away == "cancel":
        # Benches end all runs of an experiment that leaves them without a handover.
        notify("cancelled; finished runs are kept on the workers; to fetch them and run the rest:")
        notify(f"  {with_option(wanted, 'attach')}")
        return
    count = len(handover.runs())
    if not count:
        notify(f"all runs are finished: they are in {wanted.out}")
        return
    await benches.hand_over(handover)
    notify(
        f"{count} runs continue without this machine; to fetch finished runs and watch the rest:"
    )
    notify(f"  {with_option(wanted, 'attach')}")


async def at_interrupt(
    benches: Away, handover: Handover, wanted: RunOptions, stop: asyncio.Event
) -> bool:
    """Hand the rest over after an interrupt, unless the user wants to cancel it.

    Another interrupt, or the lack of a terminal, also leaves the rest to the cluster. Returns
    whether it was handed over; raises ``LabError``.
    """
    benches.pause()
    stop.clear()
    if sys.stdin.isatty() and sys.stderr.isatty() and await _answer(stop) == "c":
        return False
    await at_once(benches, handover, wanted)
    return True


async def _answer(stop: asyncio.Event) -> str:
    """Ask on the terminal; return the answer, empty after another interrupt."""
    loop = asyncio.get_running_loop()
    ready, again = asyncio.Event(), asyncio.ensure_future(stop.wait())
    # The progress display may have left the cursor anywhere.
    print(f"\n{_QUESTION}", end="", file=sys.stderr, flush=True)
    loop.add_reader(sys.stdin.fileno(), ready.set)
    came = asyncio.ensure_future(ready.wait())
    try:
        await asyncio.wait({came, again}, return_when=asyncio.FIRST_COMPLETED)
        return sys.stdin.readline().strip().lower() if ready.is_set() else ""
    finally:
        loop.remove_reader(sys.stdin.fileno())
        came.cancel()
        again.cancel()


def with_option(wanted: RunOptions, option: str) -> str:
    """Return the command line with ``option`` in place of --detach, --attach or --cancel."""
    return wanted.command.replace(f"--{wanted.away}", f"--{option}")
