"""How close flows of one moment send their first data to each other and to it, by a capture."""

import tempfile
from pathlib import Path

from rich.console import Console

from ccplay.model.base import StartTraffic
from ccplay.traffic.flow import StartFlow
from tests.bench._figures import Spread, table
from tests.lab.first_packets import Firsts, moments

COUNTS = (2, 8, 64)
ROUNDS = 3


async def run(console: Console) -> None:
    """Measure and print."""
    heads = (
        *("flows", "first data, together ms", "behind the moment ms"),
        *("first SYNs, together ms", "data, one after another ms"),
    )
    aim = "1 ms up to 8 flows"
    sheet = table("first to last data of flows that start at one moment", aim, heads)
    for count in COUNTS:
        data, behind, opened, apart = list[float](), list[float](), list[float](), list[float]()
        for _ in range(ROUNDS):
            at, sent = await _started(count, together=True)
            data.append(sent.data[-1] - sent.data[0])
            behind.append(sent.data[0] - at)
            opened.append(sent.packets[-1] - sent.packets[0])
            _, sent = await _started(count, together=False)
            apart.append(sent.data[-1] - sent.data[0])
        cells = (Spread.of(each).scaled(1e3, 2) for each in (data, behind, opened, apart))
        sheet.add_row(str(count), *cells)
    console.print(sheet)


async def _started(count: int, *, together: bool) -> tuple[float, Firsts]:
    flows: list[StartTraffic] = [
        StartFlow(flow=str(each), cc="reno", duration_s=1.0) for each in range(1, count + 1)
    ]
    with tempfile.TemporaryDirectory() as folder:
        return await moments(Path(folder), flows, together=together)
