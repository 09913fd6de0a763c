"""The JSON Schema of a lesson, made from the tables that read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ccplay.model.fields import Field
from ccplay.model.quantities import Shape
from ccplay.scenario.lesson import measures, questions, reading

Table: TypeAlias = Callable[..., Shape]

_MEANINGS = {
    "lesson": "Pages beside the running network: read, predict, see, ask why",
    "aim": "One line: what one can explain afterwards",
    "pages": "The pages, in order",
    "look": "What the page shows of the network",
    "plots": "Names of plots, from left to right",
    "steps": "Steps as in timeline; they run once the question is answered, and each page that has "
    "some begins with the network as the file describes it",
    "measures": "Measures of the page's run, by name",
    "question": "The question asked before the steps run",
    "ask": "The question",
    "choices": "Answers, each with the measurements that make it right",
    "number": "A number to predict",
    "region": "A region of a plot to predict",
    "when": "Conditions on measures; the answer is right if all of them hold",
    "tolerance": "Share of the measured value by which the answer may differ, 0.25 by default",
    "usual": "The usual outcome, which why explains",
}


def definitions(
    table: Table, described: Callable[[Mapping[str, Field]], dict[str, Shape]]
) -> dict[str, Shape]:
    """Return the definitions of a lesson, made by the schema's ``table`` and ``described``."""

    def of(fields: Mapping[str, Field], **more: Shape) -> Shape:
        needed = tuple(key for key, field in fields.items() if field.required)
        return table({**described(fields), **more}, _MEANINGS, needed)

    def list_of(name: str, **more: Any) -> Shape:
        return {"type": "array", "items": {"$ref": f"#/$defs/{name}"}, **more}

    bounds = {key: questions.BOUND[key] for key in questions.USUAL_KEYS}
    usual = of(bounds)
    plots: Shape = {"type": "array", "items": {"enum": list(questions.PLOTS)}}
    when = {**list_of("lesson-bound"), "minItems": 1}
    choice = of(questions.CHOICE, when=when)
    choice["required"] = ["text", "when"]
    question = table(
        {
            "ask": {"$ref": "#/$defs/line"},
            "choices": list_of("lesson-choice", minItems=2, maxItems=questions.MOST_CHOICES),
            "number": of(questions.NUMBERS, tolerance={"$ref": "#/$defs/number"}, usual=usual),
            "region": of({**questions.NUMBERS, **questions.REGION}, usual=usual),
        },
        _MEANINGS,
        ("ask",),
        oneOf=[{"required": [key]} for key in ("choices", "number", "region")],
    )
    named: Shape = {
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/lesson-measure"},
        "maxProperties": measures.MOST_MEASURES,
    }
    page = of(
        reading.VALUES,
        look=of(reading.LOOK, plots=plots),
        steps=list_of("step"),
        measures=named,
        question={"$ref": "#/$defs/lesson-question"},
    )
    pages = list_of("lesson-page", minItems=1, maxItems=reading.MOST_PAGES)
    return {
        "lesson": table({"aim": {"$ref": "#/$defs/line"}, "pages": pages}, _MEANINGS, ("pages",)),
        "lesson-page": page,
        "lesson-measure": of(measures.MEASURE),
        "lesson-bound": of(questions.BOUND),
        "lesson-choice": choice,
        "lesson-question": question,
    }
