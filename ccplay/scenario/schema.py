"""The JSON Schema of scenario files, for editors, made of the parts that read them."""

from __future__ import annotations

import json

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
    Shape,
)
from ccplay.model.texts import ALGORITHM, GEMODEL, LINE, METRIC, NAME, PROSE
from ccplay.scenario import lesson
from ccplay.scenario.evidence import (
    CRITERION,
    CRITERION_MEASURE,
    EXPECTATION,
    PUBLISHED_VALUES,
    TOLERANCE,
)
from ccplay.scenario.keys import CLASSES, HOSTS, LINK, MOVING, QUEUE, TOPOLOGY
from ccplay.scenario.matrix import AXIS
from ccplay.scenario.parts import Part, described, table_shape
from ccplay.scenario.reading import FILE_KEYS
from ccplay.scenario.timeline import STEP

_QUANTITIES = (
    *(LINE, PROSE, NUMBER, FLAG, NAME, METRIC, ALGORITHM, RATE, LINK_RATE, TIME_US, SIZE),
    *(QUEUE_SIZE, SHARE, GEMODEL, FREQUENCY, WHOLE, COUNT, SWITCH, TOLERANCE),
)
"""Quantities that have a definition in the schema."""

_PARTS: tuple[Part, ...] = (
    *(TOPOLOGY, HOSTS.of, LINK, MOVING, QUEUE, CLASSES, STEP, EXPECTATION, PUBLISHED_VALUES, AXIS),
    *(CRITERION, CRITERION_MEASURE),
    *(lesson.LESSON, lesson.PAGE, lesson.MEASURES.of, lesson.BOUND, lesson.CHOICE, lesson.QUESTION),
)
"""Parts that have a definition in the schema."""


def text() -> str:
    """Return the schema in the form of ``scenarios/schema.json``."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def schema() -> Shape:
    """Return the schema.

    It accepts every file that ``load`` accepts, unless a matrix supplies a required key of a step.
    It checks keys, words and units, but not whether a file makes sense.
    """
    each_has = {"properties": {"case": {"items": {"required": ["duration"]}}}, "required": ["case"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ccplay scenario",
        "description": "A network and a timeline of events.",
        **table_shape(dict(described(FILE_KEYS))),
        "anyOf": [{"required": ["duration"]}, each_has],
        "$defs": {
            **{each.name: each.shape for each in _QUANTITIES},
            **{each.definition: each.form() for each in _PARTS},
        },
    }
