"""A printer of progress never waits for its reader, and drops nothing that is read in time."""

import os
import threading

from ccplay.report.terminal.progress_display import Printer


def read_all(fd: int, into: list[bytes]) -> None:
    """Read a pipe to its end."""
    while data := os.read(fd, 1 << 16):
        into.append(data)


def test_everything_that_is_read_is_written_in_its_order() -> None:
    reader, writer = os.pipe()
    with Printer(writer, "utf-8", None) as printer:
        # Rich sometimes writes an empty string.
        for text in ("", "one ", "", "zwö ", "three"):
            printer.write(text)
            printer.drain(None)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as file:
        assert file.read() == "one zwö three"


def test_a_spectator_who_reads_nothing_makes_nobody_wait_and_learns_what_is_missing() -> None:
    """Of 10 MB most is dropped, in whole pieces: a pipe holds 64 KiB."""
    reader, writer = os.pipe()
    with Printer(writer, "utf-8", patience_s=0.0) as printer:
        for number in range(10_000):
            printer.write(f"{number:>999}\n")
        read: list[bytes] = []
        thread = threading.Thread(target=read_all, args=(reader, read))
        thread.start()
        printer.drain(None)
        printer.write("after\n")
        printer.drain(None)
    os.close(writer)
    thread.join()
    os.close(reader)
    lines = b"".join(read).decode().splitlines()
    assert lines[-1] == "after"
    assert "not read" in lines[-2]
    numbers = [int(line) for line in lines[:-2]]
    assert numbers == sorted(numbers)
    assert 60 < len(numbers) < 1_000


def test_a_reader_that_has_gone_ends_nothing() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with Printer(writer, "utf-8", None) as printer:
        for _ in range(3):
            printer.write("one")
            printer.drain(None)
        assert printer._size == 0
    os.close(writer)
