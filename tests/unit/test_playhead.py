"""One playhead serves live, frozen, scrolled-back and replayed sessions."""

import pytest

from ccplay.share.frames import Playhead


def test_live_follows_the_session() -> None:
    head = Playhead()
    head.advance(12.5, 0.1, done=False)
    assert head.t == head.until == 12.5
    assert head.left == 0.0


@pytest.mark.parametrize("t", [30.0, 31.0, 37.4, 100.0, 1234.5])
def test_the_window_moves_on_by_quarters_when_it_is_full(t: float) -> None:
    head = Playhead()
    head.advance(t, 0.1, done=False)
    assert head.left % 7.5 == 0
    assert head.left + 22.5 <= t < head.right


def test_freezing_stops_the_picture_while_the_session_continues() -> None:
    head = Playhead()
    head.advance(20.0, 0.1, done=False)
    head.toggle(20.0)
    head.advance(40.0, 20.0, done=False)
    assert (head.t, head.until, head.left) == (20.0, 20.0, 0.0)
    head.toggle(40.0)
    assert head.t == 40.0


def test_scrubbing_back_keeps_what_was_seen_in_the_window() -> None:
    head = Playhead()
    head.advance(29.0, 0.1, done=False)
    head.scrub(-5.0, 29.0)
    assert (head.t, head.until, head.left) == (24.0, 29.0, 0.0)


def test_scrubbing_stays_within_the_session() -> None:
    head = Playhead()
    head.advance(50.0, 0.1, done=False)
    head.scrub(-100.0, 50.0)
    assert (head.t, head.left) == (0.0, 0.0)
    head.scrub(1000.0, 50.0)
    assert head.t == 50.0
    assert head.left <= 50.0 < head.right


def test_a_replay_moves_at_its_speed_and_stops_at_the_end() -> None:
    head = Playhead(recorded=True, speed=2.0)
    head.advance(60.0, 1.0, done=True)
    assert head.t == 2.0
    head.advance(60.0, 100.0, done=True)
    assert (head.t, head.running) == (60.0, False)
    head.toggle(60.0)
    assert (head.t, head.running) == (0.0, True)


def test_a_replay_waits_for_the_place_where_it_shall_start() -> None:
    """The playhead waits at its start while the recording is still being read up to there."""
    head = Playhead(recorded=True, t=30.0)
    head.advance(5.0, 0.1, done=False)
    assert head.t == 30.0
    head.advance(60.0, 0.1, done=True)
    assert head.t == pytest.approx(30.1)


def test_zooming_into_the_newest_moment_shows_what_led_to_it() -> None:
    """Zooming in leaves the newest moment in the right quarter of the window."""
    head = Playhead(recorded=True)
    head.advance(100.0, 3.1, done=True)
    head.toggle(100.0)
    for _ in range(4):
        head.zoom(1, 100.0)
    assert head.width == 2.0
    assert head.left + 1.5 <= head.t < head.right


def test_zooming_in_where_more_was_seen_keeps_the_place() -> None:
    head = Playhead()
    head.advance(29.0, 0.1, done=False)
    head.scrub(-23.0, 29.0)
    head.zoom(1, 29.0)
    assert (head.t, head.left, head.until) == (6.0, 0.0, 20.0)


def test_zooming_out_ends_at_the_whole_session() -> None:
    head = Playhead()
    head.advance(100.0, 0.1, done=False)
    for _ in range(20):
        head.zoom(-1, 100.0)
    assert (head.width, head.left) == (120.0, 0.0)
    for _ in range(20):
        head.zoom(1, 100.0)
    assert head.width == 0.1
    assert head.left <= 100.0 < head.right


def test_zooming_while_frozen_keeps_the_cursor_in_the_window() -> None:
    head = Playhead()
    head.advance(100.0, 0.1, done=False)
    head.scrub(-60.0, 100.0)
    for steps in (1, 1, -1, -1, -1):
        head.zoom(steps, 100.0)
        assert head.left <= head.t <= head.right
