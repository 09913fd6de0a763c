"""A run is not trustworthy if a step took effect too late, or if the lab logs that it is spoilt."""

from ccplay.analysis.trust import judge
from ccplay.model.commands import Mark, SetLink
from ccplay.model.events import Applied, Log, Ready
from ccplay.state.lab_state import LabState
from ccplay.traffic.flow import StartFlow
from tests.events import folded, health
from tests.unit.test_summary import HELLO


def run(*steps: Applied) -> LabState:
    """Return the state of a run whose network was ready at 2 s and in which steps took effect."""
    return folded(HELLO, Ready(t=2.0), *steps, health(20.0))


def test_a_late_step_is_named_with_both_moments_and_the_tolerance() -> None:
    faster = SetLink(link="bottleneck", rate=5_000_000)
    state = run(
        Applied(t=2.3, command=StartFlow(flow="1"), due=2.0),
        Applied(t=9.0, command=faster, due=6.0),
        Applied(t=9.01, command=Mark(text="a"), due=7.0),
    )
    judged = judge(state)
    assert not judged.trustworthy
    assert judged.late_steps == 2
    assert [each.text for each in state.log][-2:] == [
        "link bottleneck → 5 Mbit/s, 3.0 s late",
        "a, 2.0 s late",
    ]
    (reason,) = judged.reasons
    assert reason == (
        "the step due at 4.0 s (link bottleneck → 5 Mbit/s) took effect at 7.0 s, "
        "more than 0.5 s late, as 1 other step was"
    )


def test_a_step_within_the_tolerance_is_on_time() -> None:
    """A step is on time within 0.5 s; a command without a due time can't be late."""
    judged = judge(
        run(
            Applied(t=6.49, command=Mark(text="a"), due=6.0),
            Applied(t=9.0, command=Mark(text="by hand")),
        )
    )
    assert judged.trustworthy
    assert judged.late_steps == 0


def test_what_spoils_a_run_is_its_reason() -> None:
    text = "the delay line died (signal 9) and was started again: packets it held were lost"
    state = run()
    state.apply(Log(t=3.0, level="warning", text="harmless"))
    state.apply(Log(t=4.0, level="warning", text=text, spoils=True))
    assert judge(state).reasons == [text]
