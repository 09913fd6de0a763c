"""The process that serves browsers is started by a presenter, by a key, or as a command."""

import os
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from ccplay.errors import CcplayError
from ccplay.session.session import Session
from ccplay.share.presenter import BrowserServer, InBrowsers, Sharing
from ccplay.ui.dialogs_session import BrowserLink
from tests.ui.synthetic import SyntheticSource, stream
from tests.ui.test_main import until
from tests.ui.test_watching import folders, presenting
from tests.ui.view import text_of
from tests.ui.web.test_serving import read_until

__all__ = ["folders"]

EVENTS = list(stream(seconds=5))


async def test_a_process_serves_what_a_presenter_shares() -> None:
    it = InBrowsers(Sharing("test", "A title"), "")
    try:
        link = it.browsers.wait()
        assert it.browsers.code
        assert link.startswith("http://127.0.0.1:")
        async with aiohttp.ClientSession() as client, client.get(f"{link}events") as answer:
            [(_, opening), *_] = await read_until(answer, "opening")
            assert opening["title"] == "A title"
            for event in EVENTS:
                it.put(event)
            await read_until(answer, "frame")
            while it.browsers.count != 1:
                it.browsers.listen()
    finally:
        it.close()
    assert it.browsers._process.returncode == 0


def test_why_there_is_no_page_is_reported() -> None:
    sharing = Sharing("test")
    browsers = BrowserServer(sharing.path, "192.0.2.1:8000")
    try:
        with pytest.raises(CcplayError, match=r"can't serve browsers at 192\.0\.2\.1:8000"):
            browsers.wait()
        assert browsers.failed
        assert not browsers.link
    finally:
        sharing.close()
        browsers.close()


async def test_a_key_shows_the_link_and_browsers_are_counted() -> None:
    session = Session(SyntheticSource(stream(seconds=5), live=True), title="Live")
    async with presenting(session, shares=False) as (app, keys):
        await keys.press("ctrl+b")
        await until(keys, lambda: isinstance(app.screen, BrowserLink))
        shown = app.screen.query_one("#page Static")
        await until(keys, lambda: "http://127.0.0.1:" in str(shown.render()))
        assert "0 browsers now" in str(shown.render())
        link = str(shown.render()).split()[0]
        async with aiohttp.ClientSession() as client, client.get(f"{link}events") as answer:
            await read_until(answer, "opening")
            await until(keys, lambda: "1 browser now" in str(shown.render()))
            await keys.press("escape")
            await until(keys, lambda: "1 watching" in text_of(app, "header"))


def test_a_command_serves_a_session_that_is_shared(folders: Path) -> None:
    sharing = Sharing("test")
    command = [sys.executable, "-m", "ccplay", "share", "test", "--web"]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(folders)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline().startswith("http://127.0.0.1:")
        sharing.close()
        assert running.stderr.read() == "the session has ended\n"
    assert running.returncode == 0
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no shared session" in done.stderr
