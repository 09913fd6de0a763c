"""What single values look like in JSON Schema: what the readers of ``quantities`` take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ccplay.model.disciplines import Parameter
from ccplay.scenario.fields import quantities
from ccplay.scenario.fields.evidence import FIGURE, figure
from ccplay.units import PATTERNS, any_case

Shape: TypeAlias = dict[str, Any]

_COUNTED = ("packets", "packet", "pkts", "pkt", "p", "s")


def _text(pattern: str, *examples: str) -> Shape:
    return {"type": "string", "pattern": f"^({pattern})$", "examples": list(examples)}


def _or_text(other: str, *words: str, before: str = "") -> Shape:
    """Return what may be of another type too; a pattern asks only text for something."""
    return {"type": [other, "string"], "pattern": rf"^\s*{before}\s*({any_case(words)})\s*$"}


VALUES: dict[str, Shape] = {
    "line": {"type": "string", "minLength": 1, "maxLength": 200},
    "prose": {"type": "string"},
    "number": {"type": "number"},
    "flag": {"type": "boolean"},
    "name": {"type": "string", "pattern": f"^{quantities.NAME}$"},
    "figure": {"type": "string", "maxLength": 100, "pattern": f"^{FIGURE}$"},
    "algorithm": {"enum": list(quantities.CONGESTION_CONTROLS)},
    "rate": _text(PATTERNS["rate"], "10 Mbit/s", "1.5 Mbit/s"),
    "link-rate": _text(f"{PATTERNS['rate']}|unlimited", "10 Mbit/s", "unlimited"),
    "time": _text(PATTERNS["time"], "20 ms", "2 s", "5 min"),
    "size": _text(PATTERNS["size"], "50 MB", "64 KiB", "177669 bytes"),
    "queue-size": _text(rf"{PATTERNS['size']}|\s*[0-9]+\s*", "150 kB", "1514 bytes"),
    "share": _text(PATTERNS["share"], "2 %"),
    "frequency": _text(PATTERNS["frequency"], "50 Hz"),
    "count": _or_text("integer", "", *_COUNTED, before="[0-9]+"),
    "switch": _or_text("boolean", "on", "yes", "true", "off", "no", "false"),
    "tolerance": {"type": ["number", "string"], "minimum": 0, "pattern": f"^{PATTERNS['share']}$"},
}
"""Kinds of values by name. Ranges of those with units are not in it: no pattern can count."""

_KINDS: dict[Callable[[Any], Any], str] = {
    quantities.rate: "link-rate",
    quantities.payload_rate: "rate",
    quantities.packet: "size",
    quantities.delay: "time",
    quantities.seconds: "time",
    quantities.duration: "time",
    quantities.interval: "time",
    quantities.size: "size",
    quantities.loss: "share",
    quantities.sampling: "frequency",
    quantities.congestion_control: "algorithm",
    quantities.name: "name",
    quantities.text: "line",
    quantities.prose: "prose",
    quantities.flag: "flag",
    quantities.number: "number",
    figure: "figure",
}

_UNITS = {"us": "time", "bytes": "queue-size", "bit/s": "rate", "flag": "switch"}


def ref(name: str) -> Shape:
    """Return what stands for a definition of the schema."""
    return {"$ref": f"#/$defs/{name}"}


def shape(read: Callable[[Any], Any]) -> Shape:
    """Return what a reader takes."""
    if read in _KINDS:
        return ref(_KINDS[read])
    match read:
        case quantities.Whole(low, high):
            return {"type": "integer", "minimum": low, "maximum": high}
        case quantities.Choice(_, known):
            return {"enum": list(known)}
    raise LookupError(f"no shape is known of what {read} reads")


def parameter_shape(parameter: Parameter) -> Shape:
    """Return what a parameter of a queue discipline takes."""
    if parameter.unit in _UNITS:
        return ref(_UNITS[parameter.unit])
    if parameter.unit == "choice":
        return {"enum": list(parameter.choices)}
    return {**ref("count"), "minimum": parameter.low, "maximum": parameter.high}


def table(
    properties: Mapping[str, Shape],
    meanings: Mapping[str, str],
    required: tuple[str, ...] = (),
    **more: Any,
) -> Shape:
    """Return a table that has these keys and no others, each with its meaning."""
    described = {
        key: {"description": meanings[key], **each} if key in meanings else each
        for key, each in properties.items()
    }
    needs = {"required": list(required)} if required else {}
    return {
        "type": "object",
        "properties": described,
        "additionalProperties": False,
        **needs,
        **more,
    }
