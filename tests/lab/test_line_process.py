"""The delay line's process: forked or started anew, it obeys, has a name, and ends."""

import json
import subprocess
import sys
from typing import Any

import pytest

PROGRAM = """
import asyncio, json, os, sys
from pathlib import Path
from ccplay.lab import delay_line
from ccplay.lab import child

line = {how}

async def main():
    await line.connect()
    line.send(b'{{"queue": 7, "do": "count"}}')
    replies = line.replies()
    found = {{"replies": json.loads(await anext(replies))}}
    found["name"] = Path(f"/proc/{{line.pid}}/comm").read_text().strip()
    found["files"] = len(os.listdir(f"/proc/{{line.pid}}/fd"))
    {end}
    found["more"] = [each async for each in replies if b"late" not in each]
    found["code"] = line.wait()
    print(json.dumps(found))

asyncio.run(main())
"""

HOW = {"fork": "child.fork(delay_line.main)", "start": "child.start(delay_line.main)"}


def ran(how: str, end: str) -> dict[str, Any]:
    """Return what a program reports of its delay line; it has no threads, as a fork requires."""
    code = PROGRAM.format(how=HOW[how], end=end)
    argv = [sys.executable, "-P", "-c", code]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("how", ["fork", "start"])
@pytest.mark.parametrize(("end", "code"), [("line.kill()", -9), ("line._writer.close()", 0)])
def test_it_obeys_and_ends(how: str, end: str, code: int) -> None:
    """It also ends with its stdin, of which the lab held the last descriptor."""
    found = ran(how, end)
    assert found["replies"] == {"queue": 7, "do": "count"}
    assert found["name"] == "delay line"
    assert found["more"] == []
    assert found["code"] == code


def test_a_fork_keeps_nothing_of_the_labs() -> None:
    """It has as many descriptors as a process started by a new interpreter."""
    forked, started = (ran(how, "line.kill()")["files"] for how in ("fork", "start"))
    assert forked == started


def test_one_that_is_not_wanted_is_gone() -> None:
    code = (
        "import os; from ccplay.lab import delay_line;"
        "from ccplay.lab import child;"
        "line = child.fork(delay_line.main); line.dismiss();"
        "assert not os.path.exists(f'/proc/{line.pid}')"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True, timeout=60)
