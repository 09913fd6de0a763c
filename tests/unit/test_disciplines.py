"""The catalogue of queue disciplines and its checks."""

import re

import pytest

from ccplay.model.base import Option
from ccplay.model.disciplines import DISCIPLINES, validate
from ccplay.model.quantities import Field
from ccplay.model.values import Qdisc
from ccplay.model.wording import describe_qdisc


def parameters() -> list[tuple[str, Field]]:
    """Every parameter of every kind."""
    return [(each.kind, one) for each in DISCIPLINES.values() for one in each.parameters]


@pytest.mark.parametrize(("kind", "parameter"), parameters(), ids=lambda each: str(each)[:30])
def test_what_a_parameter_writes_it_reads(kind: str, parameter: Field) -> None:
    """A default shown in a field is understood when it comes back from there."""
    for value in (parameter.default, parameter.low or None):
        if value is not None and parameter.low is not None:
            assert parameter.parse(parameter.show(value)) == value
    if parameter.default is not None:
        assert parameter.parse(parameter.show(parameter.default)) == parameter.default


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("pfifo", {}, {"limit": 100}),
        ("pfifo", {"limit": "20 packets"}, {"limit": 20}),
        ("bfifo", {"limit": "64 KiB"}, {"limit": 65536}),
        ("codel", {}, {}),
        ("codel", {"target": "5 ms", "ecn": True}, {"target": 5000, "ecn": True}),
        ("tbf", {"rate": "1.5 Mbit/s"}, {"rate": 1_500_000, "burst": 15_000, "limit": 150_000}),
        ("cake", {"flow_mode": "flows", "rtt": 20_000.0}, {"flow_mode": "flows", "rtt": 20_000}),
    ],
)
def test_values_come_out_in_the_kernels_units(
    kind: str, options: dict[str, Option], expected: dict[str, Option]
) -> None:
    """Text becomes numbers, and what the kernel insists on is filled in."""
    assert validate(Qdisc(kind=kind, options=options)).options == expected


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("fqcodel", {}, 'unknown queue discipline "fqcodel"; did you mean "fq_codel"?'),
        ("pfifo", {"limt": 9}, 'pfifo has no parameter "limt"; did you mean "limit"?'),
        ("pfifo", {"limit": 0}, "pfifo: limit: must be from 1 packets"),
        ("pfifo", {"limit": "many"}, '"many" is not a number of packets such as "100"'),
        ("pfifo", {"limit": True}, 'limit: must be a number of packets such as "100", not true'),
        ("codel", {"ecn": "perhaps"}, 'must be on or off, not "perhaps"'),
        ("codel", {"ecn": 3}, "ecn: must be on or off, not 3"),
        ("cake", {"flow_mode": "flow"}, 'unknown flow_mode "flow"; did you mean "flows"?'),
        ("tbf", {}, "tbf needs rate"),
        ("choke", {"bandwidth": "1 Mbit/s", "min": 9, "max": 3}, "min must be smaller than max"),
    ],
)
def test_a_mistake_is_named_with_what_was_meant(
    kind: str, options: dict[str, Option], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        validate(Qdisc(kind=kind, options=options))


def test_a_queue_is_described_in_the_units_of_the_catalogue() -> None:
    """The limit comes first, other parameters with their names."""
    tbf = validate(Qdisc(kind="tbf", options={"rate": 1_500_000}))
    assert describe_qdisc(tbf) == "tbf 150 kB rate 1.5 Mbit/s burst 15 kB"
    assert describe_qdisc(Qdisc(kind="plug", options={"limit": 7})) == "plug 7"
