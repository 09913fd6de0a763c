"""A browser that is slow loses its place, and receives the newest state; links and places."""

import asyncio
import importlib
import os
import sys
from types import SimpleNamespace
from typing import cast

import pytest
from aiohttp import web

from ccplay.errors import UsageError
from ccplay.share.presenter import WebAddress, read_place
from ccplay.share.web import gateway, pages
from ccplay.share.web.feed import PageFeed
from ccplay.share.web.pages import Admission, Broadcast, Pages


class Slow:
    """A response whose browser takes one write when it is told to."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.takes = asyncio.Semaphore(0)
        self.wrote = asyncio.Semaphore(0)

    async def write(self, lines: bytes) -> None:
        self.written.append(lines)
        self.wrote.release()
        await self.takes.acquire()


def page_with(it: Broadcast) -> Pages:
    feed = SimpleNamespace(opening=lambda: b"event: opening\ndata: {}\n\n")
    admission = Admission(WebAddress(), "token")
    return Pages(admission, cast("PageFeed", feed), it)


async def test_a_slow_browser_learns_of_its_gap_and_starts_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pages, "MOST_MESSAGES", 3)
    it, slow = Broadcast(), Slow()
    sending = asyncio.create_task(page_with(it)._send(cast("web.StreamResponse", slow)))
    await slow.wrote.acquire()
    for number in range(10):
        it.put(b"%d;" % number)
    slow.takes.release()
    await slow.wrote.acquire()
    it.put(b"10;")
    it.put(b"11;")
    slow.takes.release()
    await slow.wrote.acquire()
    it.close()
    slow.takes.release()
    await sending
    assert slow.written[0].endswith(b"event: opening\ndata: {}\n\n")
    assert slow.written[1] == b"event: gap\ndata: {}\n\nevent: opening\ndata: {}\n\n"
    # And then nothing that it had, and all that came.
    assert slow.written[2] == b"10;11;"


async def test_one_who_takes_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_SENT_S", 0.01)
    with pytest.raises(TimeoutError):
        await page_with(Broadcast())._send(cast("web.StreamResponse", Slow()))


def test_a_broadcast_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_BYTES", 100)

    async def fill() -> Broadcast:
        it = Broadcast()
        for _ in range(50):
            it.put(b"x" * 30)
        return it

    it = asyncio.run(fill())
    assert it.end == 50
    assert it.end - it.first == 3
    assert it.since(0) is None
    assert it.since(49) == b"x" * 30


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", WebAddress("127.0.0.1", 0)),
        (":8000", WebAddress("127.0.0.1", 8000)),
        ("0.0.0.0:8000", WebAddress("0.0.0.0", 8000)),
        ("10.0.0.1", WebAddress("10.0.0.1", 0)),
        ("[::1]:9", WebAddress("::1", 9)),
        ("localhost", WebAddress("localhost", 0)),
        ("lab.example:80", WebAddress("lab.example", 80)),
    ],
)
def test_a_place_is_read(text: str, place: WebAddress) -> None:
    assert read_place(text) == place


@pytest.mark.parametrize(
    "text", ["playground", "1.2.3.4:99999", "a b:1", "http://x:1", ":", "[x]:1"]
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="ADDRESS:PORT"):
        read_place(text)


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("127.0.0.1:8000", True),
        ("localhost:1", True),
        ("[::1]:8000", True),
        ("192.168.1.5", True),
        ("attacker.example", False),
        ("127.0.0.1.attacker.example:8000", False),
        ("localhost.attacker.example", False),
        ("", False),
        ("[::1", False),
    ],
)
def test_only_own_names_and_addresses_are_ours(host: str, *, ours: bool) -> None:
    assert Admission(WebAddress(), "token").is_ours(host) is ours


def test_a_token_is_compared_whole() -> None:
    admission = Admission(WebAddress(), "token")
    assert admission.knows("token")
    assert not any(map(admission.knows, ("", "toke", "token2", "Token", "tök\udc80en")))


def test_a_code_is_square_and_has_room_around_it() -> None:
    rows = gateway.draw_code("http://127.0.0.1:8000/" + "x" * 22 + "/")
    assert len({len(row) for row in rows}) == 1
    assert abs(len(rows) * 2 - len(rows[0])) <= 1
    assert not rows[0].strip()
    assert all(row.startswith("  ") and row.endswith("  ") for row in rows)


def test_the_gateway_names_a_library_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    for name in ("gateway", "pages"):
        monkeypatch.delattr(f"ccplay.share.web.{name}")
        monkeypatch.delitem(sys.modules, f"ccplay.share.web.{name}")
    loaded = importlib.import_module("ccplay.share.web.gateway")
    monkeypatch.setattr(os, "nice", lambda _: 0)
    assert loaded.main(["socket", ""]) == 1
    assert b"which are not installed" in capfdbinary.readouterr().out
