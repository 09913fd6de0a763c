"""Settings as commands describe them: bounds for the lab, and values that survive a file."""

import pytest

from ccplay.errors import CommandError
from ccplay.model.base import Command
from ccplay.model.quantities import Field, check, fields_of
from ccplay.scenario.timeline import ACTIONS
from ccplay.traffic.flow import StartFlow
from ccplay.traffic.ping import StartPing
from ccplay.traffic.udp import StartUdp

DEFAULTS = [
    field
    for action in ACTIONS.values()
    for field in fields_of(action).values()
    if field.default is not None
]


@pytest.mark.parametrize("field", DEFAULTS, ids=lambda field: field.name)
def test_a_default_fits_and_is_read_back_from_a_file(field: Field) -> None:
    assert field.check(field.default) == field.default
    assert field.read(field.write(field.default)) == field.default


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (StartFlow(streams=129), "a: streams: must be from 1 to 128, not 129"),
        (StartFlow(bytes=0), "a: bytes: must be from 1 B to 1000 GB, not 0 B"),
        (StartUdp(rate_bps=1), "a: rate: must be from 1 kbit/s to 1 Gbit/s, not 1 bit/s"),
        (StartPing(interval_s=float("nan")), "a: interval: must be from 10 ms to 60 s"),
    ],
)
def test_the_lab_refuses_what_is_out_of_bounds(command: Command, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        check(command, "a")
