"""Classes at a link: several queues that share its rate, read into ``model.TrafficClass``."""

from __future__ import annotations

from collections.abc import Sequence

from ccplay.model.fields import fields_of
from ccplay.model.quantities import Plain
from ccplay.model.quoting import quote
from ccplay.model.texts import NAME
from ccplay.model.values import TrafficClass
from ccplay.scenario.fields.queues import read_qdisc, write_qdisc
from ccplay.scenario.file.tree import Node, Reader

MOST_CLASSES = 8
KEYS = ("name", "share", "traffic", "queue")


def read_classes(node: Node | None, reader: Reader) -> list[TrafficClass] | None:
    """Read ``[{ name = "bulk", share = "50 %", traffic = ["flows"] }, …]``; None if missing.

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
    fields = fields_of(TrafficClass)
    table = reader.table(node, KEYS)
    for key, example in (("name", '"bulk"'), ("share", '"50 %"')):
        if key not in table:
            reader.mistakes.add(node.place, f"{key} is missing, such as {example}")
    traffic = reader.members(table.get("traffic"), "names")
    if not traffic and not is_last:
        text = "traffic is missing: only the last class needs none: it takes the rest"
        reader.mistakes.add(node.place, text)
    queue = table.get("queue")
    return TrafficClass(
        name=reader.value(table.get("name"), fields["name"].read, ""),
        share=reader.value(table.get("share"), fields["share"].read, 1.0),
        traffic=[reader.value(each, NAME.read, "") for each in traffic],
        qdisc=(
            read_qdisc(queue.place, reader.table(queue), reader, of_class=True) if queue else None
        ),
    )


def _check(node: Node, classes: list[TrafficClass], reader: Reader) -> None:
    """Record contradictions between the classes of a link."""
    names = [each.name for each in classes]
    takers: dict[str, str] = {}
    for number, each in enumerate(classes):
        place = (*node.place, number)
        if each.name in names[:number]:
            reader.mistakes.add((*place, "name"), f"another class is named {quote(each.name)}")
        for traffic in each.traffic:
            if traffic in takers and takers[traffic] != each.name:
                text = f"{quote(traffic)} is in class {quote(takers[traffic])} already"
                reader.mistakes.add((*place, "traffic"), text)
            takers.setdefault(traffic, each.name)
    if (total := sum(each.share for each in classes)) > 1 + 1e-9:
        reader.mistakes.add(node.place, f"the shares add up to {total * 100:.4g} %")


def write_classes(at_link: Sequence[TrafficClass]) -> list[Plain]:
    """Write the classes of a link; an empty list means one queue."""
    return [_written(each) for each in at_link]


def _written(each: TrafficClass) -> dict[str, Plain]:
    fields = fields_of(TrafficClass)
    written = {field.key: field.write(getattr(each, name)) for name, field in fields.items()}
    if each.traffic:
        written["traffic"] = list(each.traffic)
    if each.qdisc is not None:
        written["queue"] = write_qdisc(each.qdisc)
    return written
