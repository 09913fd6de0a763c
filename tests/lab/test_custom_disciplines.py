"""A discipline of the user's own on a real path: saved, at fault and mended under a flow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ccplay.model.commands import Build, SetQdisc
from ccplay.model.events import Applied, LinkChanged, Log
from ccplay.model.network import Topology
from ccplay.model.samples import Sweep
from ccplay.model.traffic_commands import StartUdp
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.session import launch
from ccplay.state.udp import Udp
from tests.lab.conftest import RunningLab, all_arrived, forked
from tests.unit.custom.sources import FIFO, POP, instead

pytestmark = pytest.mark.xdist_group("software")

ROOMY = FIFO.replace("100 packets", "5000 packets")


class Seen:
    """Events in their order; also the sink that receives them."""

    def __init__(self) -> None:
        self.events: list[object] = []

    def put(self, event: object) -> None:
        self.events.append(event)

    def close(self) -> None:
        pass

    def texts(self, level: str) -> list[str]:
        return [each.text for each in self.logs() if each.level == level]

    def logs(self) -> Iterator[Log]:
        return (each for each in self.events if isinstance(each, Log))

    def renewed(self) -> list[Applied]:
        return [each for each in self.events if isinstance(each, Applied) and each.renewed]

    def kinds(self) -> list[str]:
        """Return the kinds of queues in front of the link, in the order of their use."""
        found = [
            each.setting.qdisc.kind
            for each in self.events
            if isinstance(each, LinkChanged)
            and each.link == "r->h2"
            and each.setting.qdisc is not None
        ]
        return [kind for at, kind in enumerate(found) if not at or found[at - 1] != kind]

    def sweep(self) -> Sweep:
        return next(self.sweeps())

    def sweeps(self) -> Iterator[Sweep]:
        """Yield sweeps with queues, the newest first."""
        for each in reversed(self.events):
            if isinstance(each, Sweep) and each.qdisc is not None:
                yield each


@asynccontextmanager
async def under(file: Path, seen: Seen) -> AsyncIterator[RunningLab]:
    """Yield a lab whose bottleneck has a file's discipline, under more traffic than it can send."""
    link = LinkSetting(rate=10_000_000, delay_us=1_000, qdisc=Qdisc(kind="pfifo"))
    own = LinkSetting(qdisc=Qdisc(kind="mine"))
    build = Build(topology=Topology(kind="linear"), links={"bottleneck": link, "r->h2": own})
    lab = RunningLab(forked(launch.lab_argv(None, None, [file]), build), seen)
    try:
        await lab.until(lambda state: state.phase == "ready" and any(seen.sweeps()))
        yield lab
    finally:
        await lab.close()


async def test_saving_it_swaps_it_and_no_packet_is_lost(tmp_path: Path) -> None:
    """Unchanged, with a mistake, with an exception, and repaired; packets wait all the time."""
    file, seen = tmp_path / "mine.py", Seen()
    file.write_text(ROOMY)
    async with under(file, seen) as lab:
        assert seen.kinds() == ["mine.py"]
        lab.send(StartUdp(rate_bps=12_000_000, packet_bytes=1400, duration_s=4.0, monitor=True))
        await lab.until(lambda _: seen.sweep().queue_own.get("mine_waiting_packets", [0])[0])

        file.write_text(ROOMY + "# saved\n")
        await lab.until(lambda _: len(seen.renewed()) == 1)
        (renewed,) = seen.renewed()
        assert renewed.command == SetQdisc(link="r->h2", qdisc=Qdisc(kind="mine.py"))
        assert renewed.took_s is not None

        file.write_text("def x(:\n")
        await lab.until(lambda _: seen.texts("error"))
        assert "mine keeps the old version: mine.py:1: SyntaxError" in seen.texts("error")[0]

        failing = instead(POP, "print('about to fail')", "return 1 / 0")
        file.write_text(failing.replace("100 packets", "5000 packets"))
        await lab.until(lambda _: len(seen.texts("error")) > 1)
        fault = "link r->h2: mine.py:20: ZeroDivisionError: division by zero; a FIFO"
        assert seen.texts("error")[1].startswith(fault)
        await lab.until(lambda _: "printed: about to fail" in seen.texts("info"))
        await lab.until(lambda _: seen.kinds() == ["mine.py", "pfifo"])
        await lab.until(lambda _: seen.sweep().qdisc.kind[0] == "pfifo")  # type: ignore[union-attr]

        file.write_text(ROOMY)
        await lab.until(lambda _: seen.kinds() == ["mine.py", "pfifo", "mine.py"])
        await lab.until(lambda state: "u1" in state.of(Udp) and state.of(Udp)["u1"].ended)
        assert all_arrived(lab.state.of(Udp)["u1"])
        now = seen.sweep().qdisc
        assert now is not None
        assert now.drops[0] == 0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("return None",), "mine.py:18: dequeue has returned None for 0.5 s while "),
        (("while True:", "    now += 1"), "TimeoutError: it is still computing after 0.5 s"),
    ],
)
async def test_one_that_sends_nothing_is_replaced(
    tmp_path: Path, wrong: tuple[str, ...], said: str
) -> None:
    """It holds packets forever, or computes forever; the waiting packets then leave."""
    file, seen = tmp_path / "mine.py", Seen()
    file.write_text(instead(POP, *wrong))
    async with under(file, seen) as lab:
        lab.send(StartUdp(rate_bps=1_000_000, packet_bytes=1000, duration_s=1.0, monitor=True))
        await lab.until(lambda _: seen.texts("error"))
        assert said in seen.texts("error")[0]
        assert "a FIFO has taken its place" in seen.texts("error")[0]
        await lab.until(lambda state: "u1" in state.of(Udp) and state.of(Udp)["u1"].ended)
        assert all_arrived(lab.state.of(Udp)["u1"])


async def test_a_lab_does_not_start_with_a_file_that_is_no_python(tmp_path: Path) -> None:
    file, seen = tmp_path / "mine.py", Seen()
    file.write_text("def x(:\n")
    build = Build(topology=Topology(kind="linear"))
    lab = RunningLab(forked(launch.lab_argv(None, None, [file]), build), seen)
    with pytest.raises(AssertionError, match="the lab ended"):
        await lab.until(lambda _: False)
    await lab.close()
    assert lab.session.error == "mine.py:1: SyntaxError: invalid syntax"
