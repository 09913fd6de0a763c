"""A full disk ends a recording, not the session, and what was recorded stays readable."""

from tests.lab.namespaced import call
from tests.lab.recording_cases import LEFT


def test_a_full_disk_ends_the_recording_and_nothing_else() -> None:
    """The disk is real: a file system with 100 kB free."""
    found = call("tests.lab.recording_cases:fill_the_disk")
    assert found["words"] == ["recording to /run/x.ccplay stopped: No space left on device"]
    assert found["error"] is None
    assert found["acked_since"] > 0
    assert found["bytes"] > LEFT / 2
    # All but the two seconds of the last block, and a moment.
    assert found["stopped"] - 3.0 < found["kept_until"] <= found["stopped"]
    assert found["kept_flows"] == ["1", *(f"1/{n}" for n in range(2, 9))]
    assert found["kept_build"] is True
