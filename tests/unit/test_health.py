"""How busy a machine is, by the times that proc_stat(5) has of it."""

import pytest

from ccplay.lab.health import busy_share


@pytest.mark.parametrize(
    ("spent", "nice", "share"),
    [
        ({"user": 1.0, "system": 0.5, "idle": 0.5}, 0, 0.75),
        ({"user": 1.0, "idle": 0.5, "iowait": 0.5}, 0, 0.5),
        ({"user": 1.0, "steal": 1.0, "idle": 2.0}, 0, 0.5),
        # A compiler under nice(1) gives way to a lab, but not to one that was started so itself.
        ({"user": 0.5, "nice": 1.5, "idle": 0.0}, 0, 0.25),
        ({"user": 0.5, "nice": 1.5, "idle": 0.0}, -5, 0.25),
        ({"user": 0.5, "nice": 1.5, "idle": 0.0}, 10, 1.0),
        ({"user": 0.0, "idle": 0.0}, 0, 0.0),
        # Counters of idle time may go back.
        ({"user": 1.0, "idle": -0.01}, 0, 1.0),
    ],
)
def test_what_gives_way_is_not_busy(spent: dict[str, float], nice: int, share: float) -> None:
    assert busy_share(spent, nice) == pytest.approx(share)
