"""The JSON Schema of scenario files, for editors, made from the tables that read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from ccplay.model import settings
from ccplay.model.base import Command
from ccplay.model.commands import SetClasses, SetQdisc
from ccplay.model.disciplines import DISCIPLINES, SUFFIX
from ccplay.model.network import BOTTLENECK, Topology
from ccplay.model.qdiscs import Discipline
from ccplay.model.quantities import (
    COUNT,
    FLAG,
    FREQUENCY,
    LINK_RATE,
    NUMBER,
    QUEUE_SIZE,
    RATE,
    SHARE,
    SIZE,
    SWITCH,
    TIME_US,
    WHOLE,
    Field,
    Shape,
    fields_of,
)
from ccplay.model.texts import ALGORITHM, GEMODEL, LINE, NAME, PROSE
from ccplay.model.topologies import generated, parameters, plan
from ccplay.model.values import LinkSetting, TrafficClass
from ccplay.model.written import MOST_HOSTS, MOST_LINKS, MOST_ROUTERS, NODE_PATTERN
from ccplay.scenario import evidence, keys, lesson, matrix
from ccplay.scenario.reading import CASE_KEYS, MOST_CASES, VALUES
from ccplay.scenario.timeline import ACTIONS, AT, MOST_STEPS
from ccplay.scenario.tree import TODAYS
from ccplay.units import PATTERNS

_SCALAR: Shape = {"type": ["string", "number", "boolean"]}


_NAMED = (
    *(LINE, PROSE, NUMBER, FLAG, NAME, evidence.METRIC, ALGORITHM, RATE, LINK_RATE, TIME_US, SIZE),
    *(QUEUE_SIZE, SHARE, GEMODEL, FREQUENCY, WHOLE, COUNT, SWITCH),
)
"""Quantities that have a definition in the schema."""


def text() -> str:
    """Return the schema in the form of ``scenarios/schema.json``."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def schema() -> Shape:
    """Return the schema.

    It accepts every file that ``load`` accepts, unless a matrix supplies a required key of a step.
    It checks keys, words and units, but not whether a file makes sense.
    """
    common = _case_keys()
    case = table({"name": ref("line"), **common}, keys.FILE, ("name",))
    cases = {"type": "array", "minItems": 1, "maxItems": MOST_CASES, "items": case}
    own = {"case": cases, "lesson": ref("lesson")}
    file = table({"title": ref("line"), **common, **own}, keys.FILE)
    each_has = {"properties": {"case": {"items": {"required": ["duration"]}}}, "required": ["case"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ccplay scenario",
        "description": "A network and a timeline of events.",
        **file,
        "anyOf": [{"required": ["duration"]}, each_has],
        "$defs": _definitions(),
    }


def ref(name: str) -> Shape:
    """Return a reference to a definition of the schema."""
    return {"$ref": f"#/$defs/{name}"}


def table(
    properties: Mapping[str, Shape],
    meanings: Mapping[str, str],
    required: tuple[str, ...] = (),
    **more: Any,
) -> Shape:
    """Return the schema of a table with exactly these keys, with meanings and older names."""
    described = {
        key: {"description": meanings[key], **each} if key in meanings else each
        for key, each in properties.items()
    }
    older = {name: today for name, today in TODAYS.items() if today in described}
    described |= {
        name: {**properties[today], "description": f"Older name of {today}", "deprecated": True}
        for name, today in older.items()
    }
    always = [key for key in required if key not in older.values()]
    either = [
        {"anyOf": [{"required": [today]}, {"required": [name]}]}
        for name, today in older.items()
        if today in required
    ]
    return {
        "type": "object",
        "properties": described,
        "additionalProperties": False,
        **({"required": always} if always else {}),
        **({"allOf": either} if either else {}),
        **more,
    }


def _described(fields: Iterable[Field]) -> dict[str, Shape]:
    return {each.key: {"description": each.meaning, **each.shape} for each in fields}


def _keyed(fields: Mapping[str, Field]) -> dict[str, Shape]:
    """Return the fields of a table by their names, without the table itself."""
    return _described(replace(field, key=key) for key, field in fields.items())


def _list(items: Shape, **more: Any) -> Shape:
    return {"type": "array", "items": items, **more}


def _case_keys() -> dict[str, Shape]:
    single = _keyed(VALUES)
    tables = {
        "topology": ref("topology"),
        "links": _by_name(
            rf"^({BOTTLENECK}|{'|'.join(_groups())}|{NODE_PATTERN}->?{NODE_PATTERN})$", ref("link")
        ),
        "hosts": _by_name(rf"^{NODE_PATTERN}$", ref("host")),
        "timeline": _list(ref("step"), maxItems=MOST_STEPS),
        "metrics": _list(ref("metric"), uniqueItems=True, maxItems=evidence.MOST_METRICS),
        "expect": _list(ref("expectation"), maxItems=evidence.MOST_METRICS),
        "published": _list(ref("published"), maxItems=evidence.MOST_METRICS),
    }
    matrix = {"type": "object", "additionalProperties": ref("axis")}
    return {key: single.get(key) or tables[key] for key in CASE_KEYS} | {"matrix": matrix}


def _by_name(pattern: str, each: Shape) -> Shape:
    return {"type": "object", "patternProperties": {pattern: each}, "additionalProperties": False}


def _groups() -> list[str]:
    """Return the names of groups of links that topologies have."""
    networks = (plan(Topology(kind=kind.name)) for kind in generated())
    return list(dict.fromkeys(name for network in networks for name in network.groups))


def _definitions() -> dict[str, Shape]:
    link = _described(fields_of(LinkSetting).values())
    link |= {"queue": ref("queue"), "classes": ref("classes")}
    taker = _described(fields_of(TrafficClass).values())
    taker |= {"traffic": _list(ref("name")), "queue": ref("queue")}
    tolerance = {"minimum": 0, "pattern": f"^{PATTERNS['share']}$"}
    named = {each.name: each.shape for each in _NAMED}
    return named | {
        "tolerance": {"type": ["number", "string"], **tolerance},
        "topology": {"anyOf": [_topology(), _written()]},
        "host": table(_described([settings.CC]), {}),
        "link": table(link, keys.LINK),
        "queue": {"anyOf": [_queue(each) for each in DISCIPLINES.values()] + [_changed_queue()]},
        "classes": _list(
            table({key: taker[key] for key in keys.CLASS_KEYS}, keys.CLASS, ("name", "share")),
            maxItems=keys.MOST_CLASSES,
        ),
        "step": {"anyOf": [step for action in ACTIONS.values() for step in _steps(action)]},
        "expectation": _expectation(),
        "published": _published(),
        "axis": _axis(),
        **lesson.definitions(table, _keyed),
    }


def _topology() -> Shape:
    """Return the schema of a topology with numeric parameters."""
    kinds = [*generated()]
    known = {"kind": "; ".join(f"{each.name} is {each.summary}" for each in kinds)}
    kind: Shape = {"enum": [each.name for each in kinds]}
    known["observed"] = keys.OBSERVED
    observed = _list({"type": "string"})
    return table({"kind": kind, **_described(parameters()), "observed": observed}, known)


def _written() -> Shape:
    """Return the schema of a topology with listed nodes and links."""
    name: Shape = {"type": "string", "pattern": f"^{NODE_PATTERN}$"}
    link = _described(fields_of(LinkSetting).values())
    link |= {"queue": ref("queue"), "classes": ref("classes")}
    ends = _list(name, minItems=2, maxItems=2)
    known: dict[str, Shape] = {
        "hosts": _list(name, minItems=2, maxItems=MOST_HOSTS),
        "routers": _list(name, maxItems=MOST_ROUTERS),
        "links": _list(
            table({"ends": ends, **link}, {**keys.LINK, **keys.WRITTEN}, ("ends",)),
            maxItems=MOST_LINKS,
        ),
        "observed": _list({"type": "string"}),
        "name": ref("line"),
        "remarks": _list(ref("line")),
    }
    kind: Shape = {"const": "written"}
    return table(
        {"kind": kind, **{key: known[key] for key in keys.WRITTEN_KEYS}},
        keys.WRITTEN,
        ("kind", "hosts", "links"),
    )


# --- queues and steps -----------------------------------------------------------------------


def _queue(discipline: Discipline, **more: Shape) -> Shape:
    """Return the schema of a queue of this kind; ``more`` are other keys of its table."""
    names: Shape = {"const": discipline.kind}
    if discipline.software:
        names = {"enum": [discipline.kind, discipline.kind + SUFFIX]}
    properties = {"kind": {**names, "description": discipline.summary}}
    for parameter in discipline.parameters:
        default = parameter.default
        shown = "" if default is None else f" (default {parameter.show(default)})"
        described = {"description": f"{parameter.meaning}{shown}"}
        properties[parameter.name] = {**described, **parameter.shape}
    needed = [each.name for each in discipline.parameters if each.required and each.default is None]
    required = ["kind", *needed, *(["do"] if more else [])]
    return table({**more, **properties}, keys.STEP, tuple(required))


def _changed_queue() -> Shape:
    """Return the schema of a queue whose kind is in the common part or in the matrix."""
    known: dict[str, list[Shape]] = {}
    meanings: dict[str, str] = {}
    for discipline in DISCIPLINES.values():
        for parameter in discipline.parameters:
            there = known.setdefault(parameter.name, [])
            meanings.setdefault(parameter.name, parameter.meaning)
            if (each := parameter.shape) not in there:
                there.append(each)
    return table({name: {"anyOf": each} for name, each in known.items()}, meanings)


def _steps(action: type[Command]) -> Iterator[Shape]:
    """Yield the forms of a step with this action: one, or one for each kind of queue."""
    do = {"const": action.__struct_config__.tag, "description": _summary(action)}
    moment = {**_described([AT]), "after": ref("name")}
    when = {"anyOf": [{"required": ["at"]}, {"required": ["after"]}]}
    fields = fields_of(action).values()
    own = _described(fields)
    if action is SetQdisc:
        for discipline in DISCIPLINES.values():
            yield {**_queue(discipline, **moment, do=do, **own), **when}
        return
    needed = ["do", *(field.key for field in fields if field.required)]
    if action is SetClasses:
        own["classes"] = ref("classes")
        needed.append("classes")
    step = table({**moment, "do": do, **own}, keys.STEP, tuple(needed))
    yield {**step, "allOf": [when, *_one_of_each(action)]}


def _one_of_each(action: type[Command]) -> list[Shape]:
    """Return the groups of keys of an action of which at least one is required."""
    fields = fields_of(action)
    groups = {"oneOf": action.ONE_OF, "anyOf": action.ANY_OF}
    return [
        {word: [{"required": [fields[name].key]} for name in names]}
        for word, names in groups.items()
        if names
    ]


def _summary(action: type[Command]) -> str:
    return (action.__doc__ or "").partition("\n")[0].replace("``", "")


# --- evidence and matrix --------------------------------------------------------------------


def _expectation() -> Shape:
    known = dict.fromkeys(("value", "at_least", "at_most"), ref("number")) | {
        "metric": ref("metric"),
        "tolerance": ref("tolerance"),
        "why": ref("line"),
    }
    bound = {"anyOf": [{"required": ["at_least"]}, {"required": ["at_most"]}]}
    return table(
        {key: known[key] for key in evidence.EXPECTATION_KEYS},
        keys.EVIDENCE,
        ("metric", "why"),
        dependentRequired={"value": ["tolerance"], "tolerance": ["value"]},
        oneOf=[{"required": ["value"]}, bound],
    )


def _published() -> Shape:
    known = {
        "metric": ref("metric"),
        "values": _list(ref("number"), minItems=1),
        "note": ref("prose"),
    }
    published = {key: known[key] for key in evidence.PUBLISHED_KEYS}
    return table(published, keys.EVIDENCE, ("metric", "values"))


def _axis() -> Shape:
    path: Shape = {"type": "string", "minLength": 1}
    known: dict[str, Shape] = {
        "path": {"type": ["string", "array"], "minLength": 1, "minItems": 1, "items": path},
        "values": {"type": "array", "minItems": 1},
        "names": _list(ref("line"), minItems=1, uniqueItems=True),
    }
    # A case may change an axis of the common part, so none of its keys is needed here.
    axis = table({key: known[key] for key in matrix.AXIS_KEYS}, keys.AXIS)
    return {"anyOf": [axis, _list(_SCALAR, minItems=1)]}
