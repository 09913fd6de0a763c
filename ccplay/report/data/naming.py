"""The printed name of a metric, from its path in a run's result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ccplay.model.traffic import TRAFFIC
from ccplay.state.kinds import KEPT

_QUANTITIES = {
    "goodput_bps": "goodput",
    "goodput_mean_bps": "mean goodput",
    "bytes": "acknowledged payload",
    "duration_s": "duration",
    "fct_s": "flow completion time",
    "fct_mean_s": "mean flow completion time",
    "fct_max_s": "completion time of all flows",
    "elapsed_s": "time to the checkpoint",
    "converged_s": "time to converge",
    "slow_start_s": "time in slow start",
    "slow_start_cwnd": "cwnd after slow start",
    "retransmits": "retransmits",
    "loss": "loss",
    "packet_loss": "packet loss",
    "packets": "packets sent",
    "tx_bps": "rate sent",
    "rx_bps": "rate received",
    "jitter_ms": "jitter",
    "utilisation": "utilisation",
    "drops": "drops",
    "marks": "ECN marks",
    "ratio": "checkpoint ratio",
    "jain": "Jain's index",
    "min_rtt_ms": "minimum RTT",
    "srtt_mean_ms": "mean srtt",
    "sent_bytes": "bytes sent",
    "received_bytes": "bytes received",
    "dropped": "packets dropped",
}
_STEMS = {
    "cwnd": "cwnd",
    "srtt": "srtt",
    "qlen": "queue length",
    "backlog": "backlog",
    "delay": "queueing delay",
}
_ORDERS = {"p50": "median", "p95": "95th percentile of", "p99": "99th percentile of"}
_COUNTED = {
    "cwnd": "segments",
    "slow_start_cwnd": "segments",
    "retransmits": "segments",
    "qlen": "packets",
    "drops": "packets",
    "marks": "packets",
}
_GROUPS = {
    "queues": "queue",
    "interfaces": "interface",
    "directions": "direction",
    **{kind.group: kind.word for kind in TRAFFIC},
}
_OWN: dict[str, Mapping[str, str]] = {
    "queues": {"bytes": "bytes carried"},
    "directions": {},
    "interfaces": {each: f"packets {each}" for each in ("sent", "received", "lost")},
    **{kind.group: KEPT[kind.name].metrics for kind in TRAFFIC},
}
"""Words for metrics whose name has a special meaning in one group of results, by group."""


class Words(msgspec.Struct, frozen=True):
    """The printed name of a metric."""

    quantity: str
    """Name of the quantity: ``goodput``, ``median RTT``."""
    subject: str
    """Name of the subject: ``flow 1``, ``ping p1``, ``queue r → h2``; empty for the whole run."""
    counts: str
    """Name of what a metric without a unit counts, such as ``packets``; else empty."""
    kind: str
    """Name shared by metrics that belong in one chart: ``flows.goodput_bps``."""
    name: str
    """Name of the flow, ping, download or queue; empty for metrics of the whole run."""

    @property
    def text(self) -> str:
        """The whole name: ``goodput of flow 1``."""
        return f"{self.quantity} of {self.subject}" if self.subject else self.quantity


def words(metric: str) -> Words:
    """Return the printed name of a metric; an unknown metric keeps its path."""
    group, _, rest = metric.partition(".")
    name, _, field = rest.rpartition(".")
    if group == "checkpoint":
        if name == "bytes":
            return Words(
                "payload at the checkpoint", f"flow {field}", "", "checkpoint.bytes", field
            )
        return Words(_quantity(rest), "", "", metric, "")
    if group not in _GROUPS or not name:
        return Words(_quantity(metric), "", "", metric, "")
    subject = f"{_GROUPS[group]} {name.replace('->', ' → ')}"
    if group == "flows" and "." in name and (within := name.partition(".subflows."))[2]:
        subject, name = f"subflow {within[2]}", within[2]
    quantity = _OWN[group].get(field) or _quantity(field)
    if "queue" in quantity:
        # "queue length of queue r → h2" would repeat the word.
        subject = subject.removeprefix("queue ")
    return Words(quantity, subject, _counted(field), f"{group}.{field}", name)


def _quantity(field: str) -> str:
    if field in _QUANTITIES:
        return _QUANTITIES[field]
    stem, _, order = field.removesuffix("_ms").partition("_")
    if stem in _STEMS and order:
        return _ordered(order, _STEMS[stem])
    return field.replace("_", " ")


def _ordered(order: str, what: str) -> str:
    if order == "min":
        return f"least {what}"
    return f"greatest {what}" if order == "max" else f"{_ORDERS.get(order, order)} {what}"


def _counted(field: str) -> str:
    return _COUNTED.get(field, _COUNTED.get(field.partition("_")[0], ""))


def in_order(names: Iterable[str]) -> list[str]:
    """Return names sorted with their numbers in numeric order: 2 before 10."""
    return sorted(names, key=lambda name: (name.strip("0123456789"), len(name), name))
