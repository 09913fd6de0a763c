"""The server for browsers shows everything to those with the link, and nothing to others."""

import asyncio
import contextlib
import random
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec
import pytest
from msgspec.structs import replace
from yarl import URL

from ccplay.errors import CcplayError
from ccplay.share import sockets
from ccplay.share.frames import Board, Greeting, Over, Wants
from ccplay.share.presenter import Sharing
from ccplay.share.sockets import WatchSource
from ccplay.share.web import gateway, pages
from ccplay.share.web.pages import PAGE
from tests.terminals import PATIENCE_S
from tests.ui.web.conftest import Stage

HOSTILE = 10_000


def decoded(lines: bytes) -> list[tuple[str, Any]]:
    """Return kind and content of each complete message."""
    found = []
    for block in lines.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "event" in fields and "data" in fields:
            found.append((fields["event"], msgspec.json.decode(fields["data"])))
    return found


async def read_until(answer: aiohttp.ClientResponse, *kinds: str) -> list[tuple[str, Any]]:
    """Read messages until one of each of these kinds has arrived; return them all."""
    lines = b""
    async with asyncio.timeout(PATIENCE_S):
        while not {*kinds} <= {kind for kind, _ in decoded(lines)}:
            lines += await answer.content.readany()
    return decoded(lines)


async def asked(answer: aiohttp.ClientResponse) -> Any:
    """Read until the question has come to the page, so that votes count; return the question.

    The opening may be older than the board.
    """
    ((_, opening), *later) = await read_until(answer, "opening")
    facts = [opening["facts"], *(content for kind, content in later if kind == "facts")]
    while not any(each.get("lesson") for each in facts):
        later = await read_until(answer, "facts")
        facts = [content for kind, content in later if kind == "facts"]
    return next(each["lesson"]["question"] for each in facts if each.get("lesson"))


async def test_messages_and_windows_have_what_the_session_has(stage: Stage) -> None:
    stage.play(10)
    link = await stage.serve()
    async with aiohttp.ClientSession() as client:
        await caught_up(client, link, 9.9)
    async with aiohttp.ClientSession() as client, client.get(f"{link}events") as answer:
        assert answer.content_type == "text/event-stream"
        [(kind, opening)] = await read_until(answer, "opening")
        assert kind == "opening"
        assert opening["title"] == "A <script>title</script>"
        assert {each["name"] for each in opening["facts"]["flows"]} >= {"1"}
        assert [each[0] for each in opening["facts"]["others"]] == ["p1"]
        stage.play(12)
        later: list[tuple[str, Any]] = []
        step_ms = first = 0
        # On a busy machine the first frame may still have earlier data.
        while first * step_ms <= 9000:
            later += await read_until(answer, "frame")
            frames = (content for kind, content in later if kind == "frame")
            *_, (step_ms, first, count, rows) = frames
        # More lines may have been announced since the opening.
        fresh = sum(len(content) for kind, content in later if kind == "lines")
        assert len(rows) == len(opening["lines"]) + fresh
        assert count >= 1
        assert 9 < first * step_ms / 1000 < 13
        async with client.get(f"{link}window", params={"from": "0", "to": "9"}) as past:
            window = await past.json()
        cwnd = [line[:3] for line in opening["lines"]].index(["cwnd", "line", "1"])
        steps = window["rows"][cwnd][0]
        assert len(steps) == window["count"] > 50
        assert sum(each for each in steps if each is not None) > 0


async def caught_up(client: aiohttp.ClientSession, link: str, t: float) -> None:
    """Wait until a browser that joins receives flows and everything up to ``t`` at once."""
    now = 0.0
    flows: list[Any] = []
    async with asyncio.timeout(PATIENCE_S):
        while now < t or not flows:
            async with client.get(f"{link}events") as answer:
                opening = (await read_until(answer, "opening"))[0][1]
                now, flows = opening["now"], opening["facts"]["flows"]


async def test_browsers_go_on_to_the_presenters_next_network_and_report_its_end(
    stage: Stage,
) -> None:
    stage.play(5)
    link = await stage.serve()
    async with aiohttp.ClientSession() as client, client.get(f"{link}events") as answer:
        await read_until(answer, "opening")
        stage.sharing.show(Over(reason="another", another=True))
        await asyncio.to_thread(stage.sharing.close)
        await read_until(answer, "another")
        stage.sharing = Sharing("test", "Next")
        stage.restart()
        stage.play(1)
        opening = (await read_until(answer, "opening"))[-1][1]
        assert opening["title"] == "Next"
        async with client.get(f"{link}events") as later:
            assert (await read_until(later, "opening"))[0][1]["title"] == "Next"
        await presented(stage, lambda it: it.watching >= 1)
        ending = asyncio.create_task(stage.over())
        found = await read_until(answer, "over")
        assert "stopped sharing" in found[-1][1]["reason"]
        await ending


async def test_browsers_are_counted(stage: Stage) -> None:
    stage.play(5)
    link = await stage.serve()
    async with aiohttp.ClientSession() as client:
        async with client.get(f"{link}events") as answer:
            await read_until(answer, "opening")
            await counted(stage, 1)
        await counted(stage, 0)


async def counted(stage: Stage, browsers: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while stage.browsers != browsers:
            stage.play(stage.events[stage._next].t)
            await asyncio.sleep(0.01)


NAMES = ["", "events", "window", "looks", *(path.name for path in PAGE.iterdir())]


@pytest.mark.parametrize("token", ["", "x", "0" * 22, "%00", "..", "events"])
async def test_without_the_token_nothing_is_served(stage: Stage, token: str) -> None:
    link = urlsplit(await stage.serve())
    async with aiohttp.ClientSession() as client:
        for name in NAMES:
            async with client.get(f"http://{link.netloc}/{token}/{name}") as answer:
                assert answer.status == 404, name
                assert await answer.read() == b""


async def test_only_pages_from_here_may_ask(stage: Stage) -> None:
    link = await stage.serve()
    place = urlsplit(link).netloc
    cases = {
        # A foreign page whose host name resolves to this server (DNS rebinding).
        421: {"Host": "attacker.example"},
        403: {"Origin": "http://attacker.example"},
    }
    async with aiohttp.ClientSession() as client:
        for status, headers in cases.items():
            async with client.get(link, headers=headers) as answer:
                assert answer.status == status
        async with client.get(f"{link}events", headers={"Sec-Fetch-Site": "cross-site"}) as answer:
            assert answer.status == 403
        async with client.get(link, headers={"Origin": f"http://{place}"}) as answer:
            assert answer.status == 200
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["Referrer-Policy"] == "no-referrer"
        async with client.post(link, data=b"x") as answer:
            assert answer.status == 403
        async with client.post(link, data=b"x", headers={"Origin": f"http://{place}"}) as answer:
            assert answer.status == 405


BOARD = Board(page=1, pages=1, question=7, ask="Which?", choices=("one", "two"), open=True)
VOTER = "0123456789abcdef" * 2
VOTE = b'{"question":7,"choice":1}'


async def vote(
    client: aiohttp.ClientSession,
    link: str,
    body: bytes = VOTE,
    voter: str = VOTER,
    headers: Mapping[str, str] | None = None,
) -> int:
    """Vote as the page does, except for these headers; return the HTTP status."""
    place = urlsplit(link)
    sent = {"Origin": f"http://{place.netloc}", "Content-Type": "application/json"}
    sent |= headers or {}
    kept = {name: value for name, value in sent.items() if value}
    url = f"{link}vote?as={voter}"
    async with client.post(
        url, data=body, headers=kept, skip_auto_headers=["Content-Type"]
    ) as answer:
        assert await answer.read() == b""
        return answer.status


async def test_browsers_vote_each_once_and_are_each_counted(stage: Stage) -> None:
    stage.play(5)
    stage.sharing.show(BOARD)
    link = await stage.serve()
    async with aiohttp.ClientSession() as client, contextlib.AsyncExitStack() as stack:
        for voter in ("1" * 32, "2" * 32, "2" * 32):
            url = f"{link}events?as={voter}"
            await asked(await stack.enter_async_context(client.get(url)))
        assert await vote(client, link, voter="1" * 32) == 204
        assert await vote(client, link, voter="2" * 32) == 204
        assert await vote(client, link, b'{"question":7,"choice":0}', voter="2" * 32) == 204
        await presented(stage, lambda it: it.votes is not None and it.votes.counts == (1, 1))
        assert stage.sharing.votes is not None
        assert stage.sharing.votes.voters == 2
        await presented(stage, lambda it: it.watching == 3)
    await presented(stage, lambda it: it.watching == 0)


async def presented(stage: Stage, done: Callable[[Sharing], bool]) -> None:
    """Wait until a condition holds for the presenter's sharing."""
    async with asyncio.timeout(PATIENCE_S):
        while not done(stage.sharing):
            stage.sharing.listen()
            await asyncio.sleep(0.02)


async def test_no_vote_counts_that_is_not_of_a_page_from_here(stage: Stage) -> None:
    stage.play(5)
    stage.sharing.show(BOARD)
    link = await stage.serve()
    place = urlsplit(link).netloc
    async with aiohttp.ClientSession() as client:
        async with client.get(f"{link}events?as={VOTER}") as answer:
            await asked(answer)
            for headers, status in (
                ({"Origin": ""}, 403),
                ({"Origin": "null"}, 403),
                ({"Origin": "http://attacker.example"}, 403),
                ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
                ({"Host": "attacker.example"}, 421),
                ({"Content-Type": "text/plain"}, 415),
                ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
            ):
                assert await vote(client, link, headers=headers) == status, headers
            wrong = f"http://{place}/{'0' * 22}/"
            assert await vote(client, wrong) == 404
            assert await vote(client, link, voter="1" * 32) == 403
            assert await vote(client, link, VOTE + b" " * 64) == 413
            assert await vote(client, link, b"") == 413
            assert await vote(client, link, b"no vote") == 400
            assert await vote(client, link, b'{"question":6,"choice":1}') == 409
            async with client.get(f"{link}vote?as={VOTER}") as refused:
                assert refused.status == 404
            assert await vote(client, link) == 204
            await presented(stage, lambda it: it.votes is not None and it.votes.voters == 1)
            # Votes no longer count once the answer is revealed.
            stage.sharing.show(replace(BOARD, open=False, right=1.0))
            await until_refused(client, link, 409, before=204)
            await presented(stage, lambda it: it.watching == 1)
            assert stage.sharing.votes is not None
            assert stage.sharing.votes.voters == 1
        # A browser that has left can't vote; until the server sees that it has, the answer is out.
        await until_refused(client, link, 403, before=409)


async def until_refused(
    client: aiohttp.ClientSession, link: str, status: int, *, before: int
) -> None:
    """Vote until that is refused with ``status``; at first the answer may be ``before``."""
    found = 0
    async with asyncio.timeout(PATIENCE_S):
        while found != status:
            found = await vote(client, link)
            assert found in (before, 429, status)


async def test_where_another_user_serves_browsers_they_watch_and_do_not_vote(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_trusted(self: WatchSource, _: int) -> bool:
        raise AssertionError("its server would let it go")

    greeted = sockets.join

    def joined(path: Path, wants: Wants, patience_s: float) -> tuple[socket.socket, Greeting]:
        connection, greeting = greeted(path, wants, patience_s)
        return connection, replace(greeting, seats=0)

    monkeypatch.setattr(sockets, "join", joined)
    monkeypatch.setattr(WatchSource, "report", not_trusted)
    stage.play(5)
    stage.sharing.show(BOARD)
    link = await stage.serve()
    url = f"{link}events?as={VOTER}"
    async with aiohttp.ClientSession() as client, client.get(url) as answer:
        assert (await asked(answer))["votes"] is False
        assert await vote(client, link) == 403


async def test_no_file_but_the_pages_is_served(stage: Stage) -> None:
    link = await stage.serve()
    async with aiohttp.ClientSession() as client:
        for name in (
            "server.py",
            "..%2fserver.py",
            "%2e%2e/serving.py",
            "page/main.js",
            "a" * 3000,
        ):
            async with client.get(URL(f"{link}{name}", encoded=True)) as answer:
                assert answer.status in (400, 404), name


async def test_hostile_messages_reach_nothing_and_stop_nobody(stage: Stage) -> None:
    stage.play(5)
    link = await stage.serve()
    place = urlsplit(link)
    made = random.Random(7)
    async with aiohttp.ClientSession() as client, client.get(f"{link}events") as answer:
        await read_until(answer, "opening")
        await asyncio.to_thread(attack, place.port or 0, place.path, made)
        stage.play(8)
        assert await read_until(answer, "frame")
    assert not stage.sharing.closed


def attack(port: int, path: str, made: random.Random) -> None:
    """Send malformed requests, several over each connection."""
    connection: socket.socket | None = None
    for number in range(HOSTILE):
        if connection is None:
            connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        with contextlib.suppress(OSError):
            connection.sendall(hostile(made, path))
            if number % 3 == 0:
                connection.settimeout(0.01)
                connection.recv(1 << 16)
        if made.random() < 0.05:
            connection.close()
            connection = None
    if connection is not None:
        connection.close()


def hostile(made: random.Random, path: str) -> bytes:
    host = b"Host: 127.0.0.1\r\n"
    junk = made.randbytes(made.randrange(1, 200))
    query = made.choice(
        ["from=nan&to=1", "from=-1e308&to=1e308", "from=x", "to=1", "from=1&to=inf", "from=9&to=1"]
    )
    return made.choice(
        [
            junk,
            b"GET " + path.encode() + junk.hex().encode() + b" HTTP/1.1\r\n" + host + b"\r\n",
            f"GET {path}window?{query} HTTP/1.1\r\n".encode() + host + b"\r\n",
            b"POST "
            + path.encode()
            + b"events HTTP/1.1\r\nContent-Length: 5\r\n"
            + host
            + b"\r\nhallo",
            b"GET /" + junk.hex().encode() + b"/events HTTP/1.1\r\n" + host + b"\r\n",
            b"GET " + path.encode() + b"events HTTP/1.1\r\n" + host + b"Upgrade: websocket\r\n\r\n",
            b"POST "
            + path.encode()
            + b"vote?as="
            + VOTER.encode()
            + b" HTTP/1.1\r\nContent-Type: application/json\r\n"
            + made.choice([b"", b"Origin: http://127.0.0.1\r\n"])
            + made.choice([b"Content-Length: 25\r\n", b"Content-Length: -1\r\n", b""])
            + host
            + b"\r\n"
            + VOTE,
            b'{"event":"command","command":"stop"}\n',
            b"GET / HTTP/1.1\r\n" + b"A: " + b"b" * made.randrange(9000) + b"\r\n\r\n",
        ]
    )


def odd_requests(path: str, made: random.Random) -> list[bytes]:
    """Return requests that are none, or no browser's, and random ones like them."""
    host = b"Host: 127.0.0.1\r\n"
    page = path.encode()
    targets = [
        b"*",
        b"127.0.0.1:80",
        b"",
        b"/",
        b"//",
        b"/%",
        b"?",
        b"http://[",
        b"http://a/",
        page,
    ]
    targets += [page + each for each in (b"events/x", b"window?from=%ff&to=1", b"%2e%2e/", b"\xff")]
    methods = [b"OPTIONS", b"CONNECT", b"GET", b"HEAD", b"POST", b"PUT", b"TRACE", b"BREW", b"get"]
    headers = [b"Origin: http://[\r\n", b"Origin: //[\r\n", b"Origin: \xff\r\n", b"Host: [\r\n"]
    headers += [b"Content-Length: -1\r\n", b"Content-Length: 9" + b"9" * 40 + b"\r\n"]
    headers += [b"Transfer-Encoding: x\r\n", b"Expect: 100-continue\r\n", b"Expect: a\r\n"]
    headers += [
        b"Content-Type: \xff;=\r\n",
        b"A\r\n",
        b" a: b\r\n",
        b"Range: x\r\n",
        b"Cookie: =;\r\n",
    ]
    headers += [b"If-Modified-Since: x\r\n", b"Upgrade: websocket\r\nConnection: Upgrade\r\n"]
    headers += [b"Content-Encoding: gzip\r\n", b"A: " + b"b" * 9000 + b"\r\n", b"A: b\r\n" * 200]
    versions = [b"HTTP/1.1", b"HTTP/1.0", b"HTTP/9.9", b"HTTP/2", b""]
    found = [
        *(b"%b %b HTTP/1.1\r\n%b\r\n" % (way, to, host) for way in methods for to in targets),
        *(b"GET %b HTTP/1.1\r\n%b%b\r\n" % (page, host, each) for each in headers),
        *(b"POST %bvote HTTP/1.1\r\n%b%b\r\n" % (page, host, each) for each in headers),
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
    ]
    for _ in range(200):
        parts = (made.choice(methods), made.choice(targets), made.choice(versions))
        fields = b"".join(made.sample(headers, made.randrange(4)))
        found.append(b" ".join(parts) + b"\r\n" + made.choice([host, b""]) + fields + b"\r\n")
    return found


async def test_every_answer_is_ours(stage: Stage) -> None:
    """No request is answered with an error of this program, nor with the library's words."""
    stage.play(5)
    link = urlsplit(await stage.serve())
    answered = 0
    for request in odd_requests(link.path, random.Random(5)):
        if b" %bevents " % link.path.encode() in request:
            continue
        reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
        writer.write(request)
        head = b""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            async with asyncio.timeout(PATIENCE_S):
                head = await reader.readuntil(b"\r\n\r\n")
                if head.startswith(b"HTTP/1.1 100 "):
                    head = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        if not head:
            continue
        answered += 1
        status = int(head.split()[1])
        assert status < 500, request
        assert b"Python" not in head, request
        if status != 100:
            assert b"\r\nServer: ccplay\r\n" in head, request
            assert b"\r\nContent-Security-Policy: default-src 'none'" in head, request
        if status >= 400 and not request.startswith(b"HEAD"):
            assert b"\r\nContent-Length: 0\r\n" in head, request
    assert answered > 250


async def test_slow_requests_and_too_many_connections_are_closed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "_REQUEST_S", 0.5)
    monkeypatch.setattr(pages, "MOST_CONNECTIONS", 3)
    place = urlsplit(await stage.serve())
    async with asyncio.timeout(PATIENCE_S):
        held = [await asyncio.open_connection("127.0.0.1", place.port) for _ in range(4)]
        for _, writer in held[:3]:
            writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nA: b")
        # The fourth is closed at once, the others once they took too long.
        with contextlib.suppress(ConnectionError):
            assert not await held[3][0].read()
        for reader, _ in held[:3]:
            assert not await reader.read()
        for _, writer in held:
            writer.close()
        async with aiohttp.ClientSession() as client, client.get(stage.link) as answer:
            assert answer.status == 200


async def test_an_address_in_use_is_reported(stage: Stage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CcplayError, match=rf"127\.0\.0\.1:{port}.*choose another"):
            await stage.serve(port)
