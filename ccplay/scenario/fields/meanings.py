"""What keys mean that hold tables and lists, in a line; a ``Field`` has its own meaning."""

from __future__ import annotations

from ccplay.model.traffic import TRAFFIC

FILE = {
    "title": "One line, for people",
    "topology": "What to build: h1 - r - h2, or pairs of hosts around two routers",
    "links": "What links do to packets, by name: bottleneck, h1-r (both ways), h1->r (one)",
    "hosts": "By name: h1, h2, or s1, d1, s2 …",
    "timeline": "What to do when",
    "figures": "Those to report first, named by their place in the result",
    "expect": "What figures must be, and why: a check of every run",
    "published": "What others have measured, to be put beside ours",
    "matrix": 'Every case is run at every point: NAME = { path = …, values = […] } or "PATH" = […]',
    "case": "Runs, each in a lab of its own; each says only what differs from the rest",
    "name": "What this case is called",
}

STEP = {
    "after": "Wait until the traffic of this name has ended",
    "do": "What to do",
    "kind": "The queue discipline",
    "classes": "Several queues that share the link's rate; an empty list is one queue",
}

LINK = {"classes": STEP["classes"], "queue": "The queue in front of the link"}

CLASS = {
    "traffic": f"Names of traffic, or all of a kind: {', '.join(kind.plural for kind in TRAFFIC)}",
    "queue": "Its queue; the link's own where nothing is said",
}

EVIDENCE = {
    "figure": "Its place in the result: checkpoint.ratio, flows.1.goodput_bps, pings.p1.p50_ms",
    "value": "What it should be",
    "tolerance": 'How far off it may be: a share such as "15 %", or a plain number',
    "at_least": "The least that it may be",
    "at_most": "The most that it may be",
    "why": "Why it must be so",
    "values": "One or several readings",
    "note": "Why ours may differ",
}

AXIS = {
    "path": 'What it sets: a path such as "links.bottleneck.queue.limit", or a list of paths',
    "values": "What it sets that to, one after the other",
    "names": "What the values are called; needed where they are tables or lists",
}
