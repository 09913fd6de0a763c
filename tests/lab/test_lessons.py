"""A lesson whole, in a real lab: every page runs, and what was measured answers its question."""

from pathlib import Path

import msgspec

from ccplay.analysis.trust import HealthResult
from tests.lab.commands import run
from tests.lab.trust import note, physical

LESSON = """
title = "A short lesson"
duration = "20 s"
topology = { kind = "linear" }
links.bottleneck = { rate = "5 Mbit/s", delay = "10 ms", queue = { kind = "pfifo", limit = 200 } }

[[lesson.pages]]
title = "Idle"
text = "A ping alone."
run = "2 s"
steps = [{ at = "0 s", do = "start-ping", ping = "idle", interval = "100 ms" }]
measures.rtt = { metric = "pings.idle.p50_ms", unit = "ms", text = "RTT" }
question = { ask = "How much?", number = { measure = "rtt", low = 0, high = 100, usual = { at_least = 19.9, at_most = 60 } } }
why = "Twice 10 ms."

[[lesson.pages]]
title = "Another queue"
text = "A flow, and a short queue."
run = "5 s"
steps = [
  { at = "0 s", do = "set-qdisc", kind = "pfifo", limit = 10 },
  { at = "0 s", do = "start-flow", flow = "a", cc = "reno" },
]
measures.queue = { metric = "queues.bottleneck.qlen", take = "greatest", unit = "packets", text = "queue" }
measures.drops = { metric = "queues.bottleneck.drops", take = "growth", text = "drops" }
why = "It is full."

[lesson.pages.question]
ask = "How long?"
choices = [
  { text = "up to 10", usual = true, when = [{ measure = "queue", at_most = 10 }, { measure = "drops", at_least = 1 }] },
  { text = "more", when = [{ measure = "queue", at_least = 11 }] },
]

[[lesson.pages]]
title = "The first queue again"
text = "The same flow, and the queue of the file."
run = "6 s"
steps = [{ at = "0 s", do = "start-flow", flow = "b", cc = "reno" }]
measures.queue = { metric = "queues.bottleneck.qlen", take = "greatest", unit = "packets", text = "queue" }
why = "Each page begins with the network of the file."

[lesson.pages.question]
ask = "How long now?"
choices = [
  { text = "up to 10", when = [{ measure = "queue", at_most = 10 }] },
  { text = "more", usual = true, when = [{ measure = "queue", at_least = 11 }] },
]

[[lesson.pages]]
title = "Now you"
text = "Text alone, which is over at once."
"""  # noqa: E501 - TOML 1.0 has an inline table on one line


@physical
async def test_a_lesson_is_answered_by_what_it_measures(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(LESSON)
    code, found, talk = await run("lesson", path, "--headless", "--json")
    assert code == 0, talk
    note(msgspec.convert(found["health"], HealthResult))
    assert found["errors"] == []
    assert [(page["page"], page["ok"]) for page in found["pages"]] == [(n, True) for n in (1, 2, 3)]
    first, short, long = found["pages"]
    # 10 ms each way; a busy machine adds some.
    assert 19.9 <= first["measured"]["rtt"] < 60
    assert short["measured"]["queue"] <= 10
    assert short["measured"]["drops"] > 0
    # Slow start alone passes 20 packets, which the link and ten places could not hold.
    assert long["measured"]["queue"] > 20
