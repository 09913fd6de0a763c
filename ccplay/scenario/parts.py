"""The description of a scenario file, and the one walk over it that reads, writes and explains it.

A part says what may stand at one place of a file: a single value (a ``Field``), a list, a table
with known keys, or a table whose keys are names. Each part reads its value from nodes, writes it as
plain values of TOML, and gives its JSON Schema; parts within it do the same, so that a setting of a
struct in the model needs only its ``Field`` there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from ccplay.model.quantities import Described, Field, Plain, Shape, fields_of
from ccplay.scenario.tree import TODAYS, Placed, Reader

WRONG: Any = None
"""What a part returns for a value with a mistake, which it has recorded."""


class Part(Described, frozen=True, kw_only=True, eq=False):
    """What may stand at one place of a file."""

    meaning: str = ""
    """Meaning of what stands there in one line, for editors."""
    definition: str = ""
    """Name of its definition in the JSON Schema; empty if its shape is repeated where it stands."""

    def read(self, node: Placed, reader: Reader) -> Any:
        """Return the value of a node; ``WRONG`` if it has a mistake."""
        raise NotImplementedError

    def write(self, value: Any) -> Plain:
        """Return a value as plain TOML, from which ``read`` restores it."""
        raise NotImplementedError

    def form(self) -> Shape:
        """Return the JSON Schema of what ``read`` accepts."""
        raise NotImplementedError

    @property
    def shape(self) -> Shape:
        """The JSON Schema of the part where it stands: a reference if it has a definition."""
        return ref(self.definition) if self.definition else self.form()


def ref(name: str) -> Shape:
    """Return a reference to a definition of the schema."""
    return {"$ref": f"#/$defs/{name}"}


def read_part(part: Part | Field, node: Placed, reader: Reader) -> Any:
    """Return the value of a node as a part or a field describes it."""
    if isinstance(part, Part):
        return part.read(node, reader)
    return reader.value(node, part.read, WRONG)


class Items(Part, frozen=True, kw_only=True, eq=False):
    """A list of parts; members with a mistake are left out."""

    of: Part | Field
    noun: str = "tables"
    """What its members are, for messages."""
    least: int = 0
    most: int | None = None
    bounds: str = ""
    """Message about a list with too few or too many members; by default ``more than MOST``."""
    instead: Any = WRONG
    """What stands in the place of a member with a mistake, if its place matters."""
    check: Callable[[list[Any], Placed, Reader], None] | None = None
    """A function that records contradictions between members, once none has a mistake."""
    make: Callable[[list[Any]], Any] = list
    words: Shape = msgspec.field(default_factory=dict)
    """Other words of its JSON Schema."""

    def read(self, node: Placed, reader: Reader) -> Any:
        """Return the members that have no mistake, in a list."""
        before = reader.mistakes.count
        nodes = reader.members(node, self.noun)
        if len(nodes) < self.least or (self.most is not None and len(nodes) > self.most):
            if isinstance(node.value, list):
                reader.mistakes.add(node.place, self.bounds or f"more than {self.most}")
            return WRONG
        found = []
        for each in nodes:
            value = read_part(self.of, each, reader)
            if value is not WRONG or self.instead is not WRONG:
                found.append(self.instead if value is WRONG else value)
        if self.check is not None and reader.mistakes.count == before:
            self.check(found, node, reader)
        return self.make(found)

    def write(self, value: Any) -> Plain:
        """Return the members in a list."""
        return [self.of.write(each) for each in value]

    def form(self) -> Shape:
        """Return the JSON Schema of the list."""
        least = {"minItems": self.least} if self.least else {}
        most = {} if self.most is None else {"maxItems": self.most}
        return {"type": "array", "items": self.of.shape, **least, **most, **self.words}


class Named(Part, frozen=True, kw_only=True, eq=False):
    """A table whose keys are names chosen by the user, each with the same part."""

    of: Part
    pattern: str = ""
    """Pattern of the names; empty if any may stand."""
    most: int | None = None
    bounds: str = ""
    """Message about a table with too many names."""

    def read(self, node: Placed, reader: Reader) -> Any:
        """Return the values without a mistake by name."""
        table = reader.table(node)
        if self.most is not None and len(table) > self.most:
            reader.mistakes.add(node.place, self.bounds)
        read = {name: self.of.read(each, reader) for name, each in table.items()}
        return {name: each for name, each in read.items() if each is not WRONG}

    def form(self) -> Shape:
        """Return the JSON Schema of the table."""
        most = {} if self.most is None else {"maxProperties": self.most}
        if not self.pattern:
            return {"type": "object", "additionalProperties": self.of.shape, **most}
        by_name = {self.pattern: self.of.shape}
        return {"type": "object", "patternProperties": by_name, "additionalProperties": False}


Keys: TypeAlias = Mapping[str, Part | Field]
"""What may stand under each key of a table."""


def keys_of(struct: type[msgspec.Struct], **others: Part | Field) -> dict[str, Part | Field]:
    """Return the keys of a table that stands for a struct: its fields, then ``others``."""
    return {each.key: each for each in fields_of(struct).values()} | others


Check = Callable[[dict[str, Any], Placed, Reader], None]
"""A function that records contradictions between the values of a table, by name: those of them that
could be read."""


class TomlTable(Part, frozen=True, kw_only=True, eq=False):
    """A table with known keys, read into whatever ``make`` makes of its values by name."""

    keys: Keys
    make: Callable[..., Any] = dict
    check: Check | None = None
    partial: bool = False
    """Whether a table with a mistake is made of the values that could be read."""
    missing: Mapping[str, str] = {}
    """What a message says of a missing key after ``KEY is missing``; by default its meaning."""
    words: Shape = msgspec.field(default_factory=dict)
    """Other words of its JSON Schema."""

    def read(self, node: Placed, reader: Reader) -> Any:
        """Return what ``make`` makes of the values by name; ``WRONG`` if one has a mistake."""
        before = reader.mistakes.count
        table = reader.table(node, self.keys)
        if not isinstance(node.value, dict):
            return WRONG
        # A misspelt key would look like one that is missing.
        is_known = reader.mistakes.count == before
        values = self.values(Placed(node.place, table), reader)
        if self.check is not None and is_known:
            self.check(values, node, reader)
        return self.make(**values) if self.partial or reader.mistakes.count == before else WRONG

    def values(self, node: Placed, reader: Reader) -> dict[str, Any]:
        """Return the values by name of a table whose keys are all known."""
        found = {}
        for key, entry in self.keys.items():
            if key in node.value:
                found[entry.name or key] = read_part(entry, node.value[key], reader)
            elif entry.required:
                rest = self.missing.get(key, f": {entry.meaning}")
                reader.mistakes.add(node.place, f"{key} is missing{rest}")
        return {name: value for name, value in found.items() if value is not WRONG}

    def write(self, value: Any) -> dict[str, Plain]:
        """Return the values of a struct by key, without those that a missing key stands for."""
        written: dict[str, Plain] = {}
        for key, entry in self.keys.items():
            each = getattr(value, entry.name or key)
            if entry.is_written and (entry.required or each != entry.default):
                written[key] = entry.write(each)
        return written

    def form(self) -> Shape:
        """Return the JSON Schema of the table."""
        needed = tuple(key for key, entry in self.keys.items() if entry.required)
        return table_shape(dict(described(self.keys)), needed, **self.words)


def described(keys: Keys) -> Iterator[tuple[str, Shape]]:
    """Yield the JSON Schema of each key, with its meaning."""
    for key, entry in keys.items():
        meaning = {"description": entry.meaning} if entry.meaning else {}
        yield key, {**meaning, **entry.shape}


def table_shape(
    properties: Mapping[str, Shape], required: tuple[str, ...] = (), **words: Any
) -> Shape:
    """Return the JSON Schema of a table with exactly these keys, and their older names."""
    older = {name: today for name, today in TODAYS.items() if today in properties}
    deprecated = {
        name: {
            **{word: each for word, each in properties[today].items() if word != "description"},
            "description": f"Older name of {today}",
            "deprecated": True,
        }
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
        "properties": {**properties, **deprecated},
        "additionalProperties": False,
        **({"required": always} if always else {}),
        **({"allOf": either} if either else {}),
        **words,
    }
