"""The setting of a link in a scenario, read into ``model.LinkSetting`` and written from it."""

from __future__ import annotations

from collections.abc import Iterable

from ccplay.model.disciplines import NOT_OF_CLASS, software_only
from ccplay.model.fields import fields_of
from ccplay.model.values import LinkSetting
from ccplay.scenario.fields.classes import read_classes
from ccplay.scenario.fields.queues import read_qdisc
from ccplay.scenario.file.tree import Node, Reader

KEYS = (*(each.key for each in fields_of(LinkSetting).values()), "queue", "classes")


def read_link(node: Node, reader: Reader, besides: Iterable[str] = ()) -> LinkSetting:
    """Read the settings of a link; ``besides`` are keys of its table that others read."""
    table = reader.table(node, (*KEYS, *besides))
    queue = table.get("queue")
    values = {
        name: reader.value(table.get(field.key), field.read, None)
        for name, field in fields_of(LinkSetting).items()
    }
    setting = LinkSetting(
        **values,
        qdisc=read_qdisc(queue.place, reader.table(queue), reader) if queue else None,
        classes=read_classes(table.get("classes"), reader),
    )
    if queue and setting.classes and setting.qdisc and software_only(setting.qdisc.kind):
        # It would be the queue of each class that names none.
        reader.mistakes.add(queue.place, f"{setting.qdisc.kind} {NOT_OF_CLASS}")
    if setting.jitter_us and setting.delay_us is not None and setting.jitter_us > setting.delay_us:
        reader.mistakes.add(table["jitter"].place, "can't be more than the delay that it varies")
    if setting.loss and setting.gemodel:
        reader.mistakes.add(table["gemodel"].place, "is a model of loss, as loss is: leave one out")
    return setting
