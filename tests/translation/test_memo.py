"""The memo of pure functions."""

from translation.memo import ENTRY, Memo, hand_on, once, remembered


def test_work_is_done_once() -> None:
    memo: Memo[int] = Memo(budget=10_000, largest=50)
    calls: list[int] = []

    def work() -> int:
        calls.append(1)
        return 7

    assert [memo.get(b"key", work), memo.get(b"key", work)] == [7, 7]
    assert len(calls) == 1


class Unhashed(bytes):
    """To look for megabytes is to read them, for nothing."""

    def __hash__(self) -> int:
        raise AssertionError


def test_what_is_too_large_is_neither_looked_for_nor_kept() -> None:
    memo: Memo[int] = Memo(budget=10_000, largest=3)
    values = iter((1, 2))
    assert [memo.get(Unhashed(b"large"), lambda: next(values)) for _ in range(2)] == [1, 2]


def test_what_was_not_used_since_goes_first() -> None:
    memo: Memo[str] = Memo(budget=4 * (ENTRY + 4), largest=8)
    memo.get(b"aaaa", lambda: "a")
    memo.get(b"bbbb", lambda: "b")
    memo.get(b"cccc", lambda: "c")  # a and b are the older generation now
    assert memo.get(b"aaaa", lambda: "gone") == "a"
    memo.get(b"dddd", lambda: "d")
    assert memo.get(b"aaaa", lambda: "gone") == "a"
    assert memo.get(b"bbbb", lambda: "gone") == "gone"


def test_many_are_looked_up_at_once() -> None:
    memo: Memo[str] = Memo(budget=10_000, largest=3)
    memo.get(b"b", lambda: "known")
    made = [f"made {place}" for place in range(3)]
    assert memo.get_all([b"a", b"b", b"c"], lambda place: made[place]) == ["made 0", "known", "made 2"]
    assert memo.get_all([b"a", b"b", b"c"], lambda place: "again") == ["made 0", "known", "made 2"]
    assert memo.get_all([], lambda place: "again") == []


def test_of_many_what_comes_twice_is_made_once() -> None:
    memo: Memo[str] = Memo(budget=10_000, largest=3)
    assert memo.get_all([b"a", b"b", b"a"], lambda place: f"made {place}") == ["made 0", "made 1", "made 0"]


def test_among_many_what_is_too_large_is_not_looked_for() -> None:
    memo: Memo[str] = Memo(budget=10_000, largest=3)
    memo.get(b"a", lambda: "known")
    assert memo.get_all([b"a", Unhashed(b"large")], lambda place: f"made {place}") == ["known", "made 1"]


def test_a_property_is_worked_out_once() -> None:
    worked: list[int] = []

    class Value:
        @once
        def double(self) -> int:
            worked.append(1)
            return 4

    value = Value()
    assert [value.double, value.double] == [4, 4]
    assert len(worked) == 1


class Number:
    def __init__(self, value: int) -> None:
        self.value = value


def test_what_is_remembered_of_values_is_worked_out_once_for_each() -> None:
    worked: list[int] = []

    @remembered
    def half(number: Number) -> int | None:
        """None is a result like any other."""
        worked.append(number.value)
        return None if number.value % 2 else number.value // 2

    numbers = [Number(value) for value in range(5)]
    assert [half(numbers[1]), half(numbers[2]), half(numbers[1])] == [None, 1, None]
    assert half.all(numbers) == [0, None, 1, None, 2]
    assert half.all(numbers) == [0, None, 1, None, 2]
    assert half.all([]) == []
    assert worked == [1, 2, 0, 3, 4]


def test_what_is_known_of_a_value_is_handed_on_to_one_like_it() -> None:
    worked: list[int] = []

    @remembered
    def double(number: Number) -> int:
        worked.append(number.value)
        return number.value * 2

    number = Number(2)
    assert double(number) == 4
    assert double(hand_on(number, Number(2))) == 4
    assert worked == [2]
