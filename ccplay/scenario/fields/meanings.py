"""The meanings, one line each, of keys with tables and lists; a ``Field`` has its own meaning."""

from __future__ import annotations

from ccplay.model.traffic import TRAFFIC

FILE = {
    "title": "One line, for people",
    "topology": "What to build: a kind of network with its numbers, or nodes and links by name",
    "links": "Settings of links by name: bottleneck, h1-r (both directions), h1->r (one)",
    "hosts": "By name: h1, h2, or s1, d1, s2 …",
    "timeline": "The steps, each with its moment",
    "metrics": "Metrics to report first, each by its path in the result",
    "expect": "Checks of every run: the required value of a metric, and why",
    "published": "Values measured by others, shown beside ours",
    "matrix": 'Every case is run at every point: NAME = { path = …, values = […] } or "PATH" = […]',
    "case": "Cases, each run in its own lab; each has only the keys that differ from the rest",
    "name": "Name of this case",
    "lesson": "Pages beside the running network: ccplay lesson FILE",
}

STEP = {
    "after": "Wait until the traffic of this name has ended",
    "do": "What to do",
    "kind": "The queue discipline",
    "classes": "Several queues that share the link's rate; an empty list is one queue",
}

LINK = {"classes": STEP["classes"], "queue": "The queue in front of the link"}

OBSERVED = (
    'Directions whose queue is observed, such as "h2->r", in the order of the screen; links that '
    "are named here have no default delay"
)

WRITTEN = {
    "kind": "Nodes and links written out one by one",
    "hosts": "Names of hosts; those of the first half send to those of the second by default",
    "routers": "Names of routers, which forward packets",
    "links": "The two nodes that each link joins, and the settings of both directions",
    "ends": "The two nodes that the link joins",
    "observed": 'Directions whose queue is observed, such as "r1->r2", in the order of the screen; '
    "by default of links with a rate, where routers send",
    "name": "What people call the network",
    "remarks": "Lines that the lab reports as warnings",
}

CLASS = {
    "traffic": f"Names of traffic, or all of a kind: {', '.join(kind.plural for kind in TRAFFIC)}",
    "queue": "Its queue; by default the link's own",
}

EVIDENCE = {
    "metric": "Path in the result: checkpoint.ratio, flows.1.goodput_bps, pings.p1.p50_ms",
    "value": "Expected value",
    "tolerance": 'Tolerance: a share such as "15 %", or a plain number',
    "at_least": "Least allowed value",
    "at_most": "Greatest allowed value",
    "why": "Reason for the expectation",
    "values": "One or several readings",
    "note": "Why ours may differ",
}

AXIS = {
    "path": 'Path to set, such as "links.bottleneck.queue.limit", or a list of paths',
    "values": "Its values, used in turn",
    "names": "Names of the values; needed if they are tables or lists",
}
