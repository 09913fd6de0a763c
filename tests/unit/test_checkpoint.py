"""When the first flow of a fixed size is done, every flow's bytes are those of that sweep."""

import pytest

from ccplay.analysis.results import Checkpoint, checkpoint
from ccplay.model import blocks
from ccplay.model.events import Applied, Ready
from ccplay.model.samples import Sweep, Sweeps, TcpRows
from ccplay.state.lab_state import LabState
from ccplay.traffic.flow import FlowEnded, FlowStarted, StartFlow
from tests.events import folded, tcp


def sweep(t: float, acked: dict[str, int]) -> Sweep:
    """Return a sweep as the kernel counts: one more than the payload, for the SYN."""
    return Sweep(t=t, tcp=tcp(acked, bytes_acked=[size + 1 for size in acked.values()]))


def race(*flows: str, streams: int = 1, sizes: dict[str, int] | None = None) -> LabState:
    state = folded(Ready(t=0.5))
    for number, flow in enumerate(flows):
        size = (sizes or {}).get(flow)
        state.apply(Applied(t=0.9, command=StartFlow(flow=flow, streams=streams, bytes=size)))
        state.apply(
            FlowStarted(
                t=1.0 + number / 10,
                flow=flow,
                src="h1",
                dst="h2",
                cc="reno",
                port=1,
                streams=streams,
            )
        )
    return state


def reached(state: LabState, sizes: dict[str, int] | None = None) -> Checkpoint:
    found = checkpoint(state, sizes)
    assert found is not None
    return found


def test_bytes_are_exact_however_many() -> None:
    """Series hold floats of 24 bits; a checkpoint must not be read off them."""
    sizes = {"1": 10**9, "2": 10**9}
    state = race("1", "2", sizes=sizes)
    state.apply(sweep(2.0, {"1": 999_999_999, "2": 800_000_001}))
    assert checkpoint(state, sizes) is None
    state.apply(sweep(2.1, {"1": 1_000_000_001, "2": 800_000_003}))
    taken = reached(state, sizes)
    assert taken.bytes == {"1": 1_000_000_001, "2": 800_000_003}
    assert (taken.t, taken.elapsed_s, taken.first) == (2.1, 1.1, "1")
    assert taken.ratio == 1.25


def test_the_ratio_keeps_the_order_of_the_file_whoever_wins() -> None:
    state = race("2", "1", sizes={"1": 1000, "2": 1000})
    state.apply(sweep(2.0, {"1": 500, "2": 1000}))
    taken = reached(state, {"1": 1000, "2": 1000})
    assert (taken.first, taken.ratio, list(taken.bytes)) == ("2", 0.5, ["1", "2"])


def test_streams_count_together_and_other_flows_are_reported_too() -> None:
    state = race("1", "long", streams=2, sizes={"1": 1000})
    state.apply(sweep(2.0, {"1": 600, "1/2": 400, "long": 70, "long/2": 7}))
    taken = reached(state, {"1": 1000})
    assert taken.bytes == {"1": 1000, "long": 77}
    assert taken.ratio is None


def test_of_two_in_one_sweep_the_one_further_beyond_its_end_was_first() -> None:
    state = race("1", "2", sizes={"1": 1000, "2": 1000})
    state.apply(sweep(2.0, {"1": 1001, "2": 1050}))
    taken = reached(state, {"1": 1000, "2": 1000})
    assert taken.first == "2"


def test_an_end_whose_sweep_was_lost_is_seen_all_the_same() -> None:
    state = race("1", sizes={"1": 1000})
    state.apply(sweep(2.0, {"1": 900}))
    state.apply(FlowEnded(t=2.2, flow="1", bytes=1000, duration_s=1.1, retransmits=0))
    taken = reached(state, {"1": 1000})
    assert taken.bytes == {"1": 1000}


def test_a_flow_that_died_early_is_not_done() -> None:
    state = race("1", sizes={"1": 1000})
    state.apply(FlowEnded(t=2.2, flow="1", bytes=10, duration_s=1.1, retransmits=0, error="died"))
    assert checkpoint(state, {"1": 1000}) is None
    assert checkpoint(race("1"), {"2": 1000}) is None


def test_a_block_has_the_same_checkpoint_as_its_sweeps() -> None:
    """To the sweep and to the byte, however many bytes; a gap changes nothing."""
    sizes = {"1": 10**9, "2": 10**9}
    sweeps = [
        sweep(2 + n / 50, {"1": 10**9 - 9 + 3 * n, "1/2": n, "2": 9 * 10**8 + n}) for n in range(9)
    ]
    one, block = (race("1", "2", streams=2, sizes=sizes) for _ in range(2))
    for each in sweeps:
        one.apply(each)
    block.apply(blocks.pack(sweeps))
    taken = reached(one, sizes)
    # 10**9 - 9 + 3 n of one stream and n of the other: enough at the fourth sweep.
    assert taken.t == 2.06
    assert taken.bytes == {"1": 10**9 + 3, "2": 9 * 10**8 + 3}
    assert checkpoint(block, sizes) == taken


def test_a_gap_in_a_block_hides_no_checkpoint() -> None:
    """A sweep that missed a stream counts what was known of it, wherever the gap is."""
    state = race("1", "2", streams=2, sizes={"1": 1000})
    state.apply(sweep(2.0, {"1": 300, "1/2": 300, "2": 7}))
    fields = {"bytes_acked": [[None, 501, 200], [402, None, None], [8, None, 1]]}
    rows = TcpRows(flow=["1", "1/2", "2"], cc=["reno"] * 3, fields=fields)  # type: ignore[arg-type]
    state.apply(Sweeps(t=2.1, after_us=[100_000, 100_000], tcp=rows))
    taken = reached(state)
    # 300 and 401, then 500 and 401 as before, then 700 and 401.
    assert (taken.t, taken.bytes) == (2.3, {"1": 1101, "2": 8})


@pytest.mark.parametrize("size", [0, -5])
def test_a_size_that_is_none_decides_nothing(size: int) -> None:
    """A stranger's recording may have any number."""
    state = race("1", sizes={"1": size})
    state.apply(sweep(2.0, {"1": 500}))
    assert checkpoint(state) is None


def test_the_order_is_the_sessions_own_where_none_is_given() -> None:
    state = race("2", "1", sizes={"1": 1000, "2": 1000})
    state.apply(sweep(2.0, {"1": 500, "2": 1000}))
    taken = reached(state)
    assert (taken.ratio, list(taken.bytes)) == (2.0, ["2", "1"])
    assert checkpoint(state, {"1": 1000, "2": 1000}) != taken
