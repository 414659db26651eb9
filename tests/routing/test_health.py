"""What rests, and for how long."""

import pytest

from conversations import health
from conversations.health import Health, Rested

KEYS = ("one", "two")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(health, "time", made)
    return made


def test_a_limited_key_is_used_again_when_its_rest_is_over(clock: Clock) -> None:
    told: list[Rested] = []
    state = Health(told.append)
    state.limited("a", KEYS, "one", 7.0)
    assert [state.pick("a", KEYS) for _ in range(2)] == ["two", "two"]
    assert told == [Rested("a", 1, "rate limited (HTTP 429)", 7.0)]
    clock.now += 7.1
    assert {state.pick("a", KEYS) for _ in range(2)} == set(KEYS)


def test_when_all_rest_the_one_that_is_due_first_is_taken(clock: Clock) -> None:
    state = Health()
    state.refused("a", KEYS, "one", 401)
    state.limited("a", KEYS, "two", None)
    assert not state.has_key("a", KEYS)
    assert state.pick("a", KEYS) == "two"
    assert state.pick("b", KEYS) == "one"


def test_no_upstream_can_make_a_key_rest_for_ever(clock: Clock) -> None:
    state = Health()
    state.limited("a", KEYS, "one", 1e9)
    clock.now += health.LONGEST + 1
    assert state.has_key("a", ("one",))


def test_an_answer_ends_the_rest_of_its_key(clock: Clock) -> None:
    state = Health()
    state.refused("a", KEYS, "one", 403)
    state.accepted("a", "one")
    assert state.has_key("a", ("one",))


def test_an_upstream_rests_after_three_requests_in_a_row_and_is_tried_again_by_itself(clock: Clock) -> None:
    state = Health()
    state.unreachable("a", "gone")
    state.unreachable("a", "gone")
    state.reached("a")
    for _ in range(3):
        assert not state.is_resting("a")
        state.unreachable("a", "gone")
    assert state.is_resting("a")
    clock.now += health.UPSTREAM_SECONDS + 0.1
    assert not state.is_resting("a")
    state.unreachable("a", "still gone")
    assert state.is_resting("a")
    state.reached("a")
    assert not state.is_resting("a")


def test_without_keys_there_is_nothing_to_pick() -> None:
    assert Health().pick("a", ()) == ""
