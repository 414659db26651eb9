"""A web process whose event loop stands still is noticed, and nobody else."""

import os

from bridge_project.up import board
from bridge_project.up.board import NOBODY, PLACE, Board
from bridge_project.up.pulse import LOOKS, Pulse

SELF = os.getpid()


def test_who_stands_still_for_all_looks_is_told_and_who_goes_on_again_is_not() -> None:
    with board.made(2) as shared:
        own, pulse = Board(shared.fileno()), Pulse(shared, 60)
        own.beat()
        assert [pulse.look() for _ in range(LOOKS + 2)] == [{}] * LOOKS + [{SELF: 0}, {SELF: 1}]
        own.beat()
        assert [pulse.look() for _ in range(LOOKS + 1)] == [{}] * LOOKS + [{SELF: 0}]


def test_who_starts_or_shuts_down_may_take_its_time() -> None:
    with board.made(1) as shared:
        own, pulse = Board(shared.fileno()), Pulse(shared, 60)
        assert not any(pulse.look() for _ in range(LOOKS * 2))
        own.beat()
        own.tell(NOBODY)
        assert not any(pulse.look() for _ in range(LOOKS * 2))


def test_a_beat_is_one_after_years_too() -> None:
    with board.made(1) as shared:
        own = Board(shared.fileno())
        os.pwrite(shared.fileno(), PLACE.pack(0, NOBODY, SELF), 0)
        own.beat()
        assert board.beats(shared) == {SELF: 1}
