"""Sources of disciplines: a FIFO of a few lines, and faulty variants of it."""

FIFO = '''"""A FIFO: drops at its tail."""

from ccplay.lab.disciplines.base import Discipline, Fifo

PARAMETERS = {"limit": "100 packets"}


class Mine(Discipline):
    def configure(self, options):
        self.queue, self.limit = Fifo(), options.count("limit")

    def enqueue(self, packet, now):
        if self.qlen < self.limit:
            self.queue.push(packet)
        else:
            self.drop(packet, "limit")

    def dequeue(self, now):
        return self.queue.pop()

    def statistics(self):
        return {"mine_waiting_packets": len(self.queue)}
'''
POP, POP_LINE = "        return self.queue.pop()\n", 19
PUSH, PUSH_LINE = "            self.queue.push(packet)\n", 14


def instead(line: str, *others: str) -> str:
    """Return the FIFO with a line replaced by others of the same indentation."""
    assert line in FIFO
    depth = line[: len(line) - len(line.lstrip())]
    return FIFO.replace(line, "".join(f"{depth}{other}\n" for other in others))
