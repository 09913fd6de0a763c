"""Settings that several commands share, described once."""

from __future__ import annotations

from ccplay.model import quantities
from ccplay.model.algorithms import CODE_POINTS, DISTRIBUTIONS
from ccplay.model.moving import TRACE as MOVING
from ccplay.model.quantities import FLAG, PACKETS, SECONDS, SHARE, SIZE, TIME_US, Field
from ccplay.model.texts import ALGORITHM, GEMODEL, LINE, NAME, NAMES, choice

DAY_S = 86_400
"""Longest run in seconds."""

FLOW = Field(NAME, "The name of the flow", label="name", hint="any name", unset="the next number")
CAPTURE = Field(NAME, "The name of the capture")
SRC = Field(NAME, "The host that sends", label="from")
DST = Field(NAME, "The host that receives", label="to")
CC = Field(ALGORITHM, "The congestion control", key="cc", label="congestion")
LINK = Field(LINE, "Which link; by default the bottleneck")
PAYLOAD = Field(
    SIZE, "Payload to send", *(1, 10**12), label="stop after", hint="bytes: 50 MB", unset="no limit"
)
DURATION = Field(
    SECONDS,
    "Duration of sending",
    *(1e-6, DAY_S),
    key="duration",
    label="stop after",
    hint="time: 30 s",
    unset="until stopped",
)
MONITOR = Field(
    FLAG,
    "Follow its packets from host to host: one-way delay, arrivals and losses",
    label="monitor",
)
VIA = Field(
    NAMES,
    "Nodes that its packets pass if there are several paths; if empty, the routers' hash chooses",
)
DSCP = Field(
    choice("code point", CODE_POINTS),
    "Code point of its packets for queues that tell services apart (RFC 2474), CS0 by default",
)
BIDIR = Field(
    FLAG,
    "Send in both directions at once: NAME-back sends from dst to src",
    label="both ways",
    hint="yes: the receiver sends, too",
)
LINK_RATE = Field(
    quantities.LINK_RATE,
    'On the wire, Ethernet header included: 8 kbit/s to 1 Gbit/s, or "unlimited"',
    *(8_000, 1_000_000_000),
    label="rate",
    hint="10 Mbit/s; unlimited",
)
DELAY = Field(
    TIME_US,
    "Added propagation delay, one way",
    *(0, 10_000_000),
    key="delay",
    label="delay",
    hint="20 ms, one way, added",
)
JITTER = Field(
    TIME_US,
    "Variation around the delay: half the width if uniform, or the scale of another distribution",
    *(0, 10_000_000),
    key="jitter",
    label="jitter",
    hint="5 ms, more or less, at random",
)
LOSS = Field(
    SHARE,
    "Share of packets lost after the queue",
    *(0, 1),
    label="loss",
    hint="1 % of packets, after the queue",
)
DISTRIBUTION = Field(
    choice("distribution", DISTRIBUTIONS),
    "Distribution of the jitter around the delay: uniform, or one of the tables of tc-netem(8)",
    label="distribution",
    hint="uniform, normal, pareto, paretonormal",
)
BURST_LOSS = Field(
    GEMODEL,
    "Loss in bursts, Gilbert-Elliott: p r 1-h 1-k, the probabilities of turning bad and of turning"
    " good again, and of loss while bad and while good",
    label="gemodel",
    hint="p r 1-h 1-k: 1 % 25 % 100 % 0 %",
)
REORDER = Field(
    SHARE,
    "Share of packets sent at once, ahead of those that are delayed",
    *(0, 1),
    label="reorder",
    hint="1 % of packets skip the delay",
)
DUPLICATE = Field(
    SHARE,
    "Share of packets that are duplicated",
    *(0, 1),
    label="duplicate",
    hint="1 % of packets arrive twice",
)
CORRUPT = Field(
    SHARE,
    "Share of packets with one bit flipped, which a checksum detects",
    *(0, 1),
    label="corrupt",
    hint="1 % of packets have a wrong bit",
)
MARK = Field(
    PACKETS,
    "Mark packets of ECN flows with CE while this many full packets wait; 0 marks none",
    *(0, 10_000),
    label="ECN mark",
    hint="CE from 20 packets on; none: never",
)
TRACE = Field(
    MOVING,
    "What moves the link: a trace that comes with ccplay, files beside the scenario, or a model; "
    '"none" gives the fixed rate and delay back',
    label="trace",
    hint="lte-driving; starlink seed 3; none",
)
DOWN = Field(
    FLAG,
    "Take both directions of the cable down, or up again; packets take another path if possible",
    label="down",
    hint="yes: both ways; no: up again",
)
