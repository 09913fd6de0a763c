"""Commands of ccplay as processes of their own, as a user starts them."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from typing import Any

_PATIENCE_S = 240
"""Seconds that any command, or a line of its progress, may take on a busy machine."""


async def start(*words: object, **options: Any) -> Process:
    """Start a command; its output comes through pipes, unless ``options`` say otherwise."""
    argv = (sys.executable, "-m", "ccplay", *map(str, words))
    return await asyncio.create_subprocess_exec(*argv, **{"stdout": PIPE, "stderr": PIPE} | options)


async def progress(process: Process, word: str) -> None:
    """Wait for a line of progress with a word."""
    assert process.stderr is not None
    said, line = "", ""
    async with asyncio.timeout(_PATIENCE_S):
        while word not in line:
            said, line = said + line, (await process.stderr.readline()).decode()
            assert line, f"it ended before its time: {said[-500:]!r}"


async def finish(process: Process) -> tuple[int | None, Any, str]:
    """Wait for the end of a command; return its exit code, what its JSON says, and its messages."""
    async with asyncio.timeout(_PATIENCE_S):
        out, talk = await process.communicate()
    return process.returncode, json.loads(out) if out else None, talk.decode()


async def run(*words: object) -> tuple[int | None, Any, str]:
    """Run a command to its end, see ``finish``."""
    return await finish(await start(*words))
