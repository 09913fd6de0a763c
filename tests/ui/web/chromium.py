"""A real headless Chromium, controlled by the DevTools protocol."""

import asyncio
import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.terminals import PATIENCE_S

FOUND = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)

needs_chromium = pytest.mark.skipif(FOUND is None, reason="there is no Chromium here")

_UNTIL = """new Promise((done) => {
  const look = () => { const found = %s; if (found) done(found); else setTimeout(look, 30); };
  look();
})"""
"""JavaScript that awaits a true value of an expression (``%s``) in the page."""

_ADDRESS = re.compile(r"ws://([^/]+)/")


class Tab:
    """A page of the browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.complaints: list[str] = []
        """Errors of the page: exceptions, refused resources, violations of its policy."""
        self._socket = socket
        self._numbers = itertools.count(1)

    async def call(self, method: str, **parameters: Any) -> Any:
        """Call a method of the protocol, and return its result."""
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            message = await self._socket.receive_json(timeout=PATIENCE_S)
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"]))
        entry = parameters.get("entry", {})
        if message.get("method") == "Log.entryAdded" and entry["level"] == "error":
            self.complaints.append(f"{entry['text']} {entry.get('url', '')}")

    async def open(self, url: str) -> None:
        """Open a page."""
        for domain in ("Runtime", "Log", "Page"):
            await self.call(f"{domain}.enable")
        await self.call("Page.navigate", url=url)

    async def size(self, width: int, height: int) -> None:
        """Set the size of the window, in CSS pixels."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )

    async def prefer(self, scheme: str) -> None:
        """Set the preferred colour scheme: ``dark`` or ``light``."""
        await self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    async def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript."""
        found = await self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def until(self, expression: str) -> Any:
        """Wait until an expression is true; return its value."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                return await self.evaluate(_UNTIL % expression)
        shown = await self.evaluate("document.body.innerText")
        raise AssertionError(f"{expression} never came true: {shown[:600]} {self.complaints}")

    async def press(self, key: str) -> None:
        """Press and release a key."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        code = {"Tab": 9, "Enter": 13, "Escape": 27}.get(key, 0)
        for kind in ("keyDown", "keyUp"):
            pressed = {"type": kind, "key": key, "windowsVirtualKeyCode": code}
            await self.call(
                "Input.dispatchKeyEvent", **pressed, **(text if kind == "keyDown" else {})
            )


@contextmanager
def chromium(folder: Path, *, nice: int = 0) -> Iterator[str]:
    """Run a browser with an empty profile in ``folder``; yield the address of its DevTools."""
    assert FOUND is not None
    start = ["nice", "-n", str(nice), FOUND] if nice else [FOUND]
    words = ["--headless=new", "--disable-gpu", "--remote-debugging-port=0", "--hide-scrollbars"]
    words += ["--no-sandbox"] if os.geteuid() == 0 else []
    with subprocess.Popen(
        [*start, *words, f"--user-data-dir={folder}", "about:blank"],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
    ) as process:
        try:
            yield _address(process)
        finally:
            process.kill()


@asynccontextmanager
async def new_tab(address: str) -> AsyncIterator[Tab]:
    """Open another page of a browser."""
    async with aiohttp.ClientSession() as client:
        async with client.put(f"http://{address}/json/new") as answer:
            page = await answer.json()
        async with client.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            yield Tab(socket)
        async with client.get(f"http://{address}/json/close/{page['id']}"):
            pass


def _address(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if (match := _ADDRESS.search(line.decode(errors="replace"))) is not None:
            return match[1]
    raise AssertionError("Chromium has ended")
