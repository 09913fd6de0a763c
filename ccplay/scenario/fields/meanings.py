"""What every key of a scenario file means, in a line: editors show it while one writes."""

from __future__ import annotations

from typing import Annotated, get_args, get_origin, get_type_hints

import msgspec

from ccplay.model.traffic import TRAFFIC

FILE = {
    "title": "One line, for people",
    "about": "What it shows, for people",
    "duration": "How long a run lasts at the most",
    "until": (
        '"all": end once all steps are done and all limited traffic has ended; '
        '"first": once the first flow of a fixed size is done'
    ),
    "repeats": "How often every case is run",
    "jitter": "Each repeat starts each flow later by something random up to this",
    "balanced": "Over the repeats, flows that start together take turns at being the first",
    "sampling": 'How often sockets and queues are read, "10 Hz" to "200 Hz"; 50 Hz by default',
    "seed": "For random loss, delay variation and jitter of starts; each repeat adds one",
    "topology": "What to build: h1 - r - h2, or pairs of hosts around two routers",
    "links": "What links do to packets, by name: bottleneck, h1-r (both ways), h1->r (one)",
    "hosts": "By name: h1, h2, or s1, d1, s2 …",
    "timeline": "What to do when",
    "figures": "Those to report first, named by their place in the result",
    "expect": "What figures must be, and why: a check of every run",
    "published": "What others have measured, to be put beside ours",
    "published_in": "Who measured that, and where it can be read: reports cite it",
    "matrix": 'Every case is run at every point: NAME = { path = …, values = […] } or "PATH" = […]',
    "case": "Runs, each in a lab of its own; each says only what differs from the rest",
    "name": "What this case is called",
}

STEP = {
    "at": "When, counted from the moment the network stands, or from the end of what after names",
    "after": "Wait until the traffic of this name has ended",
    "do": "What to do",
    **{kind.name: kind.meaning_of_name for kind in TRAFFIC},
    "src": "The host that sends; for a download the web server",
    "dst": "The host that receives",
    "host": "The host whose new connections change",
    "cc": "The congestion control",
    "streams": "Parallel connections",
    "bytes": "How much payload to send",
    "duration": "How long to send",
    "ecn": "Ask for ECN, so that queues that can mark its packets instead of dropping them",
    "monitor": "Follow its packets from host to host: one-way delay, what arrives, what is lost",
    "interval": "Time between two pings, 200 ms by default",
    "count": "How many pings",
    "link": "Which link; the bottleneck where nothing is said",
    "rate": "Of a link on the wire, Ethernet header included; of UDP its payload",
    "packet": "Payload of each packet, 1024 bytes by default",
    "delay": "Added propagation delay, one way",
    "jitter": "Half the width of the uniform variation around the delay",
    "loss": "Share of packets lost after the queue",
    "mark": "Mark packets of ECN flows while so many full packets wait; 0 marks none",
    "class": "Which class's queue",
    "capture": "The name of the capture",
    "snaplen": "Bytes kept of each packet",
    "size": "The file ends before it would be longer",
    "text": "A remark on the time axis",
    "kind": "The queue discipline",
    "classes": "Several queues that share the link's rate; an empty list is one queue",
}

STEP |= {
    name: note.description
    for kind in TRAFFIC
    for name, hint in get_type_hints(kind.start, include_extras=True).items()
    if get_origin(hint) is Annotated
    for note in get_args(hint)[1:]
    if isinstance(note, msgspec.Meta) and note.description and name not in STEP
}

LINK = {key: STEP[key] for key in ("delay", "jitter", "loss", "mark", "classes")} | {
    "rate": 'On the wire, Ethernet header included: 100 kbit/s to 1 Gbit/s, or "unlimited"',
    "mtu": "Bytes of the largest IP packet, of both directions at once; 1500 where nothing is said",
    "queue": "The queue in front of the link",
}

CLASS = {
    "name": "What it is called",
    "share": "The part of the link's rate that it is sure of",
    "traffic": "Names of flows, downloads, pings and UDP, or all of a kind",
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
