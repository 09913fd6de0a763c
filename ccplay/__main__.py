"""Entry point of the program ``ccplay`` and of ``python -m ccplay``."""

from __future__ import annotations

import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_SOON_S = 0.02
"""Seconds after which a lost interrupt is raised again."""


def main() -> int:
    """Run the command line of this process and return its exit code, 130 if interrupted."""
    sys.unraisablehook = _interrupt_again
    try:
        from ccplay import cli  # noqa: PLC0415 - it takes a tenth of a second
    except KeyboardInterrupt:
        print("ccplay: interrupted", file=sys.stderr)
        return 130
    return cli.main()


def _interrupt_again(lost: UnraisableHookArgs) -> None:
    """Interrupt the main thread again if Ctrl-C was lost; report other exceptions as Python does.

    Ctrl-C is lost when it arrives in a weak reference's callback, as at the end of each import.
    """
    if issubclass(lost.exc_type, KeyboardInterrupt):
        main_thread = threading.main_thread().ident or 0
        # A signal, unlike interrupt_main(), also ends a system call.
        threading.Timer(_SOON_S, signal.pthread_kill, (main_thread, signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(lost)


if __name__ == "__main__":
    sys.exit(main())
