"""A discipline of the user's own on a real path: saved, at fault and mended under a flow."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from ccplay.lab.custom import trial
from ccplay.lab.custom.trial import try_in_process
from ccplay.model.commands import Build, SetQdisc
from ccplay.model.events import Applied, LinkChanged, Log
from ccplay.model.network import Topology
from ccplay.model.samples import Sweep
from ccplay.model.values import LinkSetting, Qdisc
from ccplay.session import launch
from ccplay.traffic.udp import StartUdp, Udp
from tests.lab.conftest import Events, RunningLab, all_arrived, forked
from tests.unit.custom.sources import FIFO, POP, PUSH, PUSH_LINE, instead

pytestmark = pytest.mark.xdist_group("software")

ROOMY = FIFO.replace("100 packets", "5000 packets")


class Seen(Events):
    """The events of a lab, and questions to them."""

    def texts(self, level: str) -> list[str]:
        return [each.text for each in self.of(Log) if each.level == level]

    def renewed(self) -> list[Applied]:
        return [each for each in self.of(Applied) if each.renewed]

    def kinds(self) -> list[str]:
        """Return the kinds of queues in front of the link, in the order of their use."""
        found = [
            each.setting.qdisc.kind
            for each in self.of(LinkChanged)
            if each.link == "r->h2" and each.setting.qdisc is not None
        ]
        return [kind for at, kind in enumerate(found) if not at or found[at - 1] != kind]

    def sweep(self) -> Sweep:
        return next(self.sweeps())

    def sweeps(self) -> Iterator[Sweep]:
        """Return the sweeps with queues, the newest first."""
        return (each for each in reversed(self.of(Sweep)) if each.qdisc is not None)


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
        lab.send(StartUdp(rate_bps=11_000_000, packet_bytes=1400, duration_s=10.0, monitor=True))
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


async def test_one_that_fails_at_once_is_never_said_to_be_in_use(tmp_path: Path) -> None:
    """It fails on the packets that wait: the log has the fault alone, whose FIFO serves since."""
    file, seen = tmp_path / "mine.py", Seen()
    file.write_text(ROOMY)
    async with under(file, seen) as lab:
        lab.send(StartUdp(rate_bps=12_000_000, packet_bytes=1400, duration_s=2.0, monitor=True))
        await lab.until(lambda _: seen.sweep().queue_own.get("mine_waiting_packets", [0])[0])
        file.write_text(instead(PUSH, "self.queue.push(1 / 0)"))
        await lab.until(lambda _: seen.kinds() == ["mine.py", "pfifo"])
        file.write_text("def x(:\n")
        await lab.until(lambda _: len(seen.texts("error")) > 1)
        fault, refused = seen.texts("error")
        assert fault.startswith("link r->h2: mine.py:14: ZeroDivisionError")
        assert fault.endswith("a FIFO has taken its place")
        assert refused.startswith("mine can't be used yet: mine.py:1: SyntaxError")
        assert not seen.renewed()
        assert seen.texts("info") == []


def late(*lines: str) -> str:
    """Return a discipline that passes its trial and then does something else under traffic."""
    return instead(POP, "if self.qlen > 50:", *(f"    {each}" for each in lines), POP.strip())


async def test_one_that_ends_its_process_is_replaced_by_a_fifo(tmp_path: Path) -> None:
    """By a signal, under traffic: the log has its line, and the mended file serves again."""
    file, seen = tmp_path / "mine.py", Seen()
    file.write_text(late("import ctypes", "ctypes.string_at(0)"))
    async with under(file, seen) as lab:
        lab.send(StartUdp(rate_bps=12_000_000, packet_bytes=1400, duration_s=3.0, monitor=True))
        await lab.until(lambda _: seen.kinds() == ["mine.py", "pfifo"])
        (fault,) = seen.texts("error")
        assert fault.startswith("link r->h2: mine.py:21: it ended its process by signal 11")
        assert fault.endswith("waited in software are lost, and a FIFO takes its place")
        await lab.until(lambda _: seen.sweep().qdisc.kind[0] == "pfifo")  # type: ignore[union-attr]
        before = seen.sweep().qdisc
        await lab.until(lambda _: seen.sweep().qdisc.packets[0] > before.packets[0])  # type: ignore[union-attr]
        file.write_text(ROOMY)
        await lab.until(lambda _: seen.kinds() == ["mine.py", "pfifo", "mine.py"])
        assert not seen.texts("warning")


async def test_one_that_would_end_its_process_is_refused_while_packets_wait(tmp_path: Path) -> None:
    """The version before it stays in use, and no packet is lost."""
    file, seen = tmp_path / "mine.py", Seen()
    file.write_text(ROOMY)
    async with under(file, seen) as lab:
        lab.send(StartUdp(rate_bps=12_000_000, packet_bytes=1400, duration_s=3.0, monitor=True))
        await lab.until(lambda _: seen.sweep().queue_own.get("mine_waiting_packets", [0])[0])
        for number, (attack, said) in enumerate(
            [
                ("import ctypes; ctypes.string_at(0)", "1: it ended its process by signal 11"),
                ("import os; os.fork()", "1: PermissionError"),
                ("import os; os._exit(3)", "1: os._exit(3) would end the process"),
                ("big = bytearray(8 << 30)", "1: MemoryError: a discipline may use 1 GiB"),
            ]
        ):
            file.write_text(f"{attack}\n{ROOMY}")
            await lab.until(lambda _, seen=seen, number=number: len(seen.texts("error")) > number)  # type: ignore[misc]
            found = seen.texts("error")[number]
            assert found.startswith(f"mine keeps the old version: mine.py:{said}")
        await lab.until(lambda state: "u1" in state.of(Udp) and state.of(Udp)["u1"].ended)
        assert all_arrived(lab.state.of(Udp)["u1"])
        assert seen.kinds() == ["mine.py"]


ATTACKS = {
    "exits": (("import os; os._exit(3)",), "os._exit(3) would end the process"),
    "exits behind Python": (
        ("import ctypes; ctypes.CDLL(None)._exit(3)",),
        "it ended its process with exit code 3",
    ),
    "crashes": (("import ctypes; ctypes.string_at(0)",), "it ended its process by signal 11"),
    "takes memory": (("big = bytearray(8 << 30)",), "MemoryError: a discipline may use 1 GiB"),
    "leaks memory": (
        ("kept = []", "while True: kept.append(bytes(64 << 20))"),
        "MemoryError: a discipline may use 1 GiB",
    ),
    "forks": (("import os; os.fork()",), "PermissionError"),
    "starts a program": (
        ("import subprocess; subprocess.run(['sleep', '99'])",),
        "PermissionError",
    ),
    "kills": (("import os; os.kill(os.getppid(), 9)",), "PermissionError"),
    "computes in C": (
        ("import itertools; sum(itertools.repeat(1))",),
        "it is still computing after 2 s, in code that can't be interrupted",
    ),
    "stops the timer": (
        ("import signal; signal.setitimer(signal.ITIMER_REAL, 0)", "while True: pass"),
        "it is still computing after 2 s",
    ),
}


@pytest.mark.parametrize("where", ["at load", "at a packet"])
@pytest.mark.parametrize(("attack", "said"), ATTACKS.values(), ids=ATTACKS)
def test_an_attack_ends_a_trial_with_one_line(
    attack: tuple[str, ...], said: str, where: str
) -> None:
    """No child is left, and the trial's own process and memory are not touched."""
    source = "\n".join([*attack, FIFO]) if where == "at load" else instead(POP, *attack)
    before = psutil.Process().children()
    (mistake,) = try_in_process("mine", source).mistakes
    line = len(attack) if where == "at load" else PUSH_LINE + 4 + len(attack)
    # What the C library ends has no line.
    place = "mine.py" if "exit code" in said else f"mine.py:{line}"
    assert str(mistake).startswith(f"{place}: {said}")
    assert "\n" not in str(mistake)
    assert set(psutil.Process().children()) <= set(before)


def test_a_trial_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call is short, but there are too many."""
    monkeypatch.setattr(trial, "_LONGEST_S", 0.3)
    (mistake,) = try_in_process("mine", instead(POP, "import time; time.sleep(0.1)")).mistakes
    assert str(mistake) == "mine.py: its trial takes longer than 0.3 s"


def test_what_a_trial_prints_is_kept_from_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    prints = instead(POP, "print('\\x1b]0;', self.qlen)", POP.strip())
    assert try_in_process("mine", prints).printed[0] == "\x1b]0; 1"
    assert capfd.readouterr() == ("", "")


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
