"""What a cluster stands on: keys, packed runs, the spool, certificates and who is refused."""

import asyncio
import io
import os
import time
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("distributed", reason="ccplay[cluster] is not installed")

from ccplay.analysis.summary import summarise
from ccplay.errors import LabError, RecordingError, UsageError
from ccplay.experiment.cluster import distribution, scheduler, worker
from ccplay.experiment.cluster.worker import Spool, key_of, pack, unpack
from ccplay.experiment.plan import plan_runs
from ccplay.experiment.trial import RunOrder, RunOutcome
from ccplay.model.moving import Trace
from ccplay.state.lab_state import LabState
from ccplay.trace import delivery
from ccplay.trace.content import TraceError
from tests.unit.test_schedules import scenario

EXPERIMENT = "0123456789abcdef"


def order(repeat: int = 1, attempt: int = 1) -> RunOrder:
    run = plan_runs(scenario("a", repeats=3))[repeat - 1]
    return RunOrder(scenario="t.toml", case=run.played, repeat=repeat, attempt=attempt)


def finished() -> RunOutcome:
    return RunOutcome(result=summarise(LabState(), "a"), whole=True)


def test_an_order_is_data_that_survives_the_wire() -> None:
    there = msgspec.json.decode(msgspec.json.encode(order(2)), type=RunOrder)
    assert there == order(2)
    assert there.case.build.seed == order(1).case.build.seed + 1


def test_a_run_has_one_name_and_every_other_run_another() -> None:
    first = key_of(EXPERIMENT, order(), {})
    assert first == key_of(EXPERIMENT, order(), {})
    others = [
        key_of("f" * 16, order(), {}),
        key_of(EXPERIMENT, order(2), {}),
        key_of(EXPERIMENT, order(attempt=2), {}),
        key_of(EXPERIMENT, order(), {"mine.bpf.c": b"int x;"}),
        key_of(EXPERIMENT, order(), {"mine.bpf.c": b"int y;"}),
    ]
    assert len({first, *others}) == 6


def test_a_trace_comes_with_the_run_and_is_what_its_name_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.up").write_text("4\n8\n")
    monkeypatch.setattr(delivery, "files", {})
    trace = delivery.load(Trace(rate="mine.up"), tmp_path, {})
    sent = delivery.packed_files()
    # On the worker nothing has been read.
    monkeypatch.setattr(delivery, "files", {})
    assert not [*delivery.data_of(trace.digest)]
    worker.admit_files(sent)
    assert [each.digest for each in delivery.data_of(trace.digest)] == [trace.digest]
    ((_, content),) = sent.items()
    for name, said in (("0" * 64, "differs"), ("1" * 64, "unpacked")):
        with pytest.raises(TraceError, match=said):
            worker.admit_files({f"{name}.trace": content if said == "differs" else b"xyz"})


def test_a_packed_run_is_unpacked_with_its_recording(tmp_path: Path) -> None:
    content = os.urandom(100) * 50_000
    (tmp_path / "run").write_bytes(content)
    packed = pack(finished(), tmp_path / "run")
    assert len(packed) < len(content) / 10
    file = io.BytesIO()
    assert unpack(packed, file) == finished()
    assert file.getvalue() == content
    assert unpack(pack(finished(), tmp_path / "none"), file) == finished()
    for broken in (b"", b"\0\0\0\2{}", packed[:50], b"\xff" * 9):
        with pytest.raises(RecordingError, match="is not a finished run"):
            unpack(broken, io.BytesIO())


async def test_a_cancelled_wait_for_a_run_ends_no_other_in_the_same_fetch() -> None:
    fetch: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def run() -> bytes:
        return await fetch

    waits = [asyncio.create_task(distribution._await_task(run())) for _ in range(2)]
    await asyncio.sleep(0)
    waits[0].cancel()
    assert await waits[1] is None
    assert waits[0].cancelled()


def test_a_spool_keeps_runs_until_they_are_fetched(tmp_path: Path) -> None:
    spool, key = Spool(tmp_path / "spool"), key_of(EXPERIMENT, order(), {})
    assert spool.fetch(key) is None
    spool.keep(key, b"packed")
    # A worker that was killed in between finds it again.
    again = Spool(tmp_path / "spool")
    assert (again.fetch(key), again.keys(EXPERIMENT)) == (b"packed", [key])
    assert again.keys("f" * 16) == []
    again.forget([key])
    assert spool.fetch(key) is None


def test_a_spool_deletes_only_what_is_old_and_its_own(tmp_path: Path) -> None:
    spool, key = Spool(tmp_path), key_of(EXPERIMENT, order(), {})
    spool.keep(key, b"packed")
    (tmp_path / "letter").write_text("mine")
    old = time.time() - 40 * 86_400
    for name in (key, "letter"):
        os.utime(tmp_path / name, (old, old))
    assert Spool(tmp_path).keys(EXPERIMENT) == []
    assert (tmp_path / "letter").exists()


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "/etc/passwd"])
def test_a_file_that_came_along_has_no_path(tmp_path: Path, name: str) -> None:
    spool = Spool(tmp_path / "spool")
    with pytest.raises(LabError, match="is not a file name"):
        spool.place(name, b"x")
    with pytest.raises(LabError, match="is not the key"):
        spool.forget([f"../{name}"])


def test_plain_tcp_stays_on_this_machine() -> None:
    assert scheduler.security_for("tcp://127.0.0.1:8786", None) is None
    assert scheduler.security_for("tcp://[::1]:8786", None) is None
    for address in ("tcp://10.0.0.1:8786", "tcp://node1:8786", "tcp://0.0.0.0:8786"):
        with pytest.raises(UsageError, match="anyone on the network"):
            scheduler.security_for(address, None)
    for address in ("http://node1:8786", "node1", "tls://node1", "tls://:1", "tcp://x:y"):
        with pytest.raises(UsageError, match="is not an address of a scheduler"):
            scheduler.security_for(address, None)


def test_tls_needs_the_certificate_of_the_cluster(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ccplay cluster certificate"):
        scheduler.security_for("tls://node1:8786", tmp_path)
    paths = scheduler.write_certificate(tmp_path / "cluster")
    assert [path.stat().st_mode & 0o777 for path in paths] == [0o600, 0o600]
    made = scheduler.security_for("tls://node1:8786", tmp_path / "cluster")
    assert made is not None
    assert made.require_encryption
    with pytest.raises(UsageError, match="already exists"):
        scheduler.write_certificate(tmp_path / "cluster")


@pytest.mark.parametrize(
    "where", ["local:", "local:0", "local:999", "nowhere", "ssh:", "ssh:/none"]
)
async def test_a_place_that_does_not_exist_is_refused(where: str) -> None:
    with pytest.raises(UsageError):
        async with scheduler.open_scheduler(where, 1, None, lambda _: None):
            pass


def test_hosts_are_read_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("# ours\nnode1\nme@node2  # the fast one\n\n")
    assert scheduler.read_hosts(path) == ["node1", "me@node2"]
    for text, told in (("-oProxyCommand=x", "line 1"), ("a b", "line 1"), ("# none", "no hosts")):
        path.write_text(text)
        with pytest.raises(UsageError, match=told):
            scheduler.read_hosts(path)
