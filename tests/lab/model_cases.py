"""What tests of netem's models do inside their namespaces, here or in the guest."""

import re
from typing import Any

from ccplay.model.values import LinkSetting
from tests.lab.network_cases import bench

_ANSWER = re.compile(r"icmp_seq=(\d+) ttl=\d+ time=([\d.]+) ms( \(DUP!\))?")

EVERY_S = 0.005
"""Interval between two pings in seconds."""


async def pings(
    engine: str, settings: list[dict[str, Any]], count: int, every_s: float
) -> list[dict[str, Any]]:
    """Ping through a link with each of some settings of one direction.

    Return for each the answered echoes in order, with RTTs in ms; those answered twice; the link's
    setting as reported afterwards; and the number of packets that the engine counts as lost.
    """
    seen = []
    for setting in settings:
        async with bench(engine=engine) as made:
            (told,) = await made.shaper.apply(made.there, LinkSetting(**setting))
            said = await made.run(
                *(made.sender, "ping", "-n", "-c", str(count), "-i", str(every_s), "-s", "1000"),
                *("-W", "3", made.address(made.receiver)),
            )
            answers = _ANSWER.findall(said)
            counted = await made.shaper.count()
            at = counted.link.index(made.there.name)
            seen.append(
                {
                    "answers": [[int(seq), float(rtt)] for seq, rtt, again in answers if not again],
                    "again": [int(seq) for seq, _, again in answers if again],
                    "lost": counted.lost[at],
                    "number": at + 1,
                    "told": {name: getattr(told.setting, name) for name in setting},
                }
            )
    return seen
