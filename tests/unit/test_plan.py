"""A plan reads the same from a dump of many sockets as reading each message by itself."""

import struct
from collections.abc import Callable, Iterator

import pytest

from ccplay.lab import inet_diag
from ccplay.lab.connection import INFO_SIZE, Connection, in_units
from ccplay.lab.inet_diag import LEAST, DiagSocket, columns
from tests.unit.test_probe import DONE, TWO_CONNECTIONS, Answers, attribute, record

Change = Callable[[list[bytearray]], list[bytearray]]

SOCKETS = 3 * LEAST
COOKIE, CWND, NAME = 60, 80, b"bbr\0"
BBR = attribute(16, struct.pack("=QIIII", 1_250_000, 20_000, 256, 512, 0)[:20])


def messages(ending: bytes = b"") -> list[bytearray]:
    """Return the record's message for each of many sockets, with a port and cookie of its own."""
    plain = record(TWO_CONNECTIONS)
    length = struct.unpack_from("=I", plain)[0]
    found = []
    for number in range(SOCKETS):
        message = bytearray(plain[:length] + ending)
        struct.pack_into("=I", message, 0, len(message))
        struct.pack_into("!HH", message, 20, 20000 + number, 5201)
        struct.pack_into("=Q", message, COOKIE, 1 << 40 | number)
        found.append(message)
    return found


def info_at(message: bytes | bytearray) -> int:
    """Return the offset of a message's ``tcp_info``, found without the probe's code."""
    at = 88
    while struct.unpack_from("=H", message, at + 2)[0] != 2:
        at += struct.unpack_from("=H", message, at)[0] + 3 & ~3
    return at + 4


def put(message: bytearray, offset: int, code: str, value: int) -> None:
    """Set a field of a message's ``tcp_info``."""
    struct.pack_into("=" + code, message, info_at(message) + offset, value)


class Kernel(Answers):
    """A netlink socket that answers each request with its current sockets."""

    def __init__(self, sockets: list[bytearray]) -> None:
        super().__init__()
        self.sockets = sockets

    def send(self, *_: object) -> int:
        parts = [b"".join(self.sockets[at : at + 50]) for at in range(0, len(self.sockets), 50)]
        self.answers = [*parts, DONE]
        return 0


class Reader:
    """Reads a kernel's sockets repeatedly, with one ``DiagSocket``."""

    def __init__(self, kernel: Kernel, wanted: int = SOCKETS) -> None:
        self.diag = DiagSocket(lambda *_: kernel)
        self.tracked = [Connection(f"{n}", 20000 + n, 5201) for n in range(wanted)]
        self.wanted = {each.key: each for each in self.tracked}

    def read(self) -> dict[str, dict[str, int | None]]:
        """Return each connection's fields and variables, by its name."""
        found = self.diag.dump(self.wanted)
        if self.diag.plan is not None:
            fields, own = self.diag.plan.sweep()
        else:
            fields = {name: in_units(name, each) for name, each in columns(found).items()}
            own = inet_diag.variable_columns([each.own for each in found])
        table = fields | own
        assert all(len(column) == len(found) for column in table.values())
        rows = {
            each.name: {name: column[row] for name, column in table.items()}
            for row, each in enumerate(found)
        }
        for each in found:
            assert each.field("cwnd") == rows[each.name]["cwnd"]
            rows[each.name]["cc"] = int.from_bytes(each.cc, "big")
        return rows


@pytest.fixture(params=[messages(), messages(attribute(23, bytes(6))), messages(BBR)])
def kernel(request: pytest.FixtureRequest) -> Iterator[Kernel]:
    """Yield a kernel with plain messages, with another attribute, or with BBR's own values."""
    kernel = Kernel([bytearray(each) for each in request.param])
    yield kernel
    kernel.close()


def planned(kernel: Kernel, wanted: int = SOCKETS) -> Reader:
    """Return a reader with a plan, after three dumps; the first shows whether to ask for BBR's."""
    reader = Reader(kernel, wanted)
    for _ in range(3):
        reader.read()
    assert reader.diag.plan is not None
    return reader


def same(reader: Reader, kernel: Kernel, wanted: int = SOCKETS) -> dict[str, dict[str, int | None]]:
    """Assert that a reader with a plan reads the same as a new one without; return the values."""
    fresh = Reader(kernel, wanted)
    for each, known in zip(fresh.tracked, reader.tracked, strict=True):
        each.cookie = known.cookie
    fresh.diag._own = reader.diag._own
    expected = fresh.read()
    assert fresh.diag.plan is None
    found = reader.read()
    assert found == expected
    return found


def test_what_changes_is_read(kernel: Kernel) -> None:
    reader = planned(kernel)
    for step in range(3):
        for number, message in enumerate(kernel.sockets[step::3]):
            put(message, CWND, "I", 1000 + number)
            put(message, 104, "Q", (1 << 33) + number if step else (1 << 64) - 1)
            put(message, 148, "I", 20_000 + number if step else (1 << 32) - 1)
            put(message, 76, "I", 70 + number if step else 0x7FFFFFFF)
            put(message, 1, "B", number % 5)
        found = same(reader, kernel)
        assert reader.diag.plan is not None
        assert len(found) == SOCKETS
        assert found[f"{step}"]["cwnd"] == 1000
        assert found["0"]["pacing_rate"] == 0
        assert found["0"]["ssthresh"] is None


def gone(sockets: list[bytearray]) -> list[bytearray]:
    """Close one socket."""
    return sockets[:70] + sockets[71:]


def another(sockets: list[bytearray]) -> list[bytearray]:
    """Close one socket and open another in its place, with the same ports."""
    struct.pack_into("=Q", sockets[70], COOKIE, 7)
    return sockets


def moved(sockets: list[bytearray]) -> list[bytearray]:
    """List the sockets in another order."""
    return [*sockets[1:], sockets[0]]


def renamed(sockets: list[bytearray]) -> list[bytearray]:
    """Give one socket another algorithm, with a name of equal length."""
    at = sockets[70].index(NAME)
    sockets[70][at : at + 3] = b"abc"
    return sockets


def longer(sockets: list[bytearray]) -> list[bytearray]:
    """Insert an attribute before the ``tcp_info`` of one socket."""
    at = info_at(sockets[70]) - 4
    sockets[70][at:at] = attribute(15, bytes(4))
    struct.pack_into("=I", sockets[70], 0, len(sockets[70]))
    return sockets


def shifted(sockets: list[bytearray]) -> list[bytearray]:
    """Reorder the attributes of one message without a change of its length."""
    message = sockets[70]
    info, end = info_at(message), message.index(NAME) - 4
    message[info - 12 : end] = message[info - 4 : end] + message[info - 12 : info - 4]
    return sockets


@pytest.mark.parametrize("change", [gone, another, moved, renamed, longer, shifted])
def test_another_set_of_sockets_is_noticed(kernel: Kernel, change: Change) -> None:
    reader = planned(kernel)
    kernel.sockets = change([bytearray(each) for each in kernel.sockets])
    for message in kernel.sockets:
        put(message, CWND, "I", 77)
    assert same(reader, kernel)["3"]["cwnd"] == 77
    assert reader.diag.plan is None
    same(reader, kernel)
    same(reader, kernel)
    assert reader.diag.plan is not None


def test_what_nobody_wants_is_left_out(kernel: Kernel) -> None:
    """Sockets that nobody wants are skipped between wanted ones; one message is longer."""
    kernel.sockets = longer([bytearray(each) for each in kernel.sockets])
    order = sorted(range(SOCKETS), key=lambda number: number * 7919 % SOCKETS)
    kernel.sockets = [kernel.sockets[number] for number in order]
    reader = planned(kernel, wanted=2 * LEAST)
    put(kernel.sockets[order.index(70)], CWND, "I", 55)
    found = same(reader, kernel, wanted=2 * LEAST)
    assert reader.diag.plan is not None
    assert len(found) == 2 * LEAST
    assert found["70"]["cwnd"] == 55


def test_a_wanted_socket_in_the_place_of_another_is_noticed(kernel: Kernel) -> None:
    reader = planned(kernel, wanted=2 * LEAST)
    waiting = Connection("late", 9, 9)
    reader.diag.forget()
    reader.tracked.append(waiting)
    reader.wanted[waiting.key] = waiting
    for _ in range(3):
        reader.read()
    assert reader.diag.plan is not None
    struct.pack_into("!HH", kernel.sockets[-1], 20, 9, 9)
    struct.pack_into("=Q", kernel.sockets[-1], COOKIE, 99)
    assert "late" in reader.read()


def test_algorithms_with_variables_stand_beside_those_without() -> None:
    kernel = Kernel([*messages()[:100], *messages(BBR)[100:]])
    reader = planned(kernel)
    found = same(reader, kernel)
    assert reader.diag.plan is not None
    kernel.close()
    assert found["0"]["bbr_bw_bps"] is None
    assert found["150"]["bbr_bw_bps"] == 10_000_000


def test_what_was_read_last_stays_when_a_socket_is_gone(kernel: Kernel) -> None:
    reader = planned(kernel)
    put(kernel.sockets[70], CWND, "I", 33)
    reader.read()
    last = reader.tracked[70]
    assert len(last.info) == INFO_SIZE
    kernel.sockets = gone(kernel.sockets)
    assert "70" not in reader.read()
    assert last.field("cwnd") == 33


def test_an_error_within_a_dump_is_raised(kernel: Kernel) -> None:
    reader = planned(kernel)
    refusal = struct.pack("=IHHIIi", 20, 3, 2, 1, 0, -1)
    kernel.send = lambda *_: kernel.answers.extend([refusal]) or 0  # type: ignore[method-assign, func-returns-value]
    with pytest.raises(PermissionError):
        reader.read()
