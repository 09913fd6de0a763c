"""Classes at a link: several queues that share its rate, read into ``model.TrafficClass``."""

from __future__ import annotations

from typing import Any

from ccplay.model.values import TrafficClass
from ccplay.scenario.fields import quantities
from ccplay.scenario.fields.queues import read_qdisc
from ccplay.scenario.file.mistakes import quote
from ccplay.scenario.file.tree import Node, Reader

MOST_CLASSES = 8
LEAST_SHARE = 0.01
KEYS = ("name", "share", "traffic", "queue")


def read_classes(node: Node | None, reader: Reader) -> list[TrafficClass] | None:
    """Read ``[{ name = "bulk", share = "50 %", traffic = ["flows"] }, …]``; None where none are.

    An empty list stands for one queue.
    """
    if node is None:
        return None
    nodes = reader.members(node)
    if len(nodes) > MOST_CLASSES:
        reader.mistakes.add(node.place, f"more than {MOST_CLASSES} classes")
        return None
    before = reader.mistakes.count
    classes = [
        _class(each, reader, is_last=number == len(nodes)) for number, each in enumerate(nodes, 1)
    ]
    if reader.mistakes.count == before:
        _check(node, classes, reader)
    return classes


def _class(node: Node, reader: Reader, *, is_last: bool) -> TrafficClass:
    table = reader.table(node, KEYS)
    for key, example in (("name", '"bulk"'), ("share", '"50 %"')):
        if key not in table:
            reader.mistakes.add(node.place, f"{key} is missing, such as {example}")
    traffic = reader.members(table.get("traffic"), "names")
    if not traffic and not is_last:
        text = "traffic is missing: only the last class can do without, it takes what is left"
        reader.mistakes.add(node.place, text)
    queue = table.get("queue")
    return TrafficClass(
        name=reader.value(table.get("name"), quantities.name, ""),
        share=reader.value(table.get("share"), _share, LEAST_SHARE),
        traffic=[reader.value(each, quantities.name, "") for each in traffic],
        qdisc=read_qdisc(queue.place, reader.table(queue), reader) if queue else None,
    )


def _check(node: Node, classes: list[TrafficClass], reader: Reader) -> None:
    """Note what does not fit between the classes of a link."""
    names = [each.name for each in classes]
    takers: dict[str, str] = {}
    for number, each in enumerate(classes):
        place = (*node.place, number)
        if each.name in names[:number]:
            reader.mistakes.add((*place, "name"), f"another class is called {quote(each.name)}")
        for traffic in each.traffic:
            if traffic in takers and takers[traffic] != each.name:
                text = f"{quote(traffic)} is in class {quote(takers[traffic])} already"
                reader.mistakes.add((*place, "traffic"), text)
            takers.setdefault(traffic, each.name)
    if (total := sum(each.share for each in classes)) > 1 + 1e-9:
        reader.mistakes.add(node.place, f"the shares add up to {total * 100:.4g} %")


def _share(value: Any) -> float:
    """Read a share of the rate."""
    share = quantities.loss(value)
    if not LEAST_SHARE <= share <= 1:
        raise quantities.MisfitError(
            f"a class's share goes from {LEAST_SHARE:.0%} to 100%, not {quote(value)}"
        )
    return share
