"""The description of a setting of a command, link, queue or topology, shared by all its users."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, get_origin, get_type_hints

import msgspec
from msgspec.structs import replace

from ccplay.errors import CommandError
from ccplay.model.quantities import Plain, Quantity, Shape
from ccplay.model.quoting import MisfitError


class Field(msgspec.Struct, frozen=True):
    """A setting: its quantity, its bounds, and its names for people and files.

    It annotates a field of a struct, ``Annotated[int, Field(…)]``; ``fields_of`` adds what the
    struct defines: the name, the default, and whether the setting is required.
    """

    quantity: Quantity
    meaning: str
    """Meaning of the setting in one line, for editors and dialogs."""
    low: float | None = None
    high: float | None = None
    """Upper bound, inclusive; None if there is none."""
    default: Any = None
    """Default value; None if the lab or the kernel chooses one."""
    required: bool = False
    """Whether the setting must be present: ``default`` replaces a missing one; without it, an
    error."""
    key: str = ""
    """Key of the setting in scenario files."""
    label: str = ""
    """Label of the setting in a dialog."""
    hint: str = ""
    """Hint in a dialog: a few words, or examples."""
    unset: str = ""
    """Text for a missing value without ``default``: ``no limit``."""
    name: str = ""
    """Name of the struct's field, or of the parameter."""

    def read(self, value: Any) -> Any:
        """Read a value from TOML. Raises ``ValueError`` with an example."""
        return self._within(self.quantity.read(value))

    def parse(self, text: str) -> Any:
        """Read typed text: ``100``, ``5 ms``, ``on``. Raises ``ValueError``."""
        return self._within(self.quantity.parse(text))

    def check(self, value: Any) -> Any:
        """Return a value of the model in its own type. Raises ``ValueError`` if it is invalid."""
        return self._within(self.quantity.held(value))

    def write(self, value: Any) -> Plain:
        """Return a value for a scenario file, from which ``read`` restores it exactly."""
        return self.quantity.write(value)

    def show(self, value: Any) -> str:
        """Return a value as short text that people and ``parse`` understand."""
        return self.quantity.show(value)

    @property
    def bounds(self) -> str:
        """Both bounds as text: ``16 bytes to 65507 bytes``."""
        return f"{self.show(self.low)} to {self.show(self.high)}"

    @property
    def shape(self) -> Shape:
        """JSON Schema of the values that ``read`` accepts, with references to definitions."""
        quantity = self.quantity
        shape = {"$ref": f"#/$defs/{quantity.name}"} if quantity.name else quantity.shape
        if quantity.is_number and self.low is not None:
            shape = {**shape, "minimum": self.low, "maximum": self.high}
        return shape

    def _within(self, value: Any) -> Any:
        if self.low is None or self.high is None or self.low <= value <= self.high:
            return value
        if self.quantity.unlimited and value == 0:
            return value
        raise MisfitError(f"must be from {self.bounds}, not {self._shown(value)}")

    def _shown(self, value: Any) -> str:
        try:
            return self.show(value)
        except OverflowError:
            return "this"


@cache
def fields_of(struct: type[msgspec.Struct]) -> Mapping[str, Field]:
    """Return the fields described in a struct's annotations, by name, in the struct's order."""
    known = {each.name: each for each in msgspec.structs.fields(struct)}
    found = {}
    for name, annotation in get_type_hints(struct, include_extras=True).items():
        marks = annotation.__metadata__ if get_origin(annotation) is Annotated else ()
        for field in (each for each in marks if isinstance(each, Field)):
            default = known[name].default
            found[name] = replace(
                field,
                name=name,
                key=field.key or name,
                default=None if default is msgspec.NODEFAULT else default,
                required=known[name].required,
            )
    return found


def check(settings: msgspec.Struct, what: str) -> None:
    """Raise ``CommandError`` if a number in a command or a link's setting is out of bounds.

    The message begins with ``what``, the owner of the number: ``flow 3``.
    """
    for name, field in fields_of(type(settings)).items():
        value = getattr(settings, name)
        if value is None or field.low is None:
            continue
        try:
            field.check(value)
        except ValueError as error:
            raise CommandError(f"{what}: {field.key}: {error}") from None
