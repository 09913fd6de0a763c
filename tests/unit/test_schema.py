"""The schema is made from the code, accepts all that the code accepts, and finds plain mistakes."""

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ccplay.assets import assets
from ccplay.cli import main
from ccplay.model.disciplines import DISCIPLINES
from ccplay.model.quantities import fields_of
from ccplay.scenario.library import shipped
from ccplay.scenario.schema import schema, text
from ccplay.scenario.timeline import ACTIONS

VALIDATOR = Draft202012Validator(schema())
HEAD = 'duration = "60 s"\n'
SHIPPED = assets("scenarios") / "schema.json"


def complaints(toml: str) -> list[str]:
    """Return what the schema finds wrong with a file."""
    return [error.message for error in VALIDATOR.iter_errors(tomllib.loads(toml))]


def test_what_is_shipped_is_what_is_made() -> None:
    """The shipped schema is current; ``ccplay schema > scenarios/schema.json`` updates it."""
    assert SHIPPED.read_text() == text()


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()


def test_every_reference_has_a_definition() -> None:
    """Every reference in the schema is defined: an editor ignores a schema with a broken one."""
    referred = set(re.findall(r'"\$ref": "#/\$defs/([^"]+)"', text()))
    assert referred
    assert referred <= schema()["$defs"].keys()


def test_it_is_a_schema() -> None:
    validator = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    assert [error.message for error in validator.iter_errors(schema())] == []


@pytest.mark.parametrize("name", sorted(shipped()))
def test_shipped_scenarios_fit_and_name_the_schema(name: str) -> None:
    toml = shipped()[name].read_text()
    assert toml.startswith("#:schema ./schema.json\n")
    assert complaints(toml) == []


def test_the_examples_of_the_documentation_fit() -> None:
    found = re.findall(
        r"```toml\n(.*?)```", (assets("scenarios") / "README.md").read_text(), re.DOTALL
    )
    for example in found:
        assert complaints(HEAD + re.sub(r"^duration.*\n", "", example, flags=re.MULTILINE)) == []


def test_a_schema_is_no_scenario() -> None:
    assert "schema" not in shipped()


def test_it_knows_all_actions_fields_disciplines_and_parameters() -> None:
    found = text()
    words = [
        *ACTIONS,
        *(each.key for action in ACTIONS.values() for each in fields_of(action).values()),
        *DISCIPLINES,
    ]
    words += [each.name for kind in DISCIPLINES.values() for each in kind.parameters]
    assert [word for word in words if f'"{word}"' not in found] == []


def test_every_key_has_its_meaning() -> None:
    """Every key has a description, which an editor shows."""
    assert list(_undescribed(schema())) == []


def _undescribed(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        properties = part.get("properties", {}) if part.get("type") == "object" else {}
        yield from (key for key, value in properties.items() if "description" not in value)
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for each in inner:
        yield from _undescribed(each)


@pytest.mark.parametrize(
    "toml",
    [
        "links.bottleneck.queue.limit = 20",
        'links."r1->r2".rate = "unlimited"',
        'links.bottleneck = { rate = "1.5Mbps", jitter = "2 MS", loss = ".5%" }',
        'links.bottleneck.rate = "10 MBit"',
        'links.bottleneck.rate = "10 MB/s"',
        'links.bottleneck.queue = { kind = "codel", ecn = "on", target = "5 ms" }',
        'links.bottleneck.queue = { kind = "codel", limit = "9 packets" }',
        'links.bottleneck.queue = { kind = "bfifo", limit = "3000" }',
        'timeline = [{ at = "0 s", do = "set-qdisc", kind = "tbf", rate = "1 Mbit/s" }]',
        'timeline = [{ after = "p1", do = "set-link", loss = "0 %" }]',
        'expect = [{ metric = "jain", value = 1, tolerance = "5 %", why = "x" }]',
        'expect = [{ metric = "jain", at_least = 1, at_most = 2, why = "x" }]',
        'topology = { kind = "written", hosts = ["a", "b-c"], links = [{ ends = ["a", "b-c"] }] }',
        'topology = { kind = "linear", observed = ["h2->r"] }',
        "matrix.seed = [1, 2]",
        "matrix.a = { path = ['seed', 'repeats'], values = [1, 2] }",
        "matrix.a = { path = 'topology', values = [{}], names = ['x'] }",
        "[[case]]\nname = 'a'\nmatrix.a.values = [3]",
    ],
)
def test_what_is_right_fits(toml: str) -> None:
    assert complaints(HEAD + toml) == []


@pytest.mark.parametrize(
    "toml",
    [
        'titel = "T"',
        "duration = 60",
        'duration = "60"',
        'duration = "60 x"',
        'until = "al"',
        "repeats = 0",
        "repeats = 1.5",
        'balanced = "yes"',
        'sampling = "50"',
        'topology.kind = "lineal"',
        "topology.pairs = 9",
        'links.bottlneck.rate = "1 Mbit/s"',
        "links.bottleneck.rate = 10",
        'links.bottleneck.rate = "10 ms"',
        'links.bottleneck.rate = "10 mb/s"',
        'links.bottleneck.rate = "10 MBps"',
        'links.bottleneck.loss = "0.02"',
        'links.bottleneck.dealy = "1 ms"',
        'links.bottleneck.queue.kind = "pfifi"',
        'links.bottleneck.queue = { kind = "pfifo", limit = 0 }',
        'links.bottleneck.queue = { kind = "pfifo", target = "5 ms" }',
        'links.bottleneck.queue = { kind = "bfifo", limit = 30000 }',
        'links.bottleneck.queue = { kind = "tbf" }',
        "links.bottleneck.queue.limt = 3",
        'hosts.h1.cc = "cubik"',
        'hosts."h 1".cc = "cubic"',
        'links."r1-".rate = "1 Mbit/s"',
        'topology = { kind = "written", hosts = ["h1", "h2"] }',
        'topology = { kind = "written", hosts = ["h1", "h 2"], links = [] }',
        'topology = { kind = "written", hosts = ["h1", "h2"], links = [{ ends = ["h1"] }] }',
        'topology = { kind = "star", hosts = ["h1", "h2"] }',
        "timeline = {}",
        "timeline = [{}]",
        'timeline = [{ do = "start-flow" }]',
        'timeline = [{ at = "0 s", do = "strat-flow" }]',
        'timeline = [{ at = "0 s", do = "start-flow", flow = 1 }]',
        'timeline = [{ at = "0 s", do = "start-flow", flow = "a b" }]',
        'timeline = [{ at = "0 s", do = "start-flow", interval = "1 s" }]',
        'timeline = [{ at = "0 s", do = "stop-flow" }]',
        'timeline = [{ at = "0 s", do = "set-link" }]',
        'timeline = [{ at = "0 s", do = "set-qdisc" }]',
        'timeline = [{ at = "0 s", do = "set-qdisc", kind = "pfifo", limt = 3 }]',
        'timeline = [{ at = "0 s", do = "set-congestion-control", cc = "bbr" }]',
        'timeline = [{ at = "0 s", do = "set-classes" }]',
        "metrics = ['jain', 'jain']",
        "metrics = ['Jain']",
        "expect = [{ metric = 'jain', at_least = 1 }]",
        "expect = [{ metric = 'jain', value = 1, why = 'x' }]",
        "expect = [{ metric = 'jain', value = 1, tolerance = '5', why = 'x' }]",
        "expect = [{ metric = 'jain', value = 1, tolerance = 1, at_least = 1, why = 'x' }]",
        "expect = [{ metric = 'jain', value = 1, at_least = 1, why = 'x' }]",
        "published = [{ metric = 'jain', values = [] }]",
        "matrix.seed = 3",
        "matrix.seed = []",
        "matrix.seed = [[1]]",
        "matrix.a = { path = 'seed', valeus = [1] }",
        "case = []",
        "[[case]]\nseed = 3",
        "[[case]]\nname = 'a'\ntitle = 'b'",
    ],
)
def test_what_an_editor_can_see_to_be_wrong_does_not_fit(toml: str) -> None:
    assert complaints((HEAD if not toml.startswith("duration") else "") + toml)


def test_a_duration_is_needed_somewhere() -> None:
    assert complaints("")
    assert complaints("[[case]]\nname = 'a'\nduration = '1 s'\n[[case]]\nname = 'b'")
    assert complaints("[[case]]\nname = 'a'\nduration = '1 s'") == []
