"""The JSON Schema of scenario files, made from the same tables that read them: for editors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from ccplay.model.base import Command
from ccplay.model.commands import SetClasses, SetCongestionControl, SetLink, SetQdisc
from ccplay.model.disciplines import DISCIPLINES, Discipline
from ccplay.scenario import matrix
from ccplay.scenario.cases import CASE_KEYS, MOST_CASES, VALUES
from ccplay.scenario.fields import classes, evidence, meanings, network, shapes
from ccplay.scenario.fields.shapes import Shape, parameter_shape, ref, shape, table
from ccplay.scenario.fields.timeline import ACTIONS, FIELDS, MOST_STEPS

_LINK_FIELDS = ("rate", "delay_us", "jitter_us", "loss", "mark")
_SCALAR: Shape = {"type": ["string", "number", "boolean"]}


def text() -> str:
    """Return the schema as it is shipped in ``scenarios/schema.json``."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def schema() -> Shape:
    """Return the schema.

    It takes all that ``load`` takes, unless a matrix has to say first what a step leaves out; and
    it knows keys, words and units, but not whether a file makes sense.
    """
    common = _case_keys()
    case = table({"name": ref("line"), **common}, meanings.FILE, ("name",))
    cases = {"type": "array", "minItems": 1, "maxItems": MOST_CASES, "items": case}
    file = table({"title": ref("line"), **common, "case": cases}, meanings.FILE)
    each_has = {"properties": {"case": {"items": {"required": ["duration"]}}}, "required": ["case"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ccplay scenario",
        "description": "A network, and what happens on it when.",
        **file,
        "anyOf": [{"required": ["duration"]}, each_has],
        "$defs": _definitions(),
    }


def _list(items: Shape, **more: Any) -> Shape:
    return {"type": "array", "items": items, **more}


def _case_keys() -> dict[str, Shape]:
    single = {key: shape(read) for key, read in VALUES.items()}
    tables = {
        "topology": ref("topology"),
        "links": _by_name(r"^(bottleneck|[a-z][0-9]?->?[a-z][0-9]?)$", ref("link")),
        "hosts": _by_name(r"^[a-z][0-9]$", ref("host")),
        "timeline": _list(ref("step"), maxItems=MOST_STEPS),
        "figures": _list(ref("figure"), uniqueItems=True, maxItems=evidence.MOST_FIGURES),
        "expect": _list(ref("expectation"), maxItems=evidence.MOST_FIGURES),
        "published": _list(ref("published"), maxItems=evidence.MOST_FIGURES),
    }
    matrix = {"type": "object", "additionalProperties": ref("axis")}
    return {key: single.get(key) or tables[key] for key in CASE_KEYS} | {"matrix": matrix}


def _by_name(pattern: str, each: Shape) -> Shape:
    return {"type": "object", "patternProperties": {pattern: each}, "additionalProperties": False}


def _definitions() -> dict[str, Shape]:
    topology = {"kind": {"enum": list(network.KINDS)}, "pairs": shape(network.PAIRS)}
    link = {key: shape(read) for key, read in (FIELDS[field] for field in _LINK_FIELDS)}
    link |= {"mtu": shape(network.MTU), "queue": ref("queue"), "classes": ref("classes")}
    taker = {"name": ref("name"), "share": ref("share")}
    taker |= {"traffic": _list(ref("name")), "queue": ref("queue")}
    return shapes.VALUES | {
        "topology": table(topology, meanings.TOPOLOGY),
        "host": table({"cc": ref("algorithm")}, meanings.STEP),
        "link": table(link, meanings.LINK),
        "queue": {"anyOf": [_queue(each) for each in DISCIPLINES.values()] + [_changed_queue()]},
        "classes": _list(
            table({key: taker[key] for key in classes.KEYS}, meanings.CLASS, ("name", "share")),
            maxItems=classes.MOST_CLASSES,
        ),
        "step": {"anyOf": [step for action in ACTIONS.values() for step in _steps(action)]},
        "expectation": _expectation(),
        "published": _published(),
        "axis": _axis(),
    }


# --- queues and steps -----------------------------------------------------------------------


def _queue(discipline: Discipline, **more: Shape) -> Shape:
    """Return a queue of this kind; ``more`` is what else stands in its table."""
    properties = {"kind": {"const": discipline.kind, "description": discipline.summary}}
    for parameter in discipline.parameters:
        default = (
            "" if parameter.default is None else f" (default {parameter.write(parameter.default)})"
        )
        described = {"description": f"{parameter.meaning}{default}"}
        properties[parameter.name] = {**described, **parameter_shape(parameter)}
    needed = [each.name for each in discipline.parameters if each.required and each.default is None]
    required = ["kind", *needed, *(["do"] if more else [])]
    return table({**more, **properties}, meanings.STEP, tuple(required))


def _changed_queue() -> Shape:
    """Return a queue whose kind stands elsewhere: in the common part, or in the matrix."""
    known: dict[str, list[Shape]] = {}
    said: dict[str, str] = {}
    for discipline in DISCIPLINES.values():
        for parameter in discipline.parameters:
            there = known.setdefault(parameter.name, [])
            said.setdefault(parameter.name, parameter.meaning)
            if (each := parameter_shape(parameter)) not in there:
                there.append(each)
    return table({name: {"anyOf": each} for name, each in known.items()}, said)


def _steps(action: type[Command]) -> Iterator[Shape]:
    """Yield what a step with this action may be: one, or one for each kind of queue."""
    do = {"const": action.__struct_config__.tag, "description": _summary(action)}
    moment = {"at": ref("time"), "after": ref("name")}
    when = {"anyOf": [{"required": ["at"]}, {"required": ["after"]}]}
    fields = [field for field in msgspec.structs.fields(action) if field.name in FIELDS]
    own = {FIELDS[field.name][0]: shape(FIELDS[field.name][1]) for field in fields}
    if action is SetQdisc:
        for discipline in DISCIPLINES.values():
            yield {**_queue(discipline, **moment, do=do, **own), **when}
        return
    needed = ["do", *(FIELDS[field.name][0] for field in fields if field.required)]
    if action is SetClasses:
        own["classes"] = ref("classes")
        needed.append("classes")
    step = table({**moment, "do": do, **own}, meanings.STEP, tuple(needed))
    yield {**step, "allOf": [when, *_one_of_each(action)]}


def _one_of_each(action: type[Command]) -> list[Shape]:
    """Return which of its keys an action needs one of, although it needs none by itself."""
    if action is SetCongestionControl:
        return [{"oneOf": [{"required": ["flow"]}, {"required": ["host"]}]}]
    if action is SetLink:
        keys = [FIELDS[field][0] for field in _LINK_FIELDS]
        return [{"anyOf": [{"required": [key]} for key in keys]}]
    return []


def _summary(action: type[Command]) -> str:
    return (action.__doc__ or "").partition("\n")[0].replace("``", "")


# --- evidence and matrix --------------------------------------------------------------------


def _expectation() -> Shape:
    known = dict.fromkeys(("value", "at_least", "at_most"), ref("number")) | {
        "figure": ref("figure"),
        "tolerance": ref("tolerance"),
        "why": ref("line"),
    }
    bound = {"anyOf": [{"required": ["at_least"]}, {"required": ["at_most"]}]}
    return table(
        {key: known[key] for key in evidence.EXPECTATION_KEYS},
        meanings.EVIDENCE,
        ("figure", "why"),
        dependentRequired={"value": ["tolerance"], "tolerance": ["value"]},
        oneOf=[{"required": ["value"]}, bound],
    )


def _published() -> Shape:
    known = {
        "figure": ref("figure"),
        "values": _list(ref("number"), minItems=1),
        "note": ref("prose"),
    }
    keys = {key: known[key] for key in evidence.PUBLISHED_KEYS}
    return table(keys, meanings.EVIDENCE, ("figure", "values"))


def _axis() -> Shape:
    path: Shape = {"type": "string", "minLength": 1}
    known: dict[str, Shape] = {
        "path": {"type": ["string", "array"], "minLength": 1, "minItems": 1, "items": path},
        "values": {"type": "array", "minItems": 1},
        "names": _list(ref("line"), minItems=1, uniqueItems=True),
    }
    # A case may change an axis of the common part, so none of its keys is needed here.
    axis = table({key: known[key] for key in matrix.AXIS_KEYS}, meanings.AXIS)
    return {"anyOf": [axis, _list(_SCALAR, minItems=1)]}
